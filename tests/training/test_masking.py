"""Masked tokens: which are hidden, and how often."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Ids
from clearhead.training.masking import Hiding, Masked, MaskedBatch, masked_whole
from clearhead.training.order import ALL, Share
from tests.training.toy_documents import BEGIN, END, MASK, Views, marked, numbered

LENGTHS = st.lists(st.integers(0, 25), min_size=1, max_size=4)
MARK = st.sampled_from([(None, None), (BEGIN, None), (None, END), (BEGIN, END)])
VOCAB = 1000
Mark = tuple[int | None, int | None]


def masked(
    documents: Any,
    context: int,
    batch: int,
    seed: int = 0,
    marks: Mark = (BEGIN, END),
    *,
    share: Share = ALL,
    **how: Any,
) -> Masked:
    hiding = Hiding(MASK, VOCAB, **how)
    return Masked(documents, context, batch, seed, hiding=hiding, begin=marks[0], end=marks[1], share=share)


def fixed(
    documents: Any,
    context: int,
    batch: int,
    seed: int = 0,
    marks: Mark = (BEGIN, END),
    *,
    limit: int | None = None,
    **how: Any,
) -> Any:
    hiding = Hiding(MASK, VOCAB, **how)
    return masked_whole(documents, context, batch, seed, hiding=hiding, begin=marks[0], end=marks[1], limit=limit)


def rows_of(batches: Iterable[MaskedBatch]) -> list[tuple[list[int], list[int]]]:
    """Inputs and targets of each row, without its padding."""
    rows = []
    for batch in batches:
        assert batch.inputs.shape == batch.targets.shape == batch.real.shape
        assert bool(batch.real.all(-1).any()), "no row fills the batch's width"
        assert bool((batch.targets[~batch.real] == IGNORED).all())
        for inputs, targets, real in zip(*batch, strict=True):
            assert real.tolist() == sorted(real.tolist(), reverse=True)
            rows.append((inputs[real].tolist(), targets[real].tolist()))
    return rows


def check_masked(rows: list[tuple[list[int], list[int]]], windows: list[list[int]], rate: float = 0.15) -> None:
    """The rows are these windows, in any order, and each hides as many of its tokens as it should, and no mark."""
    originals = []
    for inputs, targets in rows:
        chosen = [place for place, target in enumerate(targets) if target != IGNORED]
        original = [targets[n] if n in chosen else token for n, token in enumerate(inputs)]
        originals.append(original)
        free = [place for place, token in enumerate(original) if token not in {BEGIN, END}]
        assert set(chosen) <= set(free)
        assert len(chosen) == max(1, round(rate * len(free)))
        for place in chosen:
            assert inputs[place] in {MASK, original[place]} or 0 <= inputs[place] < VOCAB
    assert sorted(originals) == sorted(windows)


def windows_of(documents: list[Ids], context: int, marks: Mark) -> list[list[int]]:
    """The windows by hand: each document with an id in as few parts as may be, that differ by one at most."""
    found = []
    for document in documents:
        if len(document):
            ids = marked(document, *marks)
            count = math.ceil(len(ids) / context)
            cuts = [math.floor(number * len(ids) / count) for number in range(count + 1)]
            found += [ids[start:stop] for start, stop in pairwise(cuts)]
    return found


@given(LENGTHS, st.integers(3, 9), st.integers(0, 99), MARK)
def test_an_epoch_is_every_window_once(lengths: list[int], context: int, seed: int, marks: Mark) -> None:
    documents = numbered(*lengths)
    if not any(lengths):
        with pytest.raises(UserError, match="no token that could be hidden"):
            masked(documents, context, 1, seed, marks)
        return
    windows = windows_of(documents, context, marks)
    made = masked(documents, context, 1, seed, marks)
    for epoch in range(2):
        steps = range(epoch * made.an_epoch, (epoch + 1) * made.an_epoch)
        check_masked(rows_of(made(step) for step in steps), windows)
    assert not any(set(window) <= {BEGIN, END} for window in windows)
    whole = rows_of(fixed(documents, context, 3, seed, marks))
    check_masked(whole, windows)
    in_order = [[t if t != IGNORED else x for x, t in zip(*row, strict=True)] for row in whole]
    assert in_order == windows


def with_a_mark_hidden(row: tuple[list[int], list[int]]) -> tuple[list[int], list[int]]:
    inputs, targets = row
    return [MASK, *inputs[1:]], [inputs[0], *targets[1:]]


@pytest.mark.parametrize(
    "faulty",
    [
        lambda rows: [with_a_mark_hidden(row) for row in rows],
        lambda rows: rows[:-1],
        lambda rows: [*rows, rows[0]],
        lambda rows: [(inputs, inputs) for inputs, _ in rows],
        lambda rows: [(inputs, [*targets[1:], IGNORED]) for inputs, targets in rows],
        lambda rows: [([VOCAB if t != IGNORED else x for x, t in zip(*row, strict=True)], row[1]) for row in rows],
    ],
    ids=["mark hidden", "one lost", "one twice", "everything counts", "shifted", "no id of a text"],
)
def test_a_faulty_masking_is_caught(faulty: Callable[..., Any]) -> None:
    documents = numbered(21, 1, 0, 7)
    rows, windows = rows_of(fixed(documents, 9, 4)), windows_of(documents, 9, (BEGIN, END))
    check_masked(rows, windows)
    with pytest.raises(AssertionError):
        check_masked(faulty(rows), windows)


def test_the_windows_by_hand() -> None:
    """Ten ids in four, three and three; never more windows than needed."""
    documents = [np.arange(8), np.arange(20, 22), np.arange(0)]
    assert windows_of(documents, 4, (BEGIN, END)) == [[BEGIN, 0, 1], [2, 3, 4], [5, 6, 7, END], [BEGIN, 20, 21, END]]
    check_masked(rows_of(fixed(documents, 4, 3)), windows_of(documents, 4, (BEGIN, END)))


# How often


def quantiles(n: int, p: float, outside: float = 1e-7) -> tuple[int, int]:
    """Counts that a binomial of n and p leaves, on each side, with a probability below `outside`; exact sums."""
    k = np.arange(n + 1)
    log_factorials = np.cumsum(np.log(np.maximum(k, 1)))
    logs = log_factorials[-1] - log_factorials - log_factorials[::-1] + k * math.log(p) + (n - k) * math.log1p(-p)
    below = np.exp(logs).cumsum()
    return int(np.searchsorted(below, outside)), int(np.searchsorted(below, 1 - outside))


def test_the_quantiles_by_hand() -> None:
    """Ten fair coins: 0 or 10 heads with 1/1024 each."""
    assert quantiles(10, 0.5, 1 / 1000) == (1, 9)
    assert quantiles(10, 0.5, 1 / 1025) == (0, 10)


def check_rates(hiding: Callable[[Ids, range, np.random.Generator], tuple[Ids, Ids]]) -> None:
    """Eight in ten chosen tokens become the mask, one a random id, one stays; every place is chosen as often.

    4,000 windows of 42 tokens, two of them marks: 6 of 40 are chosen each time.
    """
    size, chosen = 4000, 6
    ids = np.array([BEGIN, *range(40), END])
    kinds: Counter[str] = Counter()
    places, random_ids = np.zeros(42, dtype=int), []
    for number in range(size):
        inputs, targets = hiding(ids, range(1, 41), np.random.default_rng([0, number]))
        where = np.flatnonzero(targets != IGNORED)
        assert len(where) == chosen
        places[where] += 1
        masks, stays = inputs[where] == MASK, inputs[where] == ids[where]
        kinds.update({"mask": int(masks.sum()), "stays": int(stays.sum())})
        random_ids += inputs[where][~masks & ~stays].tolist()
    total = size * chosen
    # A random id is by chance the token itself once in `VOCAB` cases.
    expected = {"mask": 0.8, "stays": 0.1 + 0.1 / VOCAB}
    for kind, probability in expected.items():
        least, most = quantiles(total, probability)
        assert least <= kinds[kind] <= most, kind
    least, most = quantiles(total, 0.1 * (1 - 1 / VOCAB))
    assert least <= len(random_ids) <= most
    assert 0 <= min(random_ids) < 20
    assert VOCAB - 20 < max(random_ids) < VOCAB
    least, most = quantiles(len(random_ids), 0.5)
    assert least <= sum(token < VOCAB // 2 for token in random_ids) <= most
    assert places[[0, -1]].tolist() == [0, 0]
    least, most = quantiles(size, chosen / 40)
    assert least <= places[1:-1].min() <= places[1:-1].max() <= most


def test_the_rates_are_those_of_the_paper() -> None:
    check_rates(Hiding(MASK, VOCAB))


@pytest.mark.parametrize(
    ("shares", "vocab", "place"),
    [
        ((0.77, 0.115), VOCAB, None),
        ((0.8, 0.13), VOCAB, None),
        ((0.8, 0.1), VOCAB + 3, None),
        ((0.8, 0.1), 40, None),
        ((0.8, 0.1), VOCAB, 3),
    ],
    ids=["fewer masks", "fewer stay", "marks among random ids", "half of the vocabulary", "a place is preferred"],
)
def test_faulty_rates_are_caught(
    shares: tuple[float, float], vocab: int, place: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clearhead.training.masking.MASKED", shares[0])
    monkeypatch.setattr("clearhead.training.masking.RANDOM", shares[1])

    def hiding(ids: Ids, free: range, generator: np.random.Generator) -> tuple[Ids, Ids]:
        preferred = free if place is None or generator.random() < 0.5 else range(place, free.stop)
        return Hiding(MASK, vocab, 6 / len(preferred))(ids, preferred, generator)

    with pytest.raises(AssertionError):
        check_rates(hiding)


def test_every_id_below_the_vocabulary_is_drawn() -> None:
    found = set()
    for number in range(300):
        inputs, targets = Hiding(MASK, 3)(np.full(9, 50), range(9), np.random.default_rng(number))
        found.update(inputs[targets != IGNORED].tolist())
    assert found == {0, 1, 2, 50, MASK}


@pytest.mark.parametrize(("rate", "chosen"), [(0.15, 3), (0.5, 10), (1.0, 20), (0.001, 1)])
def test_the_rate_may_be_another(rate: float, chosen: int) -> None:
    (batch,) = fixed([np.arange(20)], 99, 1, rate=rate)
    assert int((batch.targets != IGNORED).sum()) == chosen


# Order


def test_other_tokens_are_hidden_each_epoch_and_the_same_in_each_evaluation() -> None:
    documents = numbered(40)
    made = masked(documents, 99, 1)
    assert made.an_epoch == 1
    targets = [tuple(made(step).targets[0].tolist()) for step in range(5)]
    assert len(set(targets)) == 5
    assert targets != [tuple(masked(documents, 99, 1, seed=1)(step).targets[0].tolist()) for step in range(5)]
    once, again, other = (rows_of(fixed(numbered(40, 9, 30), 7, 3, seed)) for seed in (0, 0, 1))
    assert once == again != other


def test_an_evaluation_asks_the_same_whatever_the_batch_and_may_end_sooner() -> None:
    documents = numbered(40, 9, 0, 30)
    every = rows_of(fixed(documents, 7, 1))
    for batch in (2, 5, 50):
        assert rows_of(fixed(documents, 7, batch)) == every
    # Five ids each with their marks: as many go together as have the places of two windows of 15.
    shapes = [tuple(each.inputs.shape) for each in fixed(numbered(3, 3, 3, 3, 3, 3, 3), 15, 2)]
    assert shapes == [(6, 5), (1, 5)]
    for limit in (0, 1, 7, 20, 83, 84, 85, 999):
        found = rows_of(fixed(documents, 7, 3, limit=limit))
        assert found == every[: len(found)]
        sizes = [len(inputs) for inputs, _ in found]
        assert sum(sizes) >= min(limit, 42 + 11 + 32)
        assert not sizes or sum(sizes[:-1]) < limit


def test_nothing_but_the_windows_of_a_step_is_read() -> None:
    documents = numbered(500, 3, 0, 77)
    views = Views(documents)
    ours, theirs = masked(views, 6, 5), masked(documents, 6, 5)
    assert views.read == []
    for step in (0, 30, 7):
        views.read.clear()
        assert all(x.equal(y) for x, y in zip(ours(step), theirs(step), strict=True))
        assert sum(stop - start for start, stop in views.read) <= 5 * 6


def test_the_batch_goes_to_a_device_whole() -> None:
    assert {tensor.device.type for tensor in masked(numbered(9), 6, 2)(0).to(torch.device("meta"))} == {"meta"}


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1, math.nan])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(UserError, match=r"rate = .* must be > 0, <= 1"):
        masked(numbered(9), 6, 2, rate=rate)


def test_a_context_without_room_is_refused() -> None:
    with pytest.raises(UserError, match="context = 2 must be >= 3"):
        masked(numbered(9), 2, 2)
