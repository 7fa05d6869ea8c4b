"""Documents between marks, views that are read only where a step needs them, and whole texts in strides."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.choices_positions import Learned
from clearhead.models.config import DecoderConfig
from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Batch, Ids, Marked, Windows, strided, together, whole
from clearhead.training.fit import evaluate
from clearhead.training.losses import next_token
from tests.training.toy_documents import BEGIN, END, View, Views, marked, numbered

LENGTHS = st.lists(st.integers(0, 25), min_size=1, max_size=4)
MARK = st.sampled_from([(None, None), (BEGIN, None), (None, END), (BEGIN, END)])

# Marks


@given(st.integers(0, 6), MARK, st.integers(-9, 9), st.integers(-9, 9))
def test_a_marked_document_is_a_document(
    length: int, marks: tuple[int | None, int | None], start: int, stop: int
) -> None:
    """Its slices are those of the list written by hand."""
    ids = np.arange(40, 40 + length)
    by_hand, made = marked(ids, *marks), Marked(View(ids, []), *marks)
    assert len(made) == len(by_hand)
    assert made[:].tolist() == by_hand
    assert made[start:stop].tolist() == by_hand[start:stop]
    assert made[start:stop].dtype == np.int64


def test_no_more_of_a_marked_document_is_read_than_asked_for() -> None:
    views = Views([np.arange(100)])
    made = Marked(views[0], BEGIN, END)
    assert made[0:1].tolist() == [BEGIN]
    assert made[101:].tolist() == [END]
    assert views.read == []
    assert made[98:].tolist() == [97, 98, 99, END]
    assert views.read == [(97, 100)]


# Views


def test_windows_are_the_same_of_views_and_read_nothing_else() -> None:
    documents = numbered(500, 3, 0, 77)
    views = Views(documents)
    ours, theirs = Windows(views, 6, 5, seed=2), Windows(documents, 6, 5, seed=2)
    assert views.read == []
    for step in (0, 30, 7):
        views.read.clear()
        assert all(x.equal(y) for x, y in zip(ours(step), theirs(step), strict=True))
        assert [stop - start for start, stop in views.read] == [7] * 5


def test_a_whole_text_is_read_once_a_window_at_a_time() -> None:
    documents = numbered(50, 1, 0, 13)
    views = Views(documents)
    for ours, theirs in zip(whole(views, 6, 3), whole(documents, 6, 3), strict=True):
        assert all(x.equal(y) for x, y in zip(ours, theirs, strict=True))
    assert max(stop - start for start, stop in views.read) == 7
    assert sum(stop - start - 1 for start, stop in views.read) == 49 + 12


def test_what_holds_no_window_is_refused_in_a_line() -> None:
    for documents in ([], [np.arange(0)], [np.arange(1)], [np.arange(6)] * 9):
        with pytest.raises(UserError, match="no text has more than 6 tokens"):
            Windows(documents, 6, 2, seed=0)


# Whole texts, in strides

Walk = Callable[..., Iterable[Batch]]


def check_strided(
    walk: Walk, lengths: list[int], sizes: tuple[int, int, int], begin: int | None, end: int | None
) -> None:
    """Each target once and in order, each after as many of its document's tokens as are promised."""
    documents, (context, stride, batch) = numbered(*lengths), sizes
    expected = [marked(document, begin, end) for document in documents]
    found: list[int] = []
    which = (number for number, ids in enumerate(expected) for _ in ids[1:])
    place = (n for ids in expected for n in range(1, len(ids)))
    for inputs, targets in walk(documents, context, stride, batch, begin=begin, end=end):
        assert inputs.shape == targets.shape
        assert inputs.shape[1] == context
        assert inputs.shape[0] <= batch
        for row, wanted in zip(inputs.tolist(), targets.tolist(), strict=True):
            assert any(target != IGNORED for target in wanted)
            for here in (n for n, target in enumerate(wanted) if target != IGNORED):
                ids, at = expected[next(which)], next(place)
                seen = here + 1
                assert row[:seen] == ids[at - seen : at]
                assert seen >= min(at, context - stride + 1)
                assert seen == at or at > context
                found.append(wanted[here])
    assert found == [token for ids in expected for token in ids[1:]]


@given(LENGTHS, st.integers(1, 7), st.data(), st.integers(1, 5), MARK)
def test_every_target_once_after_as_many_tokens_as_the_stride_promises(
    lengths: list[int], context: int, data: Any, batch: int, marks: tuple[int | None, int | None]
) -> None:
    stride = data.draw(st.integers(1, context))
    check_strided(strided, lengths, (context, stride, batch), *marks)


def changed(change: Callable[[Batch], Batch]) -> Walk:
    return lambda *arguments, **marks: (change(batch) for batch in strided(*arguments, **marks))


FAULTY: dict[str, Walk] = {
    "stride of T": lambda documents, T, stride, batch, **marks: strided(documents, T, T, batch, **marks),
    "stride one more": lambda documents, T, stride, batch, **marks: strided(documents, T, stride + 1, batch, **marks),
    "twice": changed(lambda batch: Batch(batch.inputs, batch.inputs.roll(-1, -1))),
    "end lost": lambda *arguments, begin, end: strided(*arguments, begin=begin, end=None),
    "begin lost": lambda *arguments, begin, end: strided(*arguments, begin=None, end=end),
    "joined": lambda documents, *rest, **marks: strided([np.concatenate(documents)], *rest, **marks),
    "last lost": lambda *arguments, **marks: list(strided(*arguments, **marks))[:-1],
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_faulty_stride_is_caught(fault: str) -> None:
    case = ([20, 3, 0, 1, 9], (5, 2, 3), BEGIN, END)
    check_strided(strided, *case)
    with pytest.raises(AssertionError):
        check_strided(FAULTY[fault], *case)


def test_a_stride_of_the_context_is_the_plain_walk() -> None:
    documents = numbered(20, 3, 0, 1, 9)
    for ours, theirs in zip(strided(documents, 5, 5, 3), whole(documents, 5, 3), strict=True):
        assert all(x.equal(y) for x, y in zip(ours, theirs, strict=True))


def test_strides_by_hand() -> None:
    (batch,) = strided([np.array([1, 2, 3, 4, 5, 6, 7])], 4, 2, 9, begin=8, end=9)
    assert batch.inputs.tolist() == [[8, 1, 2, 3], [2, 3, 4, 5], [4, 5, 6, 7]]
    assert batch.targets.tolist() == [[1, 2, 3, 4], [IGNORED, IGNORED, 5, 6], [IGNORED, IGNORED, 7, 9]]


@pytest.mark.parametrize("stride", [0, -1, 6])
def test_a_stride_outside_the_context_is_refused(stride: int) -> None:
    with pytest.raises(UserError, match=rf"stride = {stride} must be 1 \.\.\. 5"):
        next(strided(numbered(9), 5, stride, 1))


@pytest.mark.parametrize("limit", [0, 1, 4, 5, 18, 19, 20, 28, 29, 1000])
@pytest.mark.parametrize("stride", [2, 5])
def test_a_limit_scores_the_first_so_many_and_reads_no_further(limit: int, stride: int) -> None:
    """20 tokens have 19 targets, 1 and 0 have none, 11 have 10: 29 in all."""
    documents = numbered(20, 1, 0, 11)
    views = Views(documents)
    batches = list(strided(views, 5, stride, 2, limit=limit))
    found = [t for batch in batches for t in batch.targets.flatten().tolist() if t != IGNORED]
    assert found == [*documents[0][1:].tolist(), *documents[3][1:].tolist()][:limit]
    assert bool(all((batch.targets != IGNORED).any(-1).all() for batch in batches))
    assert all(stop <= limit + 1 for _, stop in views.read)
    assert views.asked == ([0] if limit < 20 else [0, 1, 2, 3])
    if stride == 5:
        for ours, theirs in zip(whole(documents, 5, 2, limit=limit), batches, strict=True):
            assert all(x.equal(y) for x, y in zip(ours, theirs, strict=True))


CONFIG = DecoderConfig(vocab=13, layers=2, heads=2, width=12, context=6, positions=Learned())
TEXT: list[Ids] = [np.random.default_rng(seed).integers(11, size=size) for seed, size in enumerate((23, 1, 0, 8))]


def scored_by_hand(model: torch.nn.Module, stride: int) -> tuple[float, int]:
    """Σ -ln p of each token after exactly the tokens before it that its window shows, one at a time."""
    total, count = 0.0, 0
    for document in TEXT:
        ids = marked(document, 11, 12)
        for at in range(1, len(ids)):
            # The first window whose targets reach this one.
            window = 0 if at <= CONFIG.context else -(-(at - CONFIG.context) // stride)
            with torch.no_grad():
                logits = model(torch.tensor([ids[window * stride : at]]))[0, -1]
            total -= logits.log_softmax(-1)[ids[at]].item()
            count += 1
    return total, count


@pytest.mark.parametrize("stride", [1, 4, 6])
def test_the_loss_in_strides_is_that_of_each_token_by_hand_whatever_the_batch(stride: int) -> None:
    model = build(CONFIG, seed=1).double().eval()
    total, count = scored_by_hand(model, stride)
    for batch in (1, 3, 50):
        walk = strided(TEXT, CONFIG.context, stride, batch, begin=11, end=12)
        assert evaluate(model, walk, next_token) == pytest.approx(total / count, abs=1e-12)
    other = scored_by_hand(model, 1 + stride % 6)
    assert other[1] == count
    assert abs(other[0] - total) > 1e-6


# Rows together


@given(st.lists(st.integers(1, 9), max_size=12), st.integers(1, 30))
def test_rows_go_together_while_they_have_room(widths: list[int], places: int) -> None:
    batches = list(together(widths, lambda width: width, places))
    assert list(itertools.chain(*batches)) == widths
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(batch) <= places
    for batch, after in itertools.pairwise(batches):
        assert (len(batch) + 1) * max(*batch, after[0]) > places
