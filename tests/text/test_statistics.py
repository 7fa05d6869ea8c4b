"""What a tokenizer makes of texts, counted by hand, and independent of how much is handled at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer, alignment
from clearhead.text.documents import Document, Documents
from clearhead.text.encoding import Sizes
from clearhead.text.library import LibraryTokenizer
from clearhead.text.scripts import SCRIPTS, script_of
from clearhead.text.statistics import Statistics, statistics
from tests.text.small_library import MERGED, byte_level, completed_slowly, small_letters

SMALL = Sizes(piece=8, window=3, batch=16, texts=3)
SPACED = {"Latin", "Greek", "Cyrillic", "Hangul"}


def of(*texts: str, part: int = 5) -> Documents:
    """Documents in parts of so many characters."""

    def documents() -> Iterator[Document]:
        for text in texts:
            yield Document(None, None, (text[at : at + part] for at in range(0, len(text), part)))

    return documents


def test_by_hand() -> None:
    # " the" and "the" and 猫 are tokens of their own; 狗 has three bytes, of which 猫 made no token; é two.
    tokenizer = byte_level("the the the 猫猫猫", merges=9)
    assert tokenizer.pieces(tokenizer.encode("the the, 猫狗é")) == [
        *("the", " the", ",", " ", "猫", "<0xE7>", "<0x8B>", "<0x97>", "<0xC3>", "<0xA9>")
    ]
    found = statistics(tokenizer, of("the the, 猫狗é"))
    assert (found.documents, found.tokens, found.characters, found.bytes) == (1, 10, 12, 17)
    shares = {script: (count.characters, count.tokens) for script, count in found.scripts.items()}
    assert shares == {
        "Latin": (7, 1 + 3 / 4 + 2),
        "white space": (2, 1 / 4 + 1),
        "Han": (2, 1 + 3),
        "punctuation": (1, 1),
    }
    assert found.scripts["Han"].characters_per_token == 0.5
    # the, the and é; 1, 1 and 2 tokens.
    assert (found.words, found.word_tokens, found.tokens_per_word) == (3, 4, 4 / 3)
    assert (found.size, found.used, found.unknown) == (tokenizer.size, 10, None)
    assert found.longest == (" the", "the")
    assert (found.characters_per_token, found.bytes_per_token) == (1.2, 1.7)


def test_bytes_and_characters_by_hand() -> None:
    found = statistics(ByteTokenizer(), of("a猫 é", "b"))
    assert {script: count.tokens for script, count in found.scripts.items()} == {"Latin": 4, "Han": 3, "white space": 1}
    assert (found.documents, found.words, found.word_tokens, found.longest) == (2, 3, 4, ())
    known = statistics(MarkedTokenizer(CharacterTokenizer.of("ab")), of("abcab"))
    assert (known.tokens, known.unknown, known.used, known.size) == (5, 1, 3, 5)
    assert known.tokens_per_word == 5


def test_nothing() -> None:
    found = statistics(ByteTokenizer(), of(""))
    assert (found.documents, found.tokens, found.scripts, found.tokens_per_word) == (1, 0, {}, None)
    assert (found.characters_per_token, found.bytes_per_token) == (0, 0)


def test_what_a_library_tokenizer_does_not_know_is_counted() -> None:
    found = statistics(small_letters(), of("the dog cat dog"))
    assert (found.tokens, found.unknown) == (4, 2)


def test_a_text_that_comes_out_otherwise_is_told() -> None:
    tokenizer = small_letters()
    found = statistics(tokenizer, of("The cat", "the cat", "a the"))
    # "The" comes out as "the": nobody says that T became t. "the cat" is itself.
    assert (found.tokens, found.characters, found.apart) == (6, 19, 12)
    assert (found.words, found.scripts["Latin"].characters) == (2, 6)


TEXTS = st.text(" \n,tehcaçé猫狗Ж한7😀", max_size=25)


def looped(tokenizer: LibraryTokenizer, text: str) -> tuple[dict[str, float], int, int]:
    """Tokens by script, words, and their tokens, one character after another."""
    shares = dict.fromkeys(SCRIPTS, 0.0)
    groups: list[tuple[int, int, int]] = []
    at = tokens = 0
    for count in completed_slowly(tokenizer, text):
        tokens += 1
        if count:
            groups.append((at, at + count, tokens))
            at, tokens = at + count, 0
    for begin, end, spent in groups:
        for sign in text[begin:end]:
            shares[script_of(sign)] += spent / (end - begin)
    marked = "".join("x" if script_of(sign) in SPACED else " " for sign in text)
    words = word_tokens = place = 0
    for run in marked.split(" "):
        if run:
            words += 1
            word_tokens += sum(spent for begin, end, spent in groups if begin < place + len(run) and end > place)
        place += len(run) + 1
    return shares, words, word_tokens


def faults(found: Statistics, wanted: tuple[dict[str, float], int, int]) -> list[str]:
    """What differs from counting by hand."""
    shares, words, word_tokens = wanted
    counted = {script: share for script, share in shares.items() if share}
    wrong = [script for script in counted if found.scripts[script].tokens != pytest.approx(counted[script], abs=1e-12)]
    return wrong + ["words"] * (found.words != words) + ["word_tokens"] * (found.word_tokens != word_tokens)


@given(TEXTS)
def test_counts_are_those_of_a_loop(text: str) -> None:
    found = statistics(MERGED, of(text))
    assert faults(found, looped(MERGED, text)) == []
    assert sum(count.tokens for count in found.scripts.values()) == pytest.approx(found.tokens, abs=1e-12)
    assert sum(count.characters for count in found.scripts.values()) == len(text)


@pytest.mark.parametrize(
    "tokenizer", [ByteTokenizer(), CharacterTokenizer.of("tehc 猫"), MERGED], ids=["byte", "character", "library"]
)
@given(texts=st.lists(st.text(" \n,tehcaé猫", max_size=60), max_size=4))
def test_how_much_is_handled_at_a_time_changes_no_count(tokenizer, texts: list[str]) -> None:
    whole, cut = (statistics(tokenizer, of(*texts), sizes=sizes) for sizes in (Sizes(), SMALL))
    rounded = {script: round(count.tokens, 9) for script, count in whole.scripts.items()}
    assert {script: round(count.tokens, 9) for script, count in cut.scripts.items()} == rounded
    assert dataclasses.replace(whole, scripts={}) == dataclasses.replace(cut, scripts={})


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "the cat, 狗 ça"
    wanted = looped(MERGED, text)
    assert faults(statistics(MERGED, of(text)), wanted) == []
    right = alignment._of_any

    def shifted(tokenizer: LibraryTokenizer) -> alignment.Completion:
        """Tokens stand for what the next one completes."""
        return lambda text, ids: np.roll(right(tokenizer)(text, ids), -1)

    monkeypatch.setattr(alignment, "_of_any", shifted)
    assert {"Latin", "Han"} < set(faults(statistics(MERGED, of(text)), wanted))


def test_progress_is_told_in_characters() -> None:
    told: list[int] = []
    statistics(ByteTokenizer(), of("abc" * 20, "de"), told.append, sizes=SMALL)
    assert told == sorted(told)
    assert told[-1] == 62
