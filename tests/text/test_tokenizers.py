"""Tokenizers: there and back for every text, whole characters from streams, and ids that are checked."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.text import ByteTokenizer, CharacterTokenizer, tokenizer_from_dict

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
WITH_SURROGATES = st.text(st.characters())
ALPHABET = "小猫 cat\n😀é�"

CHARACTERS = CharacterTokenizer.of("banana 猫😀")
BYTES = ByteTokenizer()


def test_characters_by_hand():
    assert CHARACTERS.characters == " abn猫😀"
    assert CHARACTERS.size == 7
    assert CHARACTERS.encode("nab 猫") == [4, 2, 3, 1, 5]
    assert CHARACTERS.decode([6, 5, 0, 1]) == "😀猫\ufffd "
    assert CHARACTERS.pieces([2, 0, 6]) == ["a", "\ufffd", "😀"]


def test_an_unseen_character_becomes_the_mark():
    # Below, between and above the known code points, and one beyond the basic plane.
    assert CHARACTERS.encode("\0z中🚀a") == [0, 0, 0, 0, 2]
    assert CharacterTokenizer.of("abc").encode("d😀") == [0, 0]
    assert CHARACTERS.decode(CHARACTERS.encode("xa")) == "\ufffda"


def test_the_mark_itself_has_id_0():
    tokenizer = CharacterTokenizer.of("a\ufffdb")
    assert (tokenizer.characters, tokenizer.encode("b\ufffda")) == ("ab", [2, 0, 1])


def test_bytes_by_hand():
    assert BYTES.size == 256
    assert BYTES.encode("a猫\n") == [0x61, 0xE7, 0x8C, 0xAB, 0x0A]
    assert BYTES.decode([0x61, 0xE7, 0x8C, 0xAB]) == "a猫"
    assert BYTES.decode([0xE7, 0x61]) == "\ufffda"
    assert BYTES.pieces([0x61, 0xE7, 0x0A]) == ["a", "<0xE7>", "\n"]


def test_a_swapped_byte_is_caught():
    # The planted fault: the right bytes in the wrong order must not decode to the text.
    right = BYTES.encode("小猫")
    wrong = [right[1], right[0], *right[2:]]
    assert BYTES.decode(right) == "小猫"
    assert BYTES.decode(wrong) != "小猫"
    assert CHARACTERS.decode([id + 1 for id in CHARACTERS.encode("ban")]) != "ban"


@given(ANY_TEXT)
def test_bytes_there_and_back(text):
    ids = BYTES.encode(text)
    assert BYTES.decode(ids) == text
    assert BYTES.encode_array(text).tolist() == ids


@given(st.text(st.sampled_from(ALPHABET)))
def test_characters_there_and_back(text):
    tokenizer = CharacterTokenizer.of(ALPHABET)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert "".join(tokenizer.pieces(ids)) == text
    assert tokenizer.encode_array(text).tolist() == ids


@given(WITH_SURROGATES)
def test_no_text_crashes(text):
    assert BYTES.decode(BYTES.encode(text)) == "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    assert len(CHARACTERS.decode(CHARACTERS.encode(text))) == len(text)
    if set(text) - set("\ufffd") and any(not "\ud800" <= c <= "\udfff" and c != "\ufffd" for c in text):
        assert CharacterTokenizer.of(text).size >= 2


@given(st.lists(st.integers(0, 255)))
def test_a_byte_stream_joined_is_the_decoded_text(ids):
    stream = BYTES.stream()
    parts = [stream.push(id) for id in ids]
    assert "".join(parts) + stream.finish() == BYTES.decode(ids)


def test_a_byte_stream_holds_back_half_a_character():
    stream = BYTES.stream()
    assert [stream.push(id) for id in "a猫é".encode()] == ["a", "", "", "猫", "", "é"]
    assert stream.finish() == ""
    assert [stream.push(0xE7), stream.push(0x8C), stream.finish()] == ["", "", "\ufffd"]
    assert stream.push(0x62) == "b"


@given(st.lists(st.integers(0, CHARACTERS.size - 1)))
def test_a_character_stream_joined_is_the_decoded_text(ids):
    stream = CHARACTERS.stream()
    assert "".join([*[stream.push(id) for id in ids], stream.finish()]) == CHARACTERS.decode(ids)


@pytest.mark.parametrize("tokenizer", [CHARACTERS, BYTES])
@pytest.mark.parametrize("wrong", [-1, "size", 10**30])
def test_an_id_outside_the_vocabulary_names_both_numbers(tokenizer, wrong):
    id = tokenizer.size if wrong == "size" else wrong
    line = rf"Token id {id} is outside the vocabulary of {tokenizer.size} \(ids 0 to {tokenizer.size - 1}\)"
    for use in (tokenizer.decode, tokenizer.pieces):
        with pytest.raises(UserError, match=line):
            use([1, id, 2])
    with pytest.raises(UserError, match=line):
        tokenizer.stream().push(id)


@pytest.mark.parametrize("ids", [[1.5], [[1, 2]], 3, ["a"], [True], np.zeros((0, 2), dtype=np.int64)])
def test_ids_that_are_no_row_of_whole_numbers(ids):
    with pytest.raises(UserError, match="one row of whole numbers"):
        BYTES.decode(ids)


def test_empty_and_arrays():
    for tokenizer in (CHARACTERS, BYTES):
        assert tokenizer.encode("") == []
        assert (tokenizer.decode([]), tokenizer.pieces([])) == ("", [])
        array = tokenizer.encode_array("ban")
        assert array.dtype == np.int64
        assert tokenizer.decode(array) == "ban"
        assert all(type(id) is int for id in tokenizer.encode("ban"))


@pytest.mark.parametrize("characters", ["", "aa", "a\ufffd", "\ud800a"])
def test_characters_that_make_no_tokenizer(characters):
    with pytest.raises(UserError, match="character"):
        CharacterTokenizer(characters)


@pytest.mark.parametrize("tokenizer", [CHARACTERS, BYTES, CharacterTokenizer("zya")])
def test_saved_and_loaded(tokenizer):
    saved = json.loads(json.dumps(tokenizer.to_dict(), ensure_ascii=False))
    assert (saved["type"], saved["format_version"]) == (type(tokenizer).__name__, 1)
    loaded = tokenizer_from_dict(saved)
    assert loaded == tokenizer
    assert loaded.encode("ban z") == tokenizer.encode("ban z")


@pytest.mark.parametrize(
    ("saved", "line"),
    [
        (None, "tokenizer is None"),
        ([], "tokenizer is "),
        ({}, "format_version is None"),
        ({"type": "ByteTokenizer", "format_version": "1"}, "format_version is '1'"),
        ({"type": "ByteTokenizer", "format_version": 0}, "format_version is 0"),
        ({"type": "ByteTokenizer", "format_version": 5}, "version 5; this clearhead reads version 4: upgrade"),
        ({"format_version": 1}, "type is None"),
        ({"type": "WordTokenizer", "format_version": 1}, "type is 'WordTokenizer'"),
        ({"type": "CharacterTokenizer", "format_version": 1}, "characters is None"),
        ({"type": "CharacterTokenizer", "format_version": 1, "characters": ["a"] * 99}, r"characters is .*\.\.\."),
        ({"type": "CharacterTokenizer", "format_version": 1, "characters": "abca"}, "hold 'a' where it may not stand"),
    ],
)
def test_a_damaged_dict_is_one_line(saved, line):
    with pytest.raises(UserError, match=line) as caught:
        tokenizer_from_dict(saved)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["shakespeare.txt", "tang-song.txt"])
def test_real_texts_there_and_back(texts, name):
    text = (texts / name).read_text(encoding="utf-8")
    for tokenizer in (CharacterTokenizer.of(text), BYTES):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert max(ids) < tokenizer.size
