"""Marks: two ids behind the inner ones, which no text makes, no reader sees, and no stream stumbles over."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer, Tokenizer, tokenizer_from_dict

INNERS: list[Tokenizer] = [CharacterTokenizer.of("banana 猫😀"), ByteTokenizer()]
CHARACTERS, BYTES = (MarkedTokenizer(inner) for inner in INNERS)
BOTH: list[Tokenizer] = [CHARACTERS, BYTES]


def streamed(tokenizer: Tokenizer, ids: list[int]) -> str:
    stream = tokenizer.stream()
    return "".join([*[stream.push(id) for id in ids], stream.finish()])


def test_marks_by_hand():
    assert (CHARACTERS.begin, CHARACTERS.end, CHARACTERS.size) == (7, 8, 9)
    assert (BYTES.begin, BYTES.end, BYTES.size) == (256, 257, 258)
    assert CHARACTERS.encode("nab 猫") == [4, 2, 3, 1, 5]
    assert CHARACTERS.decode([7, 4, 2, 7, 8, 3, 8]) == "nab"
    assert CHARACTERS.pieces([7, 4, 2, 8, 8, 0]) == ["<begin>", "n", "a", "<end>", "<end>", "\ufffd"]
    assert BYTES.pieces([256, 0x61, 0xE7, 257, 0x8C]) == ["<begin>", "a", "<0xE7>", "<end>", "<0x8C>"]


def test_marks_inside_a_character():
    ids = [256, 0xE7, 257, 0x8C, 256, 256, 0xAB, 257]
    assert BYTES.decode(ids) == "猫"
    stream = BYTES.stream()
    assert [stream.push(id) for id in ids] == ["", "", "", "", "", "", "猫", ""]
    assert stream.finish() == ""
    # An incomplete character is still held back when a mark has come; the stream then begins anew.
    assert [stream.push(0xE7), stream.push(257), stream.finish(), stream.push(0x62)] == ["", "", "\ufffd", "b"]


def test_a_whole_mark_in_the_text_is_text():
    text = "<begin>a<end>"
    assert BYTES.encode(text) == list(text.encode())
    assert BYTES.decode([BYTES.begin, *BYTES.encode(text), BYTES.end]) == text


@pytest.mark.parametrize("tokenizer", BOTH)
@given(text=st.text())
def test_no_text_makes_a_mark(tokenizer, text):
    ids = tokenizer.encode(text)
    assert ids == tokenizer.inner.encode(text)
    assert all(id < tokenizer.begin for id in ids)
    array = tokenizer.encode_array(text)
    assert (array.dtype, array.tolist()) == (np.int64, ids)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.data())
def test_there_and_back_with_marks_anywhere(text, data):
    ids = BYTES.encode(text)
    for place in data.draw(st.lists(st.integers(0, len(ids)), max_size=6)):
        ids.insert(place, data.draw(st.sampled_from([BYTES.begin, BYTES.end])))
    assert BYTES.decode(ids) == streamed(BYTES, ids) == text


@pytest.mark.parametrize("tokenizer", BOTH)
@given(data=st.data())
def test_a_stream_joined_is_the_decoded_text(tokenizer, data):
    # Marks, and bytes that begin or continue a character, more often than chance would have them.
    often = [tokenizer.begin, tokenizer.end, *tokenizer.encode("猫")]
    ids = data.draw(st.lists(st.sampled_from(often) | st.integers(0, tokenizer.size - 1)))
    assert streamed(tokenizer, ids) == tokenizer.decode(ids)
    kept = [id for id in ids if id < tokenizer.begin]
    assert tokenizer.decode(ids) == tokenizer.inner.decode(kept)
    shown = tokenizer.pieces(ids)
    assert [shown[place] for place, id in enumerate(ids) if id < tokenizer.begin] == tokenizer.inner.pieces(kept)
    assert len(shown) == len(ids)


@pytest.mark.parametrize("tokenizer", BOTH)
@pytest.mark.parametrize("wrong", [-1, "size", 10**30])
def test_an_id_outside_names_the_whole_size(monkeypatch, tokenizer, wrong):
    id = tokenizer.size if wrong == "size" else wrong
    line = rf"Token id {id} is outside the vocabulary of {tokenizer.size} \(ids 0 to {tokenizer.size - 1}\)"
    for use in (tokenizer.decode, tokenizer.pieces):
        with pytest.raises(UserError, match=line):
            use([1, id, tokenizer.end])
    with pytest.raises(UserError, match=line):
        tokenizer.stream().push(id)
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    with pytest.raises(UserError, match=rf"token 编号 {id} 超出词表（大小 {tokenizer.size}"):
        tokenizer.decode([id])


def test_empty_and_arrays():
    for tokenizer in BOTH:
        assert (tokenizer.encode(""), tokenizer.decode([]), tokenizer.pieces([])) == ([], "", [])
        array = np.array([tokenizer.size - 2, *tokenizer.encode("ban"), tokenizer.size - 1], dtype=np.uint16)
        assert (tokenizer.decode(array), tokenizer.pieces(array)[-2:]) == ("ban", ["n", "<end>"])
        assert tokenizer.decode([tokenizer.size - 1, tokenizer.size - 2]) == ""
        with pytest.raises(UserError, match="one row of whole numbers"):
            tokenizer.decode([[1, 2]])


def test_saved_and_loaded():
    assert BYTES.to_dict() == {
        "type": "MarkedTokenizer",
        "format_version": 1,
        "inner": {"type": "ByteTokenizer", "format_version": 1},
    }
    for tokenizer in BOTH:
        loaded = tokenizer_from_dict(json.loads(json.dumps(tokenizer.to_dict(), ensure_ascii=False)))
        assert loaded == tokenizer
        assert loaded.encode("ban z") == tokenizer.encode("ban z")
    assert CHARACTERS != BYTES
    assert ByteTokenizer() != BYTES


def saved(inner: object) -> dict[str, object]:
    return {"type": "MarkedTokenizer", "format_version": 1, "inner": inner}


def deeply(levels: int) -> dict[str, object]:
    found = BYTES.to_dict()
    for _ in range(levels):
        found = saved(found)
    return found


@pytest.mark.parametrize(
    ("found", "line"),
    [
        ({"type": "MarkedTokenizer", "format_version": 1}, "damaged: inner is None"),
        (saved("bytes"), "damaged: inner is 'bytes'"),
        (saved({}), "damaged: inner.format_version is None"),
        (saved({"format_version": 1}), "damaged: inner.type is None"),
        (saved({"type": "WordTokenizer", "format_version": 1}), "damaged: inner.type is 'WordTokenizer'"),
        (saved({"type": "CharacterTokenizer", "format_version": 1}), "damaged: inner.characters is None"),
        (saved({"type": "CharacterTokenizer", "format_version": 1, "characters": "aa"}), "hold 'a' where it may not"),
        (saved({"type": "ByteTokenizer", "format_version": 5}), "version 5; this clearhead reads version 4: upgrade"),
        ({**saved(ByteTokenizer().to_dict()), "format_version": 5}, "version 5; this clearhead reads version 4"),
        ({**saved(ByteTokenizer().to_dict()), "format_version": 0}, "damaged: format_version is 0"),
        (deeply(1), "damaged: inner.type is 'MarkedTokenizer'"),
        (deeply(100_000), "damaged: inner.type is 'MarkedTokenizer'"),
    ],
    ids=range(12),
)
def test_a_damaged_dict_is_one_line(found, line):
    with pytest.raises(UserError, match=line) as caught:
        tokenizer_from_dict(found)
    assert "\n" not in str(caught.value)


def test_marks_are_not_put_around_marks(monkeypatch):
    with pytest.raises(UserError, match="has marks already"):
        MarkedTokenizer(BYTES)
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    with pytest.raises(UserError, match="已带有标记"):
        MarkedTokenizer(BYTES)
