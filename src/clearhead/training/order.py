"""Which samples an update learns from: a pure function of (seed, step, rank)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from clearhead.messages import UserError, say

Sample_co = TypeVar("Sample_co", covariant=True)


class Order(Protocol[Sample_co]):
    """The samples of one epoch, in their order."""

    def __getitem__(self, place: int, /) -> Sample_co:
        """The sample at a place, from 0."""
        ...


@dataclass(frozen=True)
class Share:
    """The part of every update that one of several processes computes.

    The samples of an update are the same however many processes share them: rank r of R takes every R-th, beginning
    with the r-th.

    Args:
        rank: r, from 0.
        ranks: R.

    Raises:
        ValueError: unless 0 <= rank < ranks.
    """

    rank: int = 0
    ranks: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.ranks:
            raise ValueError(f"rank {self.rank} of {self.ranks} is none; ranks count from 0")

    def numbers(self, step: int, batch: int) -> range:
        """The numbers of this rank's samples, counted through all updates from 0.

        Args:
            step: the update, from 0.
            batch: how many samples all ranks take together.

        Raises:
            UserError: if a rank would get no sample.
        """
        if batch < self.ranks:
            raise UserError(say("training.batch_of_ranks", batch=batch, ranks=self.ranks))
        return range(step * batch + self.rank, (step + 1) * batch, self.ranks)


ALL = Share()
"""Every sample: there is one process."""


class Epochs(Generic[Sample_co]):
    """What the samples of a step are, where every epoch visits all of them in an order of its own.

    Samples are numbered through all epochs; number n is sample n mod `size` of epoch n // `size`. The order of an epoch is
    a pure function of the seed and the epoch; the last one asked for is kept.

    Args:
        order: from a generator to the samples of an epoch, always as many.
        size: how many they are, at least 1.
        seed: with the epoch, of the generator.
    """

    def __init__(self, order: Callable[[np.random.Generator], Order[Sample_co]], size: int, seed: int) -> None:
        self.order, self.size, self.seed = order, size, seed
        self._last: tuple[int, Order[Sample_co] | None] = (-1, None)

    def of_step(self, step: int, batch: int, share: Share = ALL) -> list[Sample_co]:
        """The samples that a rank computes of the `batch` samples of a step; they may lie in two epochs or more.

        Raises:
            UserError: if a rank would get none.
        """
        return [self.of(number) for number in share.numbers(step, batch)]

    def of(self, number: int) -> Sample_co:
        """The sample with this number."""
        epoch, place = divmod(number, self.size)
        known, order = self._last
        if order is None or known != epoch:
            order = self.order(np.random.default_rng([self.seed, epoch]))
            self._last = (epoch, order)
        return order[place]
