"""Tokens over the characters and bytes that they cover, whatever the tokenizer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from tokenizers import Tokenizer as Library
from tokenizers import decoders

from clearhead.messages import UserError
from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer, Tokenizer
from clearhead.text.library import LibraryTokenizer
from clearhead.web import tokens
from clearhead.web.opening import opened
from clearhead.web.spans import Span, spans_of
from tests.text.small_library import MERGED, words_behind_spaces
from tests.text.tokenizer_kinds import KINDS, library
from tests.web.read_models import MARKED, TEXT, decoder, encoder, pair

TEXTS = {
    "Chinese": "小猫趴在窗台上，看着窗外的雨。",
    "emoji": "a family 👩‍👩‍👧 and a cat 🐈‍⬛, too 🙂",
    "marks": "cafe\u0301 nai\u0308ve ①②③ ﬁ",
    "lines": "one\r\ntwo\n\n\tthree  \n",
    "spaces": "  the  cat ",
    "empty": "",
}
KNOWN: dict[str, Tokenizer] = {
    "bytes": ByteTokenizer(),
    "characters": CharacterTokenizer("tehcaé猫狗Ж한7😀 \n,"),
    "marked": MarkedTokenizer(ByteTokenizer()),
    "merged": MERGED,
    "words": words_behind_spaces(),
}


def of_kind(kind: str) -> Tokenizer:
    """One of those above, or of every kind that the tokenizers library has."""
    if kind in KNOWN:
        return KNOWN[kind]
    made = Library.from_str(library(kind).to_str())
    if kind in ("gpt2", "llama3"):
        made.decoder = decoders.ByteLevel()
    return LibraryTokenizer(made.to_str())


def check_covered(text: str, ids: Sequence[int], spans: Sequence[Span]) -> None:
    """The spans are in order, cover the text without a gap, and its bytes as far as they are told."""
    assert len(spans) == len(ids)
    if not spans:
        return
    assert (spans[0].start, spans[-1].end) == (0, len(text))
    for before, after in pairwise(spans):
        assert before.start <= after.start <= before.end <= after.end
        if after.start < before.end and after.bytes is not None and before.bytes is not None:
            # They share the last character of the one: the other goes on at the next byte.
            shared = len(text[before.start : after.start].encode())
            assert after.bytes[0] == before.bytes[1] + 1 - shared
    for start, end, part in spans:
        assert part is None or 0 <= part[0] <= part[1] < len(text[start:end].encode())


@pytest.mark.parametrize("kind", [*KNOWN, *KINDS])
@pytest.mark.parametrize("name", TEXTS)
def test_tokens_cover_the_text(kind: str, name: str) -> None:
    tokenizer, text = of_kind(kind), TEXTS[name]
    ids = tokenizer.encode(text)
    spans = spans_of(tokenizer, text, ids)
    check_covered(text, ids, spans)
    if len(spans) > 2:
        with pytest.raises(AssertionError):
            check_covered(text, ids, [spans[0]._replace(start=1), *spans[1:]])
        with pytest.raises(AssertionError):
            check_covered(text, ids, [*spans[:-1], Span(spans[-1].start, spans[-1].end + 1)])


@pytest.mark.parametrize("kind", ["bytes", "marked", "gpt2", "llama3"])
@pytest.mark.parametrize("name", TEXTS)
def test_bytes_of_each_token_are_those_that_it_stands_for(kind: str, name: str) -> None:
    tokenizer, text = of_kind(kind), TEXTS[name]
    ids = tokenizer.encode(text)
    found = b""
    for start, end, part in spans_of(tokenizer, text, ids):
        covered = text[start:end].encode()
        found += covered if part is None else covered[part[0] : part[1] + 1]
    assert found == text.encode()


def test_a_character_over_several_tokens() -> None:
    spans = spans_of(ByteTokenizer(), "a猫", ByteTokenizer().encode("a猫"))
    assert spans == [Span(0, 1), Span(1, 2, (0, 0)), Span(1, 2, (1, 1)), Span(1, 2, (2, 2))]


def test_a_text_that_was_changed_before_it_was_cut() -> None:
    tokenizer = of_kind("word piece")
    text = "The Café e\u0301t "
    spans = spans_of(tokenizer, text, tokenizer.encode(text))
    assert "".join(tokenizer.pieces(tokenizer.encode(text))) != text
    words = [text[start:end] for start, end, _ in spans]
    # Accents belong to the letter before them, white space to the word behind it.
    assert "".join(words) == text
    assert not any(word.startswith("\u0301") for word in words)


def test_a_tokenizer_that_nobody_can_ask() -> None:
    class Small(ByteTokenizer):
        """Folds capitals, without a word about it."""

        def encode(self, text: str) -> list[int]:
            return super().encode(text.lower())

    spans = spans_of(Small(), "The Cat", Small().encode("The Cat"))
    assert [(start, end) for start, end, _ in spans] == [(place, place + 1) for place in range(7)]


def test_what_is_told_of_a_prompt() -> None:
    told = json.loads(tokens.answer(opened(decoder(), "ab猫?"), {}).body)
    assert told["text"], told["source"] == ("ab猫?", None)
    assert [(each["piece"], each["start"], each["end"], each["bytes"]) for each in told["tokens"]] == [
        ("a", 0, 1, None), ("b", 1, 2, None), ("猫", 2, 3, None), ("\ufffd", 3, 4, None),
    ]  # fmt: skip
    assert [each["unknown"] for each in told["tokens"]] == [False, False, False, True]
    assert not any(each["special"] for each in told["tokens"])


def test_marks_cover_nothing() -> None:
    told = tokens.told(opened(encoder(), "ab"))
    assert [(each["special"], each["start"], each["end"]) for each in told["tokens"]] == [
        (True, 0, 0), (False, 0, 1), (False, 1, 2), (True, 2, 2),
    ]  # fmt: skip
    assert tokens.told(opened(encoder(), ""))["tokens"][1]["start"] == 0


def test_an_encoder_decoder_tells_both_texts() -> None:
    told = tokens.told(opened(pair(), TEXT, "ba"))
    assert (told["text"], [each["id"] for each in told["tokens"]]) == ("ba", [MARKED.begin, *MARKED.encode("ba")])
    assert told["source"]["text"] == TEXT
    assert [each["special"] for each in told["source"]["tokens"]] == [False] * len(TEXT) + [True]


def test_a_row_that_no_token_has_is_told_by_its_number() -> None:
    letters = CharacterTokenizer.of("abc")
    last = letters.size - 1
    assert tokens.pieces_of(letters, [last, last + 1, last + 700]) == [
        letters.pieces([last])[0],
        f"<{last + 1}>",
        f"<{last + 700}>",
    ]
    with pytest.raises(UserError):
        letters.pieces([last + 1])
