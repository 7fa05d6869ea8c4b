"""Sides: which documents validate follows from what they say alone, and no character is on both sides."""

import hashlib
import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.text import split, split_documents
from clearhead.text.documents import Document, Documents
from clearhead.text.split import SPLIT_BY_DOCUMENT, Sides, parted, sides, usable_context
from clearhead.text.survey import Survey, survey
from tests.text.test_survey import digest, documents_of

MANY = [f"document {number}: 小猫" for number in range(400)]
CUT = 2**64 / 10


def read(documents: Documents) -> list[str]:
    return ["".join(document.parts) for document in documents()]


def both(texts: list[str], size: int = 7) -> tuple[list[str], list[str]]:
    documents = documents_of(texts, size)
    where = sides(survey(documents))
    train, validation = (read(parted(documents, where, side)) for side in ("train", "validation"))
    assert [len(text) for text in train] == [int(length) for length in where.train if length]
    assert [len(text) for text in validation] == [int(length) for length in where.validation if length]
    return train, validation


def numbered(digests: list[int]) -> Survey:
    return Survey("a", np.full(len(digests), 5), np.array(digests, dtype=np.uint64), "")


def test_many_documents_go_whole_to_one_side_by_their_digest():
    train, validation = both(MANY)
    assert validation == [text for text in MANY if digest(text) < CUT]
    assert train == [text for text in MANY if digest(text) >= CUT]
    assert 20 < len(validation) < 60
    where = sides(survey(documents_of(MANY)))
    assert where.by_document
    assert (
        where.stated == f"{len(train)} documents train and {len(validation)} validate, chosen by a hash of their text"
    )
    # The planted faults: the last tenth, and a digest of which another end is taken, choose others.
    assert validation != MANY[-len(validation) :]
    assert validation != [text for text in MANY if int(hashlib.sha256(text.encode()).hexdigest()[-16:], 16) < CUT]


def test_sizes_of_many_documents_are_no_list(monkeypatch):
    """Whatever the blocks are; the planted fault, one block of all, holds 64 bytes and more for each document."""
    whole = both(MANY)
    monkeypatch.setattr(split, "BLOCK", 7)
    assert both(MANY) == whole
    lengths = np.arange(1000, 101_000)
    where = Sides(True, lengths, lengths, "")
    none = [Document(None, None, ())] * len(lengths)

    def held(block: int) -> float:
        monkeypatch.setattr(split, "BLOCK", block)
        tracemalloc.start()
        assert sum(1 for _ in parted(lambda: iter(none), where, "train")()) == len(lengths)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most / len(lengths)

    assert held(1 << 10) < 4
    assert held(1 << 20) > 60


@given(st.randoms(), st.integers(20, 60), st.integers(1, 9))
def test_neither_the_order_nor_other_documents_have_a_say(chance: random.Random, count, more):
    texts = MANY[:count]
    train, validation = both(texts)
    assert sorted(train + validation) == sorted(texts)
    assert not set(train) & set(validation)
    chance.shuffle(texts)
    again = both(texts + texts[:more])
    assert set(again[1]) == set(validation)
    assert not set(again[0]) & set(again[1])


def test_the_border_is_a_tenth_of_all_numbers():
    border = 2**64 // 10
    last = numbered([border, border - 1] + [border + 1] * 10 + [2**64 - 1] * 10)
    assert sides(last).validation.tolist() == [5, 5] + [0] * 20
    # If none is so low, those with the lowest do; equal ones together.
    none = numbered([border + 9] * 3 + [border + 2] * 2 + [2**64 - 1] * 16)
    assert sides(none).validation.tolist() == [0] * 3 + [5] * 2 + [0] * 16
    # If all are, no other than the lowest.
    every = numbered([7] * 2 + [9] * 19)
    assert sides(every).validation.tolist() == [5] * 2 + [0] * 19


@pytest.mark.parametrize("text", [MANY[0], next(text for text in MANY if digest(text) < CUT)])
def test_documents_that_are_all_equal(monkeypatch, text):
    with pytest.raises(UserError, match=r"^All 20 documents are equal, so none can be kept for validation"):
        both([text] * 20)
    assert len(both([text] * 20 + [MANY[1]])[1]) in {1, 20}
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    with pytest.raises(UserError, match="全部 20 个文档都相同"):
        both([text] * 20)


def test_from_twenty_documents_on():
    assert SPLIT_BY_DOCUMENT == 20
    few, many = (sides(survey(documents_of(MANY[:count]))) for count in (19, 20))
    assert not few.by_document
    assert many.by_document
    assert few.stated == (
        f"The first {few.train.sum()} characters train; the last 10% of each document, {few.validation.sum()} in all, "
        "validate"
    )


@given(st.lists(st.integers(0, 120), min_size=1, max_size=8), st.integers(1, 40))
def test_few_documents_are_cut_as_in_memory_wherever_their_parts_end(lengths, size):
    texts = ["".join(chr(0x4E00 + 200 * number + place) for place in range(n)) for number, n in enumerate(lengths)]
    documents = documents_of(texts, size)
    if max(lengths) < 11:
        with pytest.raises(UserError, match=f"has {max(lengths)} characters; at least 11"):
            sides(survey(documents))
        return
    whole = split_documents(texts, 1)
    train, validation = both(texts, size)
    assert train == [text for text in whole.train if text]
    assert validation == [text for text in whole.validation if text]
    assert not set("".join(train)) & set("".join(validation))
    assert sorted("".join(train + validation)) == sorted("".join(texts))


def test_one_text_by_hand():
    assert both(["0123456789" * 3 + "abc"]) == (["0123456789" * 2 + "012345678"], ["9abc"])
    # A short text beside a long one trains whole.
    assert both(["0123456789", "x" * 20]) == (["0123456789", "x" * 18], ["xx"])


def test_a_document_that_is_not_cut_is_passed_on_as_it_is():
    short, long = Document(None, 1, ["x" * 5, "y"]), Document(None, 2, ["z" * 30])

    def documents():
        return iter([short, long])

    first, second = parted(documents, sides(survey(documents)), "train")()
    assert first is short
    assert second is not long


def test_documents_know_where_they_came_from():
    texts = [letter * 30 for letter in "abc"]
    documents = documents_of(texts)
    where = sides(survey(documents))
    assert [document.line for document in parted(documents, where, "validation")()] == [1, 2, 3]


def test_no_more_is_read_than_is_needed():
    taken: list[int] = []

    def counting():
        for document in documents_of(["a" * 1000], 10)():
            yield document._replace(parts=(taken.append(len(part)) or part for part in document.parts))

    where = sides(survey(documents_of(["a" * 1000])))
    (document,) = parted(counting, where, "train")()
    parts = iter(document.parts)
    assert next(parts) == "a" * 10
    assert taken == [10]
    assert sum(map(len, parts)) == 890
    assert sum(taken) == 900


@pytest.mark.parametrize("texts", [MANY[:29], MANY[:31]])
@pytest.mark.parametrize("side", ["train", "validation"])
def test_files_that_change_between_readings_are_an_error(texts, side):
    where = sides(survey(documents_of(MANY[:30])))
    with pytest.raises(UserError, match="The files changed"):
        read(parted(documents_of(texts), where, side))


def test_no_documents():
    with pytest.raises(UserError, match="There is no text to train on"):
        sides(survey(documents_of([])))


def test_the_context_that_both_sides_can_fill():
    assert usable_context(64, [100, 3], [70, 65]) == (
        64,
        (
            "Document 2 has only 3 characters for training, less than one "
            "window of 65: give a longer file or a smaller --model.context to train on it.",
        ),
    )
    context, notes = usable_context(64, [100], [11], "token")
    assert context == 10
    assert notes == (
        "The text is small: the context shrinks from 64 to 10, so that one window fits into the longest document "
        "for training (100 tokens) and one into the longest for validation (11).",
    )
    assert "Document 2 has only 5 tokens for training" in usable_context(9, [100, 5], [50], "token")[1][0]
    # A document that does not train at all is not called short.
    assert usable_context(9, [100, 0], [50]) == (9, ())


def test_many_short_documents_are_one_line():
    context, notes = usable_context(30, [*range(1, 41), 100], [100])
    assert (context, notes) == (
        30,
        (
            "30 of 41 documents are shorter than one window of 31: give longer texts or a smaller "
            "--model.context to train on them.",
        ),
    )


@pytest.mark.parametrize(("train", "validation"), [([1], [9]), ([9], [1, 1]), ([], [9]), ([9], [])])
def test_one_token_is_nothing_to_predict(train, validation):
    with pytest.raises(UserError, match="each needs 2, one to read and one to predict"):
        usable_context(4, train, validation, "token")
    with pytest.raises(UserError, match="context is 0"):
        usable_context(0, train, validation)


def test_sides_are_small():
    where = sides(survey(documents_of(MANY)))
    assert isinstance(where, Sides)
    assert where.train.nbytes + where.lengths.nbytes == 16 * len(MANY)
