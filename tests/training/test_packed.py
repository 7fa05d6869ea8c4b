"""Packed documents: every token learnt once an epoch, and every one once in a validation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from clearhead.messages import UserError
from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Ids
from clearhead.training.packed import PADDING, Packed, PackedBatch, packed_whole
from tests.training.toy_documents import BEGIN, END, Views, marked, numbered

LENGTHS = st.lists(st.integers(0, 25), min_size=1, max_size=6)
MARK = st.sampled_from([(None, None), (BEGIN, None), (None, END), (BEGIN, END)])
Mark = tuple[int | None, int | None]

# Batches


def test_a_document_by_hand() -> None:
    packed = Packed([np.arange(5)], 4, 2, 0, begin=11, end=12)
    rows = sorted(zip(*(tensor.tolist() for tensor in packed(0)), strict=True))
    assert rows == [
        ([3, 4, 12, 0], [4, 12, IGNORED, IGNORED], [0, 0, 0, -1]),
        ([11, 0, 1, 2], [0, 1, 2, 3], [0, 0, 0, 0]),
    ]


def test_documents_by_hand() -> None:
    """Both of one length, so that the borders are where they are in every order; the mark after a border is no target."""
    packed = Packed([np.array([5, 6]), np.array([7, 8])], 7, 1, 0, begin=11, end=12)
    (row,), (wanted,), (owners,) = (tensor.tolist() for tensor in packed(0))
    first, second = owners[0], owners[-1]
    assert {first, second} == {0, 1}
    assert owners == [first] * 4 + [second] * 3
    assert row == [11, *[[5, 6], [7, 8]][first], 12, 11, *[[5, 6], [7, 8]][second]]
    assert wanted == [*row[1:4], IGNORED, *row[5:], 12]


def epoch_of(packed: Packed, epoch: int) -> list[PackedBatch]:
    """All batches of an epoch, one window each."""
    return [packed(step) for step in range(epoch * packed.an_epoch, (epoch + 1) * packed.an_epoch)]


def learnt(batches: Iterable[PackedBatch]) -> Counter[tuple[int, int, int]]:
    """(document, input, target) of everything that counts."""
    found: Counter[tuple[int, int, int]] = Counter()
    for inputs, targets, owners in batches:
        assert inputs.shape == targets.shape == owners.shape
        real = targets != IGNORED
        assert bool(real.any(-1).all())
        assert not bool((owners[real] == PADDING).any())
        found.update(zip(owners[real].tolist(), inputs[real].tolist(), targets[real].tolist(), strict=True))
    return found


def check_learnt(batches: Iterable[PackedBatch], documents: list[Ids], begin: int | None, end: int | None) -> None:
    """Each token after the one before it in its document, once; the end after the last; never what begins a document."""
    expected: Counter[tuple[int, int, int]] = Counter()
    for number, document in enumerate(documents):
        ids = marked(document, begin, end)
        expected.update((number, before, token) for before, token in pairwise(ids))
    assert learnt(batches) == expected


@given(LENGTHS, st.integers(2, 9), st.integers(0, 99), MARK)
def test_every_token_is_a_target_once_an_epoch(lengths: list[int], context: int, seed: int, marks: Mark) -> None:
    documents = numbered(*lengths)
    if max(len(marked(document, *marks)) for document in documents) < 2:
        with pytest.raises(UserError, match="nothing to learn"):
            Packed(documents, context, 1, seed, begin=marks[0], end=marks[1])
        return
    packed = Packed(documents, context, 1, seed, begin=marks[0], end=marks[1])
    for epoch in range(2):
        batches = epoch_of(packed, epoch)
        check_learnt(batches, documents, *marks)
        assert {batch.inputs.shape for batch in batches} == {(1, context)}
        assert packed.targets == sum(int((batch.targets != IGNORED).sum()) for batch in batches)
        # Padding is the tail of one window alone.
        padding = [int((batch.documents == PADDING).sum()) for batch in batches]
        assert sum(padding) < context
        assert sum(count > 0 for count in padding) <= 1


def to_targets(change: Callable[[PackedBatch], Tensor]) -> Callable[[PackedBatch], PackedBatch]:
    return lambda batch: batch._replace(targets=change(batch))


FAULTY_BATCHES: dict[str, Callable[[PackedBatch], PackedBatch]] = {
    "begin as a target": to_targets(lambda batch: batch.targets.where(batch.inputs != END, BEGIN)),
    "end not learnt": to_targets(lambda batch: batch.targets.where(batch.targets != END, IGNORED)),
    "not shifted": to_targets(lambda batch: batch.inputs.where(batch.targets != IGNORED, IGNORED)),
    "shifted twice": to_targets(lambda batch: batch.targets.roll(-1, -1)),
    "padding counts": to_targets(lambda batch: batch.targets.where(batch.documents != PADDING, 0)),
    "borders of windows lost": to_targets(
        lambda batch: torch.cat([batch.targets[:, :-1], torch.full_like(batch.targets[:, :1], IGNORED)], -1)
    ),
}


@pytest.mark.parametrize("fault", FAULTY_BATCHES)
def test_a_faulty_batch_is_caught(fault: str) -> None:
    documents = numbered(7, 1, 0, 12, 3)
    batches = epoch_of(Packed(documents, 6, 1, 0, begin=BEGIN, end=END), 0)
    check_learnt(batches, documents, BEGIN, END)
    with pytest.raises(AssertionError):
        check_learnt([FAULTY_BATCHES[fault](batch) for batch in batches], documents, BEGIN, END)
    with pytest.raises(AssertionError):
        check_learnt(batches[:-1], documents, BEGIN, END)


def test_documents_and_windows_come_in_another_order_each_epoch() -> None:
    packed = Packed(numbered(*[5] * 12), 6, 1, 0, begin=BEGIN, end=END)
    neighbours = []
    for epoch in range(3):
        batches = epoch_of(packed, epoch)
        neighbours.append({tuple(dict.fromkeys(batch.documents[0].tolist())) for batch in batches})
        firsts = [batch.documents[0, 0].item() for batch in batches]
        assert any(abs(before - after) > 2 for before, after in pairwise(firsts))
    assert len({frozenset(each) for each in neighbours}) == 3


def test_the_windows_of_a_long_document_do_not_follow_one_another() -> None:
    packed = Packed(numbered(200), 6, 1, 0, begin=BEGIN, end=END)
    orders = [[batch.inputs[0, 1].item() for batch in epoch_of(packed, epoch)] for epoch in range(2)]
    assert sorted(orders[0]) == sorted(orders[1])
    assert len({*map(tuple, orders), tuple(sorted(orders[0]))}) == 3


def test_nothing_but_the_windows_of_a_step_is_read() -> None:
    documents = numbered(500, 3, 0, 77, 1, 1, 1)
    views = Views(documents)
    ours = Packed(views, 6, 5, 2, begin=BEGIN, end=END)
    theirs = Packed(documents, 6, 5, 2, begin=BEGIN, end=END)
    assert views.read == []
    for step in (0, 30, 7):
        views.read.clear()
        assert all(x.equal(y) for x, y in zip(ours(step), theirs(step), strict=True))
        assert 0 < sum(stop - start for start, stop in views.read) <= 5 * 7
    views.read.clear()
    assert len(list(packed_whole(views, 6, 5, begin=BEGIN, end=END))) > 5
    assert max(stop - start for start, stop in views.read) == 7


def test_one_document_may_be_longer_than_everything() -> None:
    documents = numbered(3, 1000, 0, 1)
    packed = Packed(documents, 7, 1, 0, begin=BEGIN, end=END)
    check_learnt(epoch_of(packed, 0), documents, BEGIN, END)
    check_learnt(packed_whole(documents, 7, 4, begin=BEGIN, end=END), documents, BEGIN, END)


@pytest.mark.parametrize("documents", [[], [np.arange(0)] * 3, [np.arange(1)] * 2])
def test_what_has_no_target_is_refused_in_a_line(documents: list[Ids]) -> None:
    with pytest.raises(UserError, match=f"nothing to learn: no token of the {len(documents)} documents"):
        Packed(documents, 4, 1, 0, begin=None, end=None)
    assert list(packed_whole(documents, 4, 1, begin=None, end=None)) == []


def test_a_context_of_one_token_is_refused() -> None:
    with pytest.raises(UserError, match="context = 1 must be >= 2"):
        Packed(numbered(9), 1, 1, 0, begin=None, end=None)


# Validation


@given(LENGTHS, st.integers(1, 9), st.integers(1, 4), MARK)
def test_a_validation_has_every_target_once_in_order_and_one_document_a_row(
    lengths: list[int], context: int, batch: int, marks: Mark
) -> None:
    documents = numbered(*lengths)
    batches = list(packed_whole(documents, context, batch, begin=marks[0], end=marks[1]))
    check_learnt(batches, documents, *marks)
    expected = [token for document in documents for token in marked(document, *marks)[1:]]
    assert [t for each in batches for t in each.targets.flatten().tolist() if t != IGNORED] == expected
    for each in batches:
        assert each.inputs.numel() <= context * batch
        assert bool((each.documents != PADDING).all(-1).any())
        for row in each.documents.tolist():
            assert len({number for number in row if number != PADDING}) == 1
        assert (each.documents == PADDING).equal(each.targets == IGNORED)


def test_short_documents_of_a_validation_go_together() -> None:
    """Four inputs each: seven have the places of two windows of 15."""
    shapes = [tuple(each.inputs.shape) for each in packed_whole(numbered(*[3] * 9), 15, 2, begin=BEGIN, end=END)]
    assert shapes == [(7, 4), (2, 4)]


@pytest.mark.parametrize("limit", [0, 1, 6, 7, 8, 20, 999])
def test_a_validation_may_end_after_so_many_targets(limit: int) -> None:
    documents = numbered(6, 0, 20)
    batches = packed_whole(documents, 5, 2, begin=BEGIN, end=END, limit=limit)
    found = [t for each in batches for t in each.targets.flatten().tolist() if t != IGNORED]
    assert found == [*documents[0].tolist(), END, END, *documents[2].tolist(), END][:limit]
