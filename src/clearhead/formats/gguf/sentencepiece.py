"""A SentencePiece vocabulary of BPE as a `tokenizer.json`: merges from scores.

SentencePiece joins, as long as there is one, the pair of neighbours that is together the piece with the highest score; the first such
pair in the text, if there are several. The library joins the pair that stands first in a list. So the list has, for each piece from the
highest score to the lowest, every way to make it of two pieces:

    merges = [(p[:i], p[i:]) for p in pieces by falling score for i in len(p)-1 .. 1 if p[:i] and p[i:] are pieces]

The longer first part comes first: in a run of equal characters the pieces stand to the left, so that what they are joined with is the
shorter one, whatever stands in between. Pieces of equal score follow their ids: files that were made without scores have one number for
all, and the order of learning is that of the ids.

Source: Kudo and Richardson, "SentencePiece" (2018), and its `bpe_model.cc`; what control, unknown and byte pieces are, by
`sentencepiece_model.proto`: none of them is made by joining.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from clearhead.formats.library_files import library_file

__all__ = ["merges_of", "sentence_pieces"]

SPACE = "\u2581"
"""What a space is written as."""


def merges_of(scores: Mapping[str, float]) -> list[tuple[str, str]]:
    """The merges that make each piece of two others, in their order.

    Args:
        scores: of each piece that can be joined or made by joining, by id.
    """
    # Sorting keeps the order of those that are equal.
    by_score = sorted(scores, key=lambda piece: -scores[piece])
    return [
        (piece[:middle], piece[middle:])
        for piece in by_score
        for middle in range(len(piece) - 1, 0, -1)
        if piece[:middle] in scores and piece[middle:] in scores
    ]


def sentence_pieces(
    vocab: Mapping[str, int],
    merges: Iterable[tuple[str, str]],
    added: Iterable[dict[str, Any]],
    *,
    unknown: str | None,
    falls_back: bool,
    prefix: bool,
) -> str:
    """The file.

    Args:
        vocab: the id of each piece.
        merges: the pairs that are joined, the first first.
        added: pieces that are found before.
        unknown: the piece for a character that is none.
        falls_back: whether such a character becomes its bytes, each a piece as `<0xE4>`.
        prefix: whether a space is put before every text, also one that begins with a space, and taken away when ids become text.
    """
    model = {
        **{"type": "BPE", "dropout": None, "unk_token": unknown, "fuse_unk": True, "byte_fallback": falls_back},
        **{"continuing_subword_prefix": None, "end_of_word_suffix": None, "ignore_merges": False},
        **{"vocab": vocab, "merges": [*merges]},
    }
    before = [{"type": "Prepend", "prepend": SPACE}] if prefix else []
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    back = [
        {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        *([{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []),
    ]
    return library_file(
        model,
        added,
        normalizer={"type": "Sequence", "normalizers": [*before, spaces]},
        decoder={"type": "Sequence", "decoders": back},
    )
