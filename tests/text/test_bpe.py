"""The readable byte-pair encoding is the library's: merge for merge, ties included, and id for id."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from clearhead.messages import UserError
from clearhead.text import bpe
from clearhead.text.bpe_training import train_bpe
from clearhead.text.corpus import write

SIGNS = {chr(byte[0]) if place < 188 else chr(68 + place): byte for place, byte in enumerate(bpe.BYTES)}
GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
"""Splits a text, and writes its bytes in signs."""
WHOLE = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
"""Takes a text as one word."""

# A word over two letters ties with nearly every other; é and 猫 have bytes that begin alike.
TINY = st.dictionaries(st.text("ab", min_size=1, max_size=14), st.integers(1, 3), min_size=1, max_size=8)
MIXED = st.dictionaries(st.text(" \naéè猫狗😀1", max_size=9), st.integers(1, 4), min_size=1, max_size=8)


def library(words: Mapping[str, int], merges: int, *, least: int = 0, split: object = WHOLE) -> Tokenizer:
    """The library's tokenizer, trained on the same words."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = split
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=256 + merges,
        min_frequency=least,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator((word for word, times in words.items() for _ in range(times)), trainer)
    return made


def merges_of(made: Tokenizer) -> list[bpe.Merge]:
    """Its merges, in bytes."""
    pairs = json.loads(made.to_str())["model"]["merges"]
    return [tuple(b"".join(SIGNS[sign] for sign in token) for token in pair) for pair in pairs]


def gpt2_words(text: str) -> list[str]:
    """The words that the library's own split makes."""
    return [text[start:end] for _, (start, end) in GPT2.pre_tokenize_str(text)]


def agree(words: Mapping[str, int], merges: int = 300) -> bool:
    return bpe.train(words, merges) == merges_of(library(words, merges))


def test_by_hand() -> None:
    # aab ab: (a, b) stands twice and (a, a) once; then (a, ab).
    assert bpe.train({"aab": 1, "ab": 1}, 9) == [(b"a", b"b"), (b"a", b"ab")]
    assert bpe.train({"aab": 1, "ab": 1}, 1) == [(b"a", b"b")]
    assert bpe.train({"aab": 1, "ab": 1}, 9, least=2) == [(b"a", b"b")]
    assert bpe.train({"aab": 1, "ab": 1}, 0) == bpe.train({}, 9) == bpe.train({"a": 7}, 9) == []
    # Places overlap: aa stands twice in aaa, as often as ab in all; a has the lower id.
    assert bpe.train({"aaa": 1, "ab": 2}, 1) == [(b"a", b"a")]
    merges = bpe.train({"aab": 1, "ab": 1}, 9)
    assert bpe.encode("aabb", merges).tolist() == [257, bpe.BYTES.index(b"b")]
    assert bpe.decode([257, 256], merges) == "aabab"


def test_the_order_of_bytes_is_that_of_the_signs() -> None:
    vocabulary = library({}, 0).get_vocab()
    assert [SIGNS[sign] for sign in sorted(vocabulary, key=vocabulary.__getitem__)] == list(bpe.BYTES)
    assert sorted(bpe.BYTES) == [bytes([byte]) for byte in range(256)]


@settings(max_examples=400)
@given(TINY | MIXED)
def test_merges_are_the_librarys_on_random_words(words: dict[str, int]) -> None:
    assert agree(words)


@given(TINY | MIXED, st.integers(1, 4), st.integers(0, 12))
def test_so_is_the_end_of_training(words: dict[str, int], least: int, merges: int) -> None:
    assert bpe.train(words, merges, least=least) == merges_of(library(words, merges, least=least))


@given(TINY | MIXED, st.text("ab", max_size=30) | st.text(" \naéè猫狗😀1b", max_size=20))
def test_ids_are_the_librarys_on_random_texts(words: dict[str, int], text: str) -> None:
    made = library(words, 40)
    merges = bpe.train(words, 40)
    ids = bpe.encode(text, merges, lambda whole: [whole])
    assert ids.tolist() == made.encode(text).ids
    assert bpe.decode(ids, merges) == text


@given(TINY | MIXED)
def test_no_token_is_made_by_two_merges(words: dict[str, int]) -> None:
    merges = bpe.train(words, 300)
    assert len(set(bpe.vocabulary(merges))) == 256 + len(merges)


@given(st.text())
def test_words_joined_are_the_text(text: str) -> None:
    assert "".join(bpe.split_words(text)) == text


def _same_on(text: str, merges: int) -> None:
    words = bpe.count_words([text], gpt2_words)
    made = library({text: 1}, merges, split=GPT2)
    learnt = bpe.train(words, merges)
    assert learnt == merges_of(made)
    ids = bpe.encode(text, learnt, gpt2_words)
    assert ids.tolist() == made.encode(text).ids
    assert bpe.decode(ids, learnt) == text == made.decode(ids.tolist())


@pytest.mark.parametrize("name", ["shakespeare.txt", "tang-song.txt"])
def test_real_texts(texts, name: str) -> None:
    _same_on((texts / name).read_text(encoding="utf-8")[:300_000], 300)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shakespeare.txt", "tang-song.txt"])
def test_whole_real_texts_to_many_merges(texts, name: str) -> None:
    _same_on((texts / name).read_text(encoding="utf-8"), 3000)


def test_the_built_in_corpus() -> None:
    _same_on(write(100_000, seed=0), 500)


def test_the_plain_split_on_the_built_in_corpus() -> None:
    words = bpe.count_words([write(30_000, seed=1), write(20_000, seed=2)])
    assert agree(words, 400)
    assert {" the", "\n\n"} < set(words)


def test_what_the_command_trains_on_the_built_in_corpus() -> None:
    """The split that training uses, pairs that occur twice, and a special token behind all others."""
    text = write(40_000, seed=3)
    made = train_bpe([text], vocab=600, specials=["<|end|>"])
    split = made.tokenizer.pre_tokenizer

    def words(whole: str) -> list[str]:
        return [whole[start:end] for _, (start, end) in split.pre_tokenize_str(whole)]

    learnt = bpe.train(bpe.count_words([text], words), 343, least=2)
    assert learnt == merges_of(made.tokenizer)
    assert bpe.encode(text, learnt, words).tolist() == made.encode(text)


# Words on which a fault must show: ties between pairs, between bytes whose signs have another order, and runs.
TELLING: list[dict[str, int]] = [{"ab": 1, "ac": 1}, {" a": 1, "ab": 1}, {"aaab": 2, "ba": 1}]


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> list[bool]:
        return [not agree(words) for words in TELLING]

    def from_the_right(tokens: list[bytes], pair: bpe.Merge) -> list[bytes]:
        turned = joined([token[::-1] for token in tokens[::-1]], (pair[1][::-1], pair[0][::-1]))
        return [token[::-1] for token in turned[::-1]]

    joined = bpe._joined
    assert not any(found())
    with monkeypatch.context() as fault:
        fault.setattr(bpe, "min", max, raising=False)
        assert found()[0], "the highest ids win a tie"
    with monkeypatch.context() as fault:
        fault.setattr(bpe, "BYTES", tuple(bytes([byte]) for byte in range(256)))
        assert found()[1], "bytes are in the order of their values"
    with monkeypatch.context() as fault:
        fault.setattr(bpe, "_joined", from_the_right)
        assert found()[2], "runs are joined from the right"


def test_merges_in_another_order_give_other_ids() -> None:
    merges = bpe.train({"abc": 2, "bcd": 1, "ab": 1}, 2)
    assert bpe.encode("abc", merges).tolist() != bpe.encode("abc", merges[::-1]).tolist()


def test_half_a_character_and_ids_outside() -> None:
    merges = bpe.train({"猫": 2}, 1)
    assert bpe.decode([256], merges) == "\ufffd"
    assert bpe.decode([], merges) == ""
    with pytest.raises(UserError, match="257 is outside the vocabulary of 257"):
        bpe.decode([257], merges)
