"""The task that several proofs share: different random tokens, repeated again and again at a period of the row's own."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Batch
from proofs.training import generator


@dataclass(frozen=True)
class Repeats:
    """Rows such as `f c a f c a f c`. A batch is a pure function of the step.

    A token counts as a target once it has been seen before: from then on the row says what comes next, and only there.
    No fixed distance leads to the answer, for the period differs from row to row.

    Args:
        vocab: how many tokens there are.
        length: T, of a row.
        shortest: period.
        longest: period; at most the vocabulary.
        batch: how many rows a step takes.
        seed: with the step, of the draws.
    """

    vocab: int = 32
    length: int = 40
    shortest: int = 8
    longest: int = 20
    batch: int = 32
    seed: int = 0

    def __call__(self, step: int) -> Batch:
        return self.draw(step)[0]

    def draw(self, step: int) -> tuple[Batch, Tensor]:
        """The batch, and the period of each row (B,1)."""
        random = generator(self.seed, step)
        tokens = torch.rand(self.batch, self.vocab, generator=random).argsort(-1)
        period = torch.randint(self.shortest, self.longest + 1, (self.batch, 1), generator=random)
        places = torch.arange(self.length + 1)
        ids = tokens.gather(1, places % period)
        targets = torch.where(places[1:] > period, ids[:, 1:], IGNORED)
        return Batch(ids[:, :-1].contiguous(), targets), period


def right_tokens(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """How many of the real targets are the likeliest token, and how many there are."""
    real = batch.targets != IGNORED
    return ((model(batch.inputs).argmax(-1) == batch.targets) & real).sum(), real.sum()
