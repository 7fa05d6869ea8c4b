"""Which samples an update has: a partition of every epoch, whatever the ranks, and a pure function of (seed, step, rank)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Windows
from clearhead.training.masking import Hiding, Masked
from clearhead.training.order import ALL, Epochs, Share
from clearhead.training.packed import Packed
from clearhead.training.pairs import Drawn, IdPair, Marks, Shuffled
from tests.training.toy_documents import BEGIN, END, MASK, numbered

DOCUMENTS = numbered(31, 4, 0, 1, 17, 9)
PAIRS = [IdPair(np.arange(n, n + 2 + n % 3), np.arange(n % 4)) for n in range(10)]
MARKS = Marks(BEGIN, END)
Make = Callable[[int, int, Share], Any]
"""From batch, seed and share to batches."""

MAKERS: dict[str, Make] = {
    "windows": lambda batch, seed, share: Windows(DOCUMENTS, 4, batch, seed, share=share),
    "packed": lambda batch, seed, share: Packed(DOCUMENTS, 5, batch, seed, begin=BEGIN, end=END, share=share),
    "masked": lambda batch, seed, share: Masked(
        DOCUMENTS, 6, batch, seed, hiding=Hiding(MASK, 70), begin=BEGIN, end=END, share=share
    ),
    "pairs": lambda batch, seed, share: Shuffled(PAIRS, MARKS, batch, seed, share=share),
}


def a_pair(generator: np.random.Generator) -> IdPair:
    ids = generator.integers(1000, size=1 + generator.integers(5))
    return IdPair(ids, ids[::-1].copy())


def drawn(batch: int, seed: int, share: Share) -> Drawn:
    return Drawn(a_pair, MARKS, batch=batch, seed=seed, share=share)


def samples(batch: Any) -> list[tuple[int, ...]]:
    """Each row of a batch: all its numbers, padding aside."""
    if hasattr(batch, "real"):
        hidden = batch.inputs.where(batch.targets == IGNORED, batch.targets)
        return [tuple(row[real].tolist()) for row, real in zip(hidden, batch.real, strict=True)]
    if hasattr(batch, "source"):
        rows = zip(batch.source, batch.source_real, batch.targets, strict=True)
        return [(*x[real].tolist(), *y[y != IGNORED].tolist()) for x, real, y in rows]
    return [tuple(row) for row in batch.inputs.tolist()]


def check_epochs(make: Make, batch: int, size: int, epochs: int = 2) -> None:
    """The ids of some epochs and two ranks: each epoch a partition, no overlap, the update that of one process."""
    one, ranks = make(batch, 3, ALL), [make(batch, 3, Share(rank, 2)) for rank in range(2)]
    seen: list[tuple[int, ...]] = []
    for step in range(-(-epochs * size // batch)):
        together = samples(one(step))
        assert len(together) == batch
        shares = [samples(rank(step)) for rank in ranks]
        assert shares == [together[0::2], together[1::2]]
        seen += together
    orders = [seen[epoch * size : (epoch + 1) * size] for epoch in range(epochs)]
    for order in orders:
        assert len(set(order)) == size
    assert len({tuple(order) for order in orders}) == epochs
    other = [row for step in range(-(-size // batch)) for row in samples(make(batch, 4, ALL)(step))]
    assert other[:size] != orders[0]


@pytest.mark.parametrize("batch", [2, 3, 4, 40])
@pytest.mark.parametrize("kind", MAKERS)
def test_two_epochs_and_two_ranks_are_a_partition_each(kind: str, batch: int) -> None:
    """Steps straddle epochs, and the largest batch is more than an epoch."""
    size = MAKERS[kind](batch, 0, ALL).epochs.size
    assert size % 4
    assert 3 < size < 40
    check_epochs(MAKERS[kind], batch, size)


@pytest.mark.parametrize("kind", ["packed", "masked", "pairs"])
def test_every_epoch_has_the_same_tokens(kind: str) -> None:
    """Packed documents are cut elsewhere in each epoch, so that tokens are counted, and of them those that are targets."""
    made = MAKERS[kind](1, 0, ALL)
    epochs = []
    for epoch in range(3):
        rows = [made(step) for step in range(epoch * made.epochs.size, (epoch + 1) * made.epochs.size)]
        learnt = [row.targets[row.targets != IGNORED].tolist() if kind == "packed" else samples(row)[0] for row in rows]
        epochs.append(sorted(token for tokens in learnt for token in tokens))
    assert epochs[0] == epochs[1] == epochs[2]


def ignoring_the_rank(share: Share, step: int, batch: int) -> range:
    return range(step * batch, (step + 1) * batch, share.ranks)


def blocks_of_ranks(share: Share, step: int, batch: int) -> range:
    """A partition, but not the one that is promised."""
    size = -(-batch // share.ranks)
    return range(step * batch + share.rank * size, min(step * batch + (share.rank + 1) * size, (step + 1) * batch))


def overlapping(share: Share, step: int, batch: int) -> range:
    return range(step * (batch - 1) + share.rank, step * (batch - 1) + batch, share.ranks)


@pytest.mark.parametrize("faulty", [ignoring_the_rank, blocks_of_ranks, overlapping])
def test_a_faulty_share_is_caught(faulty: Callable[..., range], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Share, "numbers", faulty)
    with pytest.raises(AssertionError):
        check_epochs(MAKERS["packed"], 4, MAKERS["packed"](1, 0, ALL).epochs.size)


@pytest.mark.parametrize("fault", ["same order", "with replacement", "no seed"])
def test_a_faulty_order_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def of(epochs: Epochs[Any], number: int) -> Any:
        epoch, place = divmod(number, epochs.size)
        seed = 0 if fault == "no seed" else epochs.seed
        order = epochs.order(np.random.default_rng([seed, 0 if fault == "same order" else epoch]))
        return order[int(np.random.default_rng(number).integers(epochs.size)) if fault == "with replacement" else place]

    monkeypatch.setattr(Epochs, "of", of)
    with pytest.raises(AssertionError):
        check_epochs(MAKERS["pairs"], 4, 10)


@given(st.integers(1, 9), st.integers(1, 25), st.integers(1, 5), st.integers(0, 4))
def test_the_shares_of_any_ranks_are_the_update(size: int, batch: int, ranks: int, step: int) -> None:
    epochs = Epochs(lambda generator: generator.permutation(size), size, 1)
    every = epochs.of_step(step, batch)
    assert len(every) == batch
    if batch < ranks:
        with pytest.raises(UserError, match=rf"batch of {batch} cannot be shared by {ranks} .* at least {ranks}"):
            epochs.of_step(step, batch, Share(0, ranks))
        return
    shares = [Epochs(epochs.order, size, 1).of_step(step, batch, Share(rank, ranks)) for rank in range(ranks)]
    merged: list[int] = [-1] * batch
    for rank, share in enumerate(shares):
        merged[rank::ranks] = share
    assert merged == every


@pytest.mark.parametrize("kind", [*MAKERS, "drawn"])
def test_a_step_depends_on_seed_step_and_rank_alone(kind: str) -> None:
    """Not on the steps that were asked for before, nor on anybody's random numbers, which it leaves alone."""
    make = MAKERS.get(kind, drawn)
    asked, before = make(5, 8, Share(1, 2)), np.random.get_state()[1].tolist()
    for step in (7, 0, 3):
        asked(step)
    np.random.seed(5)
    found, fresh = asked(4), make(5, 8, Share(1, 2))(4)
    assert all(ours.equal(theirs) for ours, theirs in zip(found, fresh, strict=True))
    np.random.seed(0)
    assert np.random.get_state()[1].tolist() == before


def test_ranks_draw_the_pairs_of_one_process() -> None:
    one = samples(drawn(7, 2, ALL)(3))
    assert len(set(one)) == 7
    assert [samples(drawn(7, 2, Share(rank, 3))(3)) for rank in range(3)] == [one[0::3], one[1::3], one[2::3]]


@pytest.mark.parametrize(("rank", "ranks"), [(1, 1), (-1, 2), (0, 0), (2, 2)])
def test_a_rank_that_is_none_is_refused(rank: int, ranks: int) -> None:
    with pytest.raises(ValueError, match=f"rank {rank} of {ranks}"):
        Share(rank, ranks)
