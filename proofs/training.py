"""The one training loop of the proofs: the library's own `fit`, a warm-up, and half a cosine down."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from clearhead import fit
from clearhead.training.fit import Loss, Sample
from clearhead.training.optimizer import adamw
from clearhead.training.schedules import warmup_cosine


def train(
    model: nn.Module,
    batches: Callable[[int], Sample],
    loss: Loss[Sample],
    *,
    steps: int,
    lr: float,
    warmup: int = 50,
    final: float = 0.1,
    weight_decay: float = 0.1,
    clip: float | None = 1.0,
) -> list[float]:
    """The loss of every update."""
    updates = fit(
        model,
        batches,
        loss,
        optimizer=adamw(model, lr=lr, weight_decay=weight_decay),
        schedule=lambda step: warmup_cosine(step, lr=lr, steps=steps, warmup=warmup, final=final),
        steps=steps,
        clip=clip,
    )
    losses = [update.loss for update in updates]
    model.eval()
    return losses


def generator(*seeds: int) -> torch.Generator:
    """Random numbers that depend on these seeds alone, such as (seed, step)."""
    return torch.Generator().manual_seed(sum(seed * 1_000_003**place for place, seed in enumerate(seeds)) % 2**63)
