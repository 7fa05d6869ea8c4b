"""The optimiser and the learning rate."""

from __future__ import annotations

import math

import torch
from torch import nn


def adamw(
    model: nn.Module, *, lr: float, weight_decay: float = 0.1, betas: tuple[float, float] = (0.9, 0.99)
) -> torch.optim.AdamW:
    """AdamW that decays matrices only: biases and norms, which have one axis, keep their values.

    Args:
        model: every trainable parameter goes into exactly one of the two groups.
        lr: the learning rate until a schedule sets another.
        weight_decay: λ; a matrix shrinks by the factor 1 - lr·λ in each update.
        betas: decay of the running mean of gradients and of their squares.

    Source: Loshchilov and Hutter 2019 (arXiv:1711.05101).
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [parameter for parameter in trained if parameter.dim() >= 2], "weight_decay": weight_decay},
        {"params": [parameter for parameter in trained if parameter.dim() < 2], "weight_decay": 0.0},
    ]
    fused = all(parameter.device.type in ("cpu", "cuda", "mps") for parameter in trained)
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=lr, betas=betas, fused=fused)


def warmup_cosine(step: int, *, lr: float, steps: int, warmup: int, final: float) -> float:
    """The learning rate of update `step` (from 0): a straight rise, then half a cosine from `lr` down to `final`·`lr`.

    lr (step + 1) / (warmup + 1)                                   before `warmup`,
    lr (final + (1 - final) ½ (1 + cos(π (step - warmup) / (steps - warmup))))   after it.

    It depends on the number of updates alone.
    """
    if step < warmup:
        return lr * (step + 1) / (warmup + 1)
    progress = min(1.0, (step - warmup) / max(1, steps - warmup))
    return lr * (final + (1 - final) * 0.5 * (1 + math.cos(math.pi * progress)))
