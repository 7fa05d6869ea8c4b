"""How a training goes, as one frozen value. Imports without torch."""

from __future__ import annotations

from dataclasses import dataclass

from clearhead.messages import UserError, say

DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True)
class TrainingSettings:
    """How a training goes.

    Args:
        steps: updates of the whole training.
        batch: windows an update learns from.
        lr: the highest learning rate.
        final_lr: the last learning rate, as a part of the highest.
        warmup: updates in which the learning rate rises.
        weight_decay: how strongly AdamW shrinks matrices.
        beta2: AdamW's decay of squared gradients.
        clip: the largest gradient norm an update uses.
        seed: of the weights, the order of the data and dropout.
        eval_every: updates between two evaluations of the whole validation text.
        checkpoint_every: updates between two checkpoints.
        dtype: float32, or bfloat16 to run the forward in 16 bits where that is safe.

    Raises:
        UserError: if a number is out of range.
    """

    steps: int
    batch: int
    lr: float
    final_lr: float
    warmup: int
    weight_decay: float
    beta2: float
    clip: float
    seed: int
    eval_every: int
    checkpoint_every: int
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "eval_every", "checkpoint_every"):
            _need(name, getattr(self, name), getattr(self, name) >= 1, "≥ 1")
        for name in ("lr", "clip"):
            _need(name, getattr(self, name), 0 < getattr(self, name) < float("inf"), "> 0")
        for name in ("final_lr", "warmup", "weight_decay"):
            _need(name, getattr(self, name), 0 <= getattr(self, name) < float("inf"), "≥ 0")
        _need("seed", self.seed, 0 <= self.seed < 2**64, "0 ≤ seed < 2^64")
        _need("beta2", self.beta2, 0 <= self.beta2 < 1, "0 ≤ beta2 < 1")
        _need("dtype", self.dtype, self.dtype in DTYPES, " | ".join(DTYPES))


def _need(name: str, value: object, holds: bool, wanted: str) -> None:
    if not holds:
        raise UserError(say("training.setting", name=name, value=value, wanted=wanted))
