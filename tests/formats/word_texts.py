"""Texts of every sort, and two tokenizers to be read: byte-pair encoding by its definition, and SentencePiece's."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import regex
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

LEARNT = (
    "The cat sat on the mat, it's the cat's mat; they'd say: 1234, 56 and 789! don't THEY'LL\n\n  def f(x):\n\treturn x**2 + 10\n"
    "小猫趴在窗台上，看着月亮。 naïve café Straße ½ ² 🙂🙃 aaaaaaaa      hahaha\r\n"
) * 4
"""What the small vocabularies are learnt from."""

_ODD = [
    "\n",
    "\t",
    "\r",
    "\u3000",
    "\xa0",
    "\u200b",
    "  ",
    "\u2581",
    "e\u0301",
    *"小猫在月亮éüßÅ①²½٣🙂👧🏽🇨🇳",
    "the ",
    "ing",
    "aa",
    "'s",
]


def _random_texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    usual = [*map(chr, range(32, 127)), *_ODD]

    def character() -> str:
        if draw.random() < 0.8:
            return draw.choice(usual)
        # Neither surrogates nor the noncharacters that stand for nothing.
        return chr(
            draw.choice(
                [draw.randrange(0x80, 0xD800), draw.randrange(0xE000, 0xFDD0), draw.randrange(0x10000, 0x10FFFE)]
            )
        )

    return ["".join(character() for _ in range(draw.randrange(1, 60))) for _ in range(count)]


TEXTS = [
    *(
        "Hello world, it's the cat's hat! DON'T, they'll 1,234,567.89",
        "小猫趴在窗台上，看着月亮。今天2024年",
        "naïve café e\u0301 Å",
    ),
    *(
        "🙂👩\u200d👩\u200d👧🏽 🇨🇳 ok",
        "def f(x):\n    return x**2 + 10\n\n\tif x == 123:  # ok\r\n",
        "https://a.b/c?d=e&f=%20",
    ),
    *("", " ", "   ", "\n", " \n\n \t", "  a  b \t\n\n c   ", "a  1", "x   123", "1 2 3", "①②½", "a" * 37, " " * 33),
    *_random_texts(200, seed=9),
]
"""English, Chinese, emoji, code, odd white space, and 200 random ones."""


_ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
_others = iter(letter for letter in _ALPHABET if ord(letter) > 255)
LETTERS = [chr(byte) if chr(byte) in _ALPHABET else next(_others) for byte in range(256)]
"""The letter that byte-level tokenizers write for each byte."""


def small_vocabulary(size: int, *marks: str) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """A byte-level vocabulary of so many tokens and its merges; the marks first."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return _learnt(made, size, [*marks], pre_tokenizers.ByteLevel.alphabet(), LEARNT)


def small_pieces(size: int) -> tuple[list[str], list[float], list[int]]:
    """A SentencePiece vocabulary of about so many pieces: how they are spelt, their scores, and their kinds as GGUF numbers them."""
    learnt = "".join(character for character in LEARNT if character not in "🙃Å").replace(" ", "▁")
    ids, merges = _learnt(Tokenizer(models.BPE()), size, [], [], learnt)
    made = [first + second for first, second in merges]
    # As there: the pieces that were learnt, the first with the highest score, then the characters.
    pieces = [*dict.fromkeys(made), *sorted(ids.keys() - {*made})]
    fixed = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [2, 3, 3, *[6] * 256, *[1] * len(pieces)]
    return fixed + pieces, [0.0] * len(fixed) + [-float(place) for place in range(len(pieces))], kinds


def _learnt(
    made: Tokenizer, size: int, marks: list[str], alphabet: list[str], text: str
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=marks, initial_alphabet=alphabet, max_token_length=8, show_progress=False
    )
    made.train_from_iterator(text.splitlines(keepends=True), trainer)
    model = json.loads(made.to_str())["model"]
    return model["vocab"], [(first, second) for first, second in model["merges"]]


def joined(parts: Sequence[str], rank: Mapping[tuple[str, str], int]) -> list[str]:
    """The parts with pairs joined as long as one is known: the one of the lowest rank first, of equal ones the first."""
    parts = [*parts]
    while True:
        known = [(rank[pair], place) for place, pair in enumerate(pairwise(parts)) if pair in rank]
        if not known:
            return parts
        place = min(known)[1]
        parts[place : place + 2] = [parts[place] + parts[place + 1]]


def ranks(merges: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """The place of each merge, its first one if it stands twice."""
    return {pair: place for place, pair in reversed([*enumerate(merges)])}


def byte_level_ids(
    pieces: Iterable[str], ids: Mapping[str, int], rank: Mapping[tuple[str, str], int], *, whole: bool = False
) -> list[int]:
    """Byte-level BPE of the pieces of a text, by its definition; bytes that are no token are left out.

    Args:
        pieces: the text, cut.
        ids: the id of each token.
        rank: the place of each merge.
        whole: whether a piece that is a token is that token.
    """
    found: list[int] = []
    for piece in pieces:
        parts = [LETTERS[byte] for byte in piece.encode() if LETTERS[byte] in ids]
        at_once = whole and "".join(parts) in ids
        found += [ids[part] for part in (["".join(parts)] if at_once else joined(parts, rank))]
    return found


def cut(text: str, *patterns: str) -> list[str]:
    """The pieces of a text: what the first pattern finds and what stands between, each of these cut by the next, and so on."""
    pieces = [text]
    for pattern in patterns:
        pieces = [part for piece in pieces for part in regex.split(f"({pattern})", piece) if part]
    return pieces


def sentence_piece_ids(text: str, ids: Mapping[str, int], scores: Mapping[str, float], *, prefix: bool) -> list[int]:
    """SentencePiece's BPE by its definition: the pair whose join has the highest score, the first of them; bytes for the rest."""
    parts = [*("▁" if prefix and text else ""), *text.replace(" ", "▁")]
    while True:
        known = [
            (-scores[first + second], place)
            for place, (first, second) in enumerate(pairwise(parts))
            if first + second in scores
        ]
        if not known:
            break
        place = min(known)[1]
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    found: list[int] = []
    for part in parts:
        found += [ids[part]] if part in scores else [ids[f"<0x{byte:02X}>"] for byte in part.encode()]
    return found
