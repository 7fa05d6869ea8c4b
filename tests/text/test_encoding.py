"""Encoding in pieces is encoding whole: real pre-tokenizers, tiny pieces, and cuts that nobody proved as the planted fault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer, encoding
from clearhead.text.bpe_training import train_bpe
from clearhead.text.documents import Document
from clearhead.text.encoding import Sizes, encoded
from tests.text.tokenizer_kinds import KINDS, TEXT, WRITTEN, Wrapped, library, our_own

TINY = Sizes(piece=8, window=16, batch=21, texts=5, longest=1 << 20)


def documents(*texts: str, part: int = 5):
    """Each text in parts of `part` characters."""
    cut = [[text[begin : begin + part] for begin in range(0, len(text), part)] for text in texts]
    return lambda: (Document(None, None, iter(parts)) for parts in cut)


def together(pieces: Iterator[encoding.Encoded]) -> list[tuple[list[int], int]]:
    """The ids and the characters of each document."""
    found: list[tuple[list[int], int]] = []
    ids: list[int] = []
    characters = 0
    for piece in pieces:
        ids += piece.ids.tolist()
        characters += piece.characters
        if piece.ends:
            found.append((ids, characters))
            ids, characters = [], 0
    assert not ids
    return found


def whole(tokenizer, *texts: str) -> list[tuple[list[int], int]]:
    return [(tokenizer.encode(text), len(text)) for text in texts]


def pieces_of(tokenizer, text: str, sizes: Sizes = TINY, part: int = 5) -> int:
    """How many pieces a text is given out in, having looked that they are the whole."""
    found = list(encoded(tokenizer, documents(text, part=part), sizes=sizes))
    assert together(iter(found)) == whole(tokenizer, text)
    return len(found)


@pytest.mark.parametrize("kind", KINDS)
@given(text=WRITTEN, part=st.integers(1, 30), piece=st.integers(6, 20), window=st.integers(1, 16))
def test_in_pieces_is_whole(kind: str, text: str, part: int, piece: int, window: int) -> None:
    tokenizer = Wrapped(library(kind))
    sizes = Sizes(piece=piece, window=window, batch=13, texts=4, longest=1 << 20)
    texts = (text, "", text[: len(text) // 2], "a")
    assert together(encoded(tokenizer, documents(*texts, part=part), sizes=sizes)) == whole(tokenizer, *texts)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window", [1, 3, 16])
def test_the_text_itself(kind: str, window: int) -> None:
    tokenizer = Wrapped(library(kind))
    for piece in (6, 11, 40):
        sizes = Sizes(piece=piece, window=window, batch=50, texts=9, longest=1 << 20)
        assert together(encoded(tokenizer, documents(TEXT), sizes=sizes)) == whole(tokenizer, TEXT)


@given(text=WRITTEN, part=st.integers(1, 30), piece=st.integers(6, 20), window=st.integers(1, 16))
def test_our_own_in_pieces_is_whole(text: str, part: int, piece: int, window: int) -> None:
    sizes = Sizes(piece=piece, window=window, batch=13, texts=4, longest=1 << 20)
    for tokenizer in (our_own(), MarkedTokenizer(our_own())):
        texts = (text + "<|end|>" + text, "", TEXT[:300])
        assert together(encoded(tokenizer, documents(*texts, part=part), sizes=sizes)) == whole(tokenizer, *texts)


def test_our_own_is_cut() -> None:
    assert pieces_of(our_own(), TEXT) > 20


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "one word, prepended"])
def test_long_documents_are_cut(kind: str) -> None:
    assert pieces_of(Wrapped(library(kind)), TEXT) > 5


def test_what_cannot_be_cut_is_whole() -> None:
    assert pieces_of(Wrapped(library("one word, prepended")), TEXT.replace("?", ".")) == 1
    assert pieces_of(Wrapped(library("gpt2")), "b" * 1000) == 1


def test_a_token_that_looks_back_farther_than_the_window_is_no_reason_to_stay_whole() -> None:
    """How a run of one letter ends depends on its length: the proof saw another token, and both pieces prove the cut."""
    assert pieces_of(Wrapped(library("gpt2")), ("a" * 21 + "\n") * 20, Sizes(piece=25, window=3)) > 10


def test_the_search_for_a_cut_ends() -> None:
    text = "b" * 100 + " b" * 500
    assert pieces_of(Wrapped(library("gpt2")), text, Sizes(piece=8, window=4, longest=256)) > 50
    assert pieces_of(Wrapped(library("gpt2")), text, Sizes(piece=8, window=4, longest=64)) == 1


@pytest.mark.parametrize("kind", ["llama3", "metaspace first", "word piece", "composed"])
def test_a_cut_that_nobody_proved_is_seen(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: cut anywhere, as if characters were the tokens."""
    monkeypatch.setattr(encoding, "_is_free", lambda tokenizer: True)
    with pytest.raises(AssertionError):
        pieces_of(Wrapped(library(kind)), TEXT)


def test_a_window_that_sees_too_little_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one word is the whole text, one character on each side proves little: the tokens beside the cut tell."""
    tokenizer, sizes = Wrapped(library("one word")), Sizes(piece=6, window=1)
    pieces_of(tokenizer, TEXT, sizes)
    # The planted fault: nobody looks at them.
    monkeypatch.setattr(encoding, "_fits", lambda first, second: True)
    with pytest.raises(AssertionError):
        pieces_of(tokenizer, TEXT, sizes)


@pytest.mark.parametrize(
    "tokenizer", [ByteTokenizer(), CharacterTokenizer.of(TEXT[::2]), MarkedTokenizer(ByteTokenizer())], ids=repr
)
def test_bytes_and_characters_are_cut_anywhere(tokenizer) -> None:
    text = TEXT + "\ud83d\ude00\ud83d"
    assert pieces_of(tokenizer, text, Sizes(piece=7, window=2, batch=20)) == -(-(len(text) - 2) // 7)
    # Not so what looks around.
    assert pieces_of(Wrapped(library("gpt2")), text[:-3], Sizes(piece=7, window=2, batch=20)) < len(text) // 7


def test_many_documents_of_every_length() -> None:
    texts = [
        TEXT[begin : begin + length] for begin, length in zip(range(0, 400, 7), [0, 1, 2, 3, 50, 700] * 9, strict=False)
    ]
    for tokenizer in (ByteTokenizer(), Wrapped(library("llama3"))):
        assert together(encoded(tokenizer, documents(*texts, part=11), sizes=TINY)) == whole(tokenizer, *texts)
        assert together(encoded(tokenizer, documents(*texts))) == whole(tokenizer, *texts)


def test_nothing_is_nothing() -> None:
    assert list(encoded(ByteTokenizer(), documents())) == []
    (only,) = encoded(ByteTokenizer(), lambda: iter([Document(None, None, [])]))
    assert (only.ids.tolist(), only.ids.dtype, only.characters, only.ends) == ([], np.int64, 0, True)


def test_progress_counts_characters() -> None:
    told: list[int] = []
    list(
        encoded(
            ByteTokenizer(), documents("小猫" * 10, "", "abc"), told.append, sizes=Sizes(piece=4, window=1, batch=8)
        )
    )
    assert told == sorted(told)
    assert told[0] < told[-1] == 23


def test_documents_are_read_as_they_are_wanted() -> None:
    """Some batches ahead, never all."""
    read: list[int] = []

    def endless():
        while True:
            read.append(1)
            yield Document(None, None, ["abcdefgh"])

    coming = encoded(ByteTokenizer(), endless, sizes=Sizes(batch=16))
    for _ in range(20):
        next(coming)
    coming.close()
    assert len(read) <= 20 + 2 * (encoding.THREADS + 1)


def test_what_reading_raises_comes_through() -> None:
    def broken():
        yield Document(None, None, ["abc"])
        raise UserError("line 2 is broken")

    with pytest.raises(UserError, match="line 2 is broken"):
        list(encoded(ByteTokenizer(), broken))


@pytest.mark.parametrize(("name", "least"), [("shakespeare.txt", 30), ("tang-song.txt", 4)])
def test_real_texts(texts: Path, name: str, least: int) -> None:
    text = (texts / name).read_text(encoding="utf-8")
    tokenizer = train_bpe([text], vocab=1500)
    assert pieces_of(tokenizer, text, Sizes(piece=1 << 15 if len(text) > 1 << 20 else 1 << 13), part=999) > least
    # A document a line, and all of them together.
    lines = text.split("\n")[:2000]
    assert together(encoded(tokenizer, documents(*lines))) == whole(tokenizer, *lines)
