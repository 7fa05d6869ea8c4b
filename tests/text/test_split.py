"""The split: the last tenth validates, nothing is in both parts, and small texts shrink the context and say so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.text import split_document, split_documents


def test_the_last_tenth_validates():
    text = "".join(chr(0x4E00 + index) for index in range(1234))
    split = split_document(text, 64)
    assert (len(split.train), len(split.validation)) == (1110, 124)
    assert split.validation == text[-124:]
    assert not set(split.train) & set(split.validation)
    assert (split.context, split.notes) == (64, ())


@given(st.integers(11, 3000), st.integers(1, 500))
def test_every_size_leaves_a_window_in_both_parts(length, context):
    text = "".join(chr(0x4E00 + index) for index in range(length))
    split = split_document(text, context)
    assert split.train + split.validation == text
    assert 1 <= split.context <= context
    assert min(len(split.train), len(split.validation)) >= split.context + 1
    assert (split.context < context) == bool(split.notes)


@pytest.mark.parametrize(("characters", "used"), [(1000, 99), (333, 33)])
def test_one_kilobyte_works_and_says_that_the_context_shrank(characters, used):
    split = split_document("a" * characters, 128)
    assert split.context == used
    assert len(split.notes) == 1
    assert f"shrinks from 128 to {used}" in split.notes[0]


def test_a_text_that_cannot_be_split():
    assert split_document("a" * 11, 8).context == 1
    with pytest.raises(UserError, match="has 10 characters; at least 11"):
        split_document("a" * 10, 8)
    with pytest.raises(UserError, match="context is 0"):
        split_document("a" * 100, 0)
    with pytest.raises(UserError, match="no text"):
        split_documents([], 8)


def test_each_document_is_split_by_itself():
    texts = ["a" * 5000, "b" * 1007, "c" * 300]
    split = split_documents(texts, 280)
    assert split.train == ("a" * 4500, "b" * 906, "c" * 270)
    assert split.validation == ("a" * 500, "b" * 101, "c" * 30)
    # The long document keeps its context; the one that cannot fill a window is named.
    assert split.context == 280
    assert len(split.notes) == 1
    assert split.notes[0].startswith("Document 3 has only 270 characters for training, less than one window of 281")


def test_documents_that_are_all_short_shrink_the_context():
    split = split_documents(["a" * 1000, "b" * 1200], 256)
    assert split.context == 119
    assert len(split.notes) == 1
