"""A text of numbers: what is an id and what is left out, streams, and the marks."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.text import MarkedTokenizer, tokenizer_from_dict
from clearhead.text.alignment import completion
from clearhead.text.numbers import NumberTokenizer
from clearhead.text.specials import encode_special, guarded, never_made

SMALL = NumberTokenizer(20)
WORDS = st.sampled_from(
    ["5", "017", "19", "20", "-1", "3.5", "cat", "１", "٣", "²", "9" * 5000, "0" * 5000 + "7", "\ud800"]
)
WRITTEN = st.lists(WORDS | st.sampled_from([" ", "\n", "\t", "\u3000", ","])).map("".join)


def streamed(tokenizer, ids):
    stream = tokenizer.stream()
    return "".join([*map(stream.push, ids), stream.finish()])


def test_by_hand():
    assert SMALL.encode("5 17 3") == [5, 17, 3]
    assert SMALL.decode([5, 17, 3]) == "5 17 3"
    assert SMALL.pieces([5, 17, 3]) == ["5", "17", "3"]
    assert SMALL.encode("5 cat -1 3.5 17\n19\t20 007 1,2 ５ ") == [5, 17, 19, 7]
    assert SMALL.encode("") == []
    assert SMALL.decode([]) == ""


def by_words(text):
    """The definition: words between white space, of digits alone, below the size."""
    short = (word.lstrip("0") or "0" for word in text.split() if word and set(word) <= set("0123456789"))
    return [int(word) for word in short if len(word) <= 2 and int(word) < SMALL.size]


@settings(max_examples=60)
@given(st.text() | WRITTEN)
def test_no_text_is_an_error(text):
    ids = SMALL.encode(text)
    assert ids == by_words(text)
    array = SMALL.encode_array(text)
    assert (array.dtype, array.tolist()) == (np.int64, ids)
    assert [row.tolist() for row in SMALL.encode_many([text, "5"])] == [ids, [5]]


def test_the_definition_tells_a_wrong_reading():
    """The planted fault: every run of digits, wherever it stands."""
    wrong = [int(digits) for digits in "5 3.5 -1".replace(".", " ").replace("-", " ").split()]
    assert wrong != by_words("5 3.5 -1") == SMALL.encode("5 3.5 -1") == [5]


@settings(max_examples=40)
@given(st.lists(st.integers(0, SMALL.size - 1)))
def test_ids_come_back(ids):
    text = SMALL.decode(ids)
    assert SMALL.encode(text) == ids
    assert streamed(SMALL, ids) == text


def test_a_stream_begins_anew():
    stream = SMALL.stream()
    assert [stream.push(3), stream.push(4), stream.finish(), stream.push(5)] == ["3", " 4", "", "5"]


def test_every_id_can_be_written_the_marks_too():
    marked = NumberTokenizer(20, begin=0, end=1)
    assert (marked.begin, marked.end, marked.specials, never_made(marked)) == (0, 1, {}, frozenset())
    assert marked.encode("0 5 1") == encode_special(marked, guarded(marked, "0 5 1")) == [0, 5, 1]
    assert marked.decode([0, 5, 1]) == "0 5 1"


@pytest.mark.parametrize("made", [SMALL, NumberTokenizer(7, begin=2), NumberTokenizer(1, end=0)])
def test_saved_and_loaded(made):
    saved = json.loads(json.dumps(made.to_dict()))
    assert tokenizer_from_dict(saved) == made
    assert tokenizer_from_dict(json.loads(json.dumps(MarkedTokenizer(made).to_dict()))) == MarkedTokenizer(made)


def test_characters_have_their_numbers():
    ids = np.array([5, 17, 3])
    assert completion(SMALL)("5 17 3", ids).tolist() == [1, 3, 2]
    assert completion(SMALL)("5  17 3", ids) is None


@pytest.mark.parametrize("wrong", [-1, 20, 10**30])
def test_an_id_outside_is_one_line(wrong):
    for use in (SMALL.decode, SMALL.pieces, lambda ids: SMALL.stream().push(ids[0])):
        with pytest.raises(UserError, match=f"Token id {wrong} is outside the vocabulary of 20"):
            use([wrong])


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"size": 0}, "A vocabulary of 0 ids cannot be"),
        ({"size": -3}, "A vocabulary of -3 ids cannot be"),
        ({"size": 10**30}, "choose between 1 and 16,777,216"),
        ({"size": None}, "size is None"),
        ({"size": "7"}, "size is '7'"),
        ({"size": True}, "size is True"),
        ({"begin": 20}, "The begin of texts is 20, which is outside the vocabulary of 20"),
        ({"end": -1}, "The end of texts is -1"),
        ({"end": 1.0}, "end is 1.0"),
    ],
)
def test_a_damaged_field_is_one_line(changed, line):
    with pytest.raises(UserError, match=line) as refusal:
        tokenizer_from_dict({**SMALL.to_dict(), **changed})
    assert "\n" not in str(refusal.value)
