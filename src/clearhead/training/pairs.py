"""Pairs of sequences to learn from: a source that is read, a target that is written. Pure functions of (seed, step)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Document, Marked
from clearhead.training.order import ALL, Epochs, Share


class IdPair(NamedTuple):
    """A source and its target as token ids, without marks; either may be empty."""

    source: Document
    target: Document


class Marks(NamedTuple):
    """The ids that stand where no text stands."""

    begin: int
    """Comes before a target: what the decoder reads first."""
    end: int
    """Comes after a source and after a target: what the decoder writes last."""


class PairBatch(NamedTuple):
    """What one forward of an encoder-decoder learns from; rows are filled up at their ends."""

    source: Tensor
    """Token ids (B,M), each row's last the end mark."""
    source_real: Tensor
    """(B,M) booleans, False for padding."""
    inputs: Tensor
    """Token ids (B,T): the begin mark, then the target. What follows a shorter target counts for nothing."""
    targets: Tensor
    """The token after each input (B,T): the target, then the end mark; `IGNORED` behind it."""

    def to(self, device: torch.device) -> PairBatch:
        """The same batch on `device`."""
        return PairBatch(*(tensor.to(device) for tensor in self))


def batch_of(pairs: Sequence[IdPair], marks: Marks) -> PairBatch:
    """The pairs side by side, marked, and padded to the longest."""
    rows, sources = len(pairs), [len(pair.source) + 1 for pair in pairs]
    steps = max(len(pair.target) for pair in pairs) + 1
    source = torch.zeros(rows, max(sources), dtype=torch.long)
    inputs = torch.zeros(rows, steps, dtype=torch.long)
    targets = torch.full((rows, steps), IGNORED)
    for row, pair in enumerate(pairs):
        source[row, : sources[row]] = torch.from_numpy(Marked(pair.source, end=marks.end)[:])
        target = torch.from_numpy(Marked(pair.target, marks.begin, marks.end)[:])
        inputs[row, : len(target) - 1] = target[:-1]
        targets[row, : len(target) - 1] = target[1:]
    return PairBatch(source, torch.arange(max(sources)) < torch.tensor(sources)[:, None], inputs, targets)


class Shuffled:
    """Every pair once an epoch, in an order of its own; `shuffled(step)` depends on the seed, the step and the rank alone.

    Args:
        pairs: at least one.
        marks: of the tokenizer.
        batch: how many pairs a step takes, on all ranks together.
        seed: of the orders.
        share: which of them are this process's.
    """

    def __init__(self, pairs: Sequence[IdPair], marks: Marks, batch: int, seed: int, *, share: Share = ALL) -> None:
        self.pairs, self.marks, self.batch, self.share = pairs, marks, batch, share
        self.epochs = Epochs(lambda generator: generator.permutation(len(pairs)), len(pairs), seed)

    def __call__(self, step: int) -> PairBatch:
        """This rank's batch of update `step`, counted from 0."""
        numbers = self.epochs.of_step(step, self.batch, self.share)
        return batch_of([self.pairs[int(number)] for number in numbers], self.marks)


class Drawn:
    """Pairs made as they are needed, for tasks that never run out: each step's from a generator of its own.

        def reverse(generator: np.random.Generator) -> IdPair:
            ids = generator.integers(10, size=12)
            return IdPair(ids, ids[::-1].copy())

        batches = Drawn(reverse, Marks(10, 11), batch=64, seed=0)

    Args:
        draw: from a generator to a pair.
        marks: ids that no pair holds.
        batch: how many pairs a step takes, on all ranks together.
        seed: with the step, of the generator.
        share: which of them are this process's; it draws them all.
    """

    def __init__(
        self,
        draw: Callable[[np.random.Generator], IdPair],
        marks: Marks,
        *,
        batch: int,
        seed: int,
        share: Share = ALL,
    ) -> None:
        self.draw, self.marks, self.batch, self.seed, self.share = draw, marks, batch, seed, share

    def __call__(self, step: int) -> PairBatch:
        """This rank's batch of update `step`, counted from 0."""
        generator = np.random.default_rng([self.seed, step])
        drawn = [self.draw(generator) for _ in range(self.batch)]
        return batch_of(
            [drawn[number - step * self.batch] for number in self.share.numbers(step, self.batch)], self.marks
        )


def all_pairs(pairs: Sequence[IdPair], marks: Marks, batch: int, *, scores: float = math.inf) -> Iterator[PairBatch]:
    """Every pair once, in order, so many together.

    Args:
        pairs: any number.
        marks: of the tokenizer.
        batch: how many pairs go together.
        scores: fewer go together where B · max(M, T)² would be more than this; a pair too long for that goes alone.
    """
    first, longest = 0, 0
    for number, pair in enumerate(pairs):
        length = max(len(pair.source), len(pair.target)) + 1
        longest, rows = max(longest, length), number - first + 1
        if rows > 1 and (rows > batch or rows * longest**2 > scores):
            yield batch_of(pairs[first:number], marks)
            first, longest = number, length
    if first < len(pairs):
        yield batch_of(pairs[first:], marks)
