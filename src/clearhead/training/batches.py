"""Which samples a step trains on: a pure function of (seed, step)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clearhead.ops.loss import IGNORED

Ids = NDArray[np.int64]


class Batch(NamedTuple):
    """What one forward of a language model learns from."""

    inputs: Tensor
    """Token ids (B,T)."""
    targets: Tensor
    """The token after each input (B,T); `IGNORED` where there is none."""

    def to(self, device: torch.device) -> Batch:
        """The same batch on `device`."""
        return Batch(self.inputs.to(device), self.targets.to(device))


class Epochs:
    """What the samples of a step are, where every epoch visits all of them in an order of its own.

    The order is a pure function of the seed and the epoch; the last one asked for is kept.

    Args:
        order: from a generator to the samples of an epoch, always as many.
        size: how many they are.
        seed: with the epoch, of the generator.
    """

    def __init__(self, order: Callable[[np.random.Generator], Ids], size: int, seed: int) -> None:
        self.order, self.size, self.seed = order, size, seed
        self._last: tuple[int, Ids] = (-1, np.empty(0, dtype=np.int64))

    def of_step(self, step: int, batch: int) -> list[Any]:
        """The `batch` samples of a step; they may lie in two epochs or more."""
        numbers = range(step * batch, (step + 1) * batch)
        return [self._of(number // self.size)[number % self.size] for number in numbers]

    def _of(self, epoch: int) -> Ids:
        if self._last[0] != epoch:
            self._last = (epoch, self.order(np.random.default_rng([self.seed, epoch])))
        return self._last[1]


class Windows:
    """Windows of T + 1 tokens; T inputs and, one place further, their T targets.

    Each epoch cuts every document into windows that touch and never overlap, beginning at a place of its own, and
    visits them in an order of its own; a window never crosses two documents. `windows(step)` depends on the seed and
    the step alone, so a resumed run needs to remember nothing but its step.

    Args:
        documents: token ids; documents shorter than T + 1 give no window.
        context: T.
        batch: how many windows a step takes.
        seed: of the cuts and the orders.

    Raises:
        ValueError: if no document holds a window.
    """

    def __init__(self, documents: Sequence[Ids], context: int, batch: int, seed: int) -> None:
        self.documents = [document for document in documents if len(document) > context]
        if not self.documents:
            raise ValueError(f"no document has more than {context} tokens")
        self.context, self.batch = context, batch
        # One window fewer than fits at most: an epoch begins at a place of its own, and over the epochs every token is met.
        self.counts = [max(1, (len(document) - 1) // context - 1) for document in self.documents]
        self.an_epoch = sum(self.counts)
        self.epochs = Epochs(self._order, self.an_epoch, seed)

    def __call__(self, step: int) -> Batch:
        """The batch of update `step`, counted from 0."""
        places = self.epochs.of_step(step, self.batch)
        rows = np.stack([self.documents[which][start : start + self.context + 1] for which, start in places])
        window = torch.from_numpy(rows)
        return Batch(window[:, :-1].contiguous(), window[:, 1:].contiguous())

    def _order(self, generator: np.random.Generator) -> Ids:
        """(document, start) of every window of an epoch, in its order."""
        places = []
        for which, (document, count) in enumerate(zip(self.documents, self.counts, strict=True)):
            room = len(document) - 1 - count * self.context
            starts = generator.integers(0, room + 1) + np.arange(count) * self.context
            places.append(np.stack([np.full(count, which), starts], axis=1))
        return generator.permutation(np.concatenate(places))


def whole(documents: Sequence[Ids], context: int, batch: int) -> Iterator[Batch]:
    """Every token of the documents but the first of each, exactly once as a target, in order.

    Windows touch and never overlap, so a token is predicted from 1 to T tokens before it. The last window of a
    document is shorter; it is filled up with targets that do not count.

    Args:
        documents: token ids.
        context: T.
        batch: how many windows go through the model together; the sum of the losses does not depend on it.
    """
    rows: list[Ids] = []
    for document in documents:
        for start in range(0, len(document) - 1, context):
            rows.append(document[start : start + context + 1])
            if len(rows) == batch:
                yield _filled(rows, context)
                rows = []
    if rows:
        yield _filled(rows, context)


def _filled(rows: Sequence[Ids], context: int) -> Batch:
    inputs = torch.zeros(len(rows), context, dtype=torch.long)
    targets = torch.full((len(rows), context), IGNORED)
    for place, row in enumerate(rows):
        inputs[place, : len(row) - 1] = torch.from_numpy(row[:-1])
        targets[place, : len(row) - 1] = torch.from_numpy(row[1:])
    return Batch(inputs, targets)
