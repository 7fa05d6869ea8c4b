"""Which characters a token stands for: counted from decoded beginnings, whatever the tokenizer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer, Tokenizer
from clearhead.text.alignment import completion, utf8_lengths
from tests.text.small_library import MERGED, byte_level, completed_slowly, small_letters, words_behind_spaces

TOKENIZERS = {"byte": ByteTokenizer(), "character": CharacterTokenizer("tehcaçé猫狗Ж한7😀 \n,"), "library": MERGED}
TEXTS = st.text(" \n,tehcaçé猫狗Ж한7😀", max_size=25)


def right(tokenizer: Tokenizer, text: str, told: object) -> bool:
    return isinstance(told, np.ndarray) and told.tolist() == completed_slowly(tokenizer, text)


@pytest.mark.parametrize("kind", TOKENIZERS)
@given(text=TEXTS)
def test_the_characters_that_tokens_complete(kind: str, text: str) -> None:
    tokenizer = TOKENIZERS[kind]
    told = completion(MarkedTokenizer(tokenizer))(text, tokenizer.encode_array(text))
    assert right(tokenizer, text, told)
    assert told is not None
    assert told.sum() == len(text)


@pytest.mark.parametrize("kind", ["byte", "library"])
def test_a_planted_fault_is_found(kind: str) -> None:
    tokenizer, text = TOKENIZERS[kind], "the 狗"
    told = completion(tokenizer)(text, tokenizer.encode_array(text))
    assert right(tokenizer, text, told)
    assert told is not None
    assert not right(tokenizer, text, np.roll(told, 1)), "a character is complete before its last byte"


def test_a_tokenizer_that_treats_the_first_word_differently() -> None:
    tokenizer = words_behind_spaces()
    ids = tokenizer.encode_array("the cat the")
    assert completion(tokenizer)("the cat the", ids) is not None
    assert completion(tokenizer)("the cat the", ids).tolist() == [3, 4, 4]


def test_a_token_that_is_spelt_like_a_byte() -> None:
    """The short way takes the token for the byte that it names, finds that it is not, and leaves it to the stream."""
    tokenizer = byte_level("<0xE7> <0xE7> <0xE7>", merges=12)
    text = "<0xE7>猫<0xE7>"
    assert "<0xE7>" in tokenizer.pieces(tokenizer.encode(text))
    told = completion(tokenizer)(text, tokenizer.encode_array(text))
    assert right(tokenizer, text, told)


def test_a_text_that_was_changed_is_told() -> None:
    tokenizer = small_letters()
    assert completion(tokenizer)("the cat", tokenizer.encode_array("the cat")).tolist() == [3, 4]
    assert completion(tokenizer)("The cat", tokenizer.encode_array("The cat")) is None
    assert completion(tokenizer)("dog", tokenizer.encode_array("dog")) is None


def test_a_character_that_is_not_known_is_still_one() -> None:
    tokenizer = CharacterTokenizer("a")
    assert completion(tokenizer)("abc", tokenizer.encode_array("abc")).tolist() == [1, 1, 1]


@given(st.text())
def test_bytes_of_characters(text: str) -> None:
    assert utf8_lengths(text).tolist() == [len(sign.encode()) for sign in text]


def test_a_surrogate_has_the_bytes_of_its_stand_in() -> None:
    assert utf8_lengths("a\ud800").tolist() == [1, 3]
    assert completion(ByteTokenizer())("a\ud800b", ByteTokenizer().encode_array("a\ud800b")).tolist() == [1, 0, 0, 1, 1]
