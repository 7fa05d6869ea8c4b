"""What a loop trains while it is watched: a tiny model with every kind of parameter, and rows that can be told apart."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from clearhead.messages import UserError, say
from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Batch

ROWS, LENGTH = 2, 7
"""Rows of a micro-batch and positions of a row."""
COUNTS = (13, 3, 8, 1, 11, 6)
"""How many of its 14 targets are real, by the number of the micro-batch; then again from the first."""


class Probe(nn.Module):
    """The smallest model that shows every fault: two matrices, an embedding, a norm, biases and dropout.

    logits = W₂ dropout(gelu(W₁ norm(E[ids]) + b₁)). Its gradients are smaller than 1, so that a loop that always clips
    at 1 shows its sums as they are.

    Args:
        dropout: p.
        vocab: V.
    """

    def __init__(self, dropout: float, *, vocab: int = 17) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab, 6)
        self.norm = nn.LayerNorm(6)
        self.hidden = nn.Linear(6, 10)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(10, vocab, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (B,T,V) of ids (B,T)."""
        hidden = nn.functional.gelu(self.hidden(self.norm(self.embedding(ids))))
        logits: Tensor = self.head(self.dropout(hidden))
        return logits


@dataclass(frozen=True)
class Subject:
    """Where the models and the data of a check come from."""

    make: Callable[[float], nn.Module] = Probe
    """Dropout rate -> a model in training mode, ids (B,T) below `vocab` -> logits (B,T,V)."""
    vocab: int = 17
    seed: int = 0
    """Of the weights and the data."""

    def model(self, dropout: float = 0.0, *, other: bool = False) -> nn.Module:
        """The model in float64, the same at every call.

        Args:
            dropout: its rate.
            other: with other weights, as a restarted process has before it loads.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed + other)
            model = self.make(dropout).double()
        return model.train()

    def batches(self, number: int, *, first: int = 0) -> list[Batch]:
        """So many micro-batches with unequal counts of real targets; no row is like another.

        Args:
            number: how many.
            first: the number of the first one; others with other numbers have other rows.
        """
        return [self._batch(first + place) for place in range(number)]

    def _batch(self, number: int) -> Batch:
        generator = torch.Generator().manual_seed((self.seed << 20) + number)
        ids = torch.randint(self.vocab, (ROWS, LENGTH + 1), generator=generator)
        targets = ids[:, 1:].clone()
        hidden = torch.randperm(targets.numel(), generator=generator)[COUNTS[number % len(COUNTS)] :]
        targets.view(-1)[hidden] = IGNORED
        return Batch(ids[:, :-1].contiguous(), targets)


class Rows:
    """Which row of which micro-batch a forward reads, told by its ids.

    Args:
        batches: all micro-batches.

    Raises:
        UserError: if two rows have the same ids.
    """

    def __init__(self, batches: list[Batch]) -> None:
        self.targets: list[Tensor] = [targets for batch in batches for targets in batch.targets]
        self.inputs: list[Tensor] = [inputs for batch in batches for inputs in batch.inputs]
        self._places = {tuple(row.tolist()): place for place, row in enumerate(self.inputs)}
        if len(self._places) != len(self.inputs):
            raise UserError(say("loops.same_rows"))

    def places(self, inputs: Tensor) -> tuple[int, ...] | None:
        """The places of the rows of `inputs` (B,T); None if one is not among them, or it is not ids (B,T) at all."""
        if inputs.dim() != 2:
            return None
        found = [self._places.get(tuple(row)) for row in inputs.tolist()]
        return tuple(place for place in found if place is not None) if None not in found else None

    def batch(self, places: tuple[int, ...]) -> Batch:
        """The rows at `places`, and their targets."""
        return Batch(
            torch.stack([self.inputs[place] for place in places]),
            torch.stack([self.targets[place] for place in places]),
        )


@contextmanager
def process(seed: int) -> Iterator[None]:
    """Random numbers as in a process that begins with `seed`; afterwards they go on as if nothing had been."""
    python, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
