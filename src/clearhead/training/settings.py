"""How a training goes, as one frozen value. Imports without torch."""

from __future__ import annotations

from dataclasses import dataclass

from clearhead.messages import UserError, say
from clearhead.training.schedules import SCHEDULES

DTYPES = ("float32", "bfloat16", "bfloat16-weights", "float16")
OPTIMIZERS = ("adamw", "muon")


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
        dtype: float32; bfloat16 or float16 to run the forward in 16 bits where that is safe (float16 with a scaled loss); or
            bfloat16-weights, which follow masters in float32.
        optimizer: adamw, or muon for the matrices of the blocks.
        schedule: how the learning rate falls: cosine, linear, wsd (in the last fifth alone) or constant (not at all).
        micro_batch: rows that go through the model at a time; the whole batch if None. It saves memory, the gradient stays.
        logits_at_once: positions that have logits at a time; all if None. It saves memory, the gradient stays.
        recompute: whether blocks run again in the backward, which saves memory and takes a third more time.
        compile: whether PyTorch compiles the update.
        label_smoothing: ε, the part of the target that is spread over the vocabulary.
        skip_nonfinite: whether an update whose loss or gradient is not finite is left out, where the training would stop.
        keep: how many of the latest checkpoints stay, beside the best.

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
    optimizer: str = "adamw"
    schedule: str = "cosine"
    micro_batch: int | None = None
    logits_at_once: int | None = None
    recompute: bool = False
    compile: bool = False
    label_smoothing: float = 0.0
    skip_nonfinite: bool = False
    keep: int = 2

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "eval_every", "checkpoint_every", "keep"):
            _need(name, getattr(self, name), getattr(self, name) >= 1, "≥ 1")
        for name in ("lr", "clip"):
            _need(name, getattr(self, name), 0 < getattr(self, name) < float("inf"), "> 0")
        for name in ("final_lr", "warmup", "weight_decay"):
            _need(name, getattr(self, name), 0 <= getattr(self, name) < float("inf"), "≥ 0")
        _need("seed", self.seed, 0 <= self.seed < 2**64, "0 ≤ seed < 2^64")
        _need("beta2", self.beta2, 0 <= self.beta2 < 1, "0 ≤ beta2 < 1")
        for name in ("micro_batch", "logits_at_once"):
            value = getattr(self, name)
            _need(name, value, value is None or value >= 1, "≥ 1")
        _need("label_smoothing", self.label_smoothing, 0 <= self.label_smoothing < 1, "0 ≤ label_smoothing < 1")
        for name, known in (("dtype", DTYPES), ("optimizer", OPTIMIZERS), ("schedule", tuple(SCHEDULES))):
            _need(name, getattr(self, name), getattr(self, name) in known, " | ".join(known))


def _need(name: str, value: object, holds: bool, wanted: str) -> None:
    if not holds:
        raise UserError(say("training.setting", name=name, value=value, wanted=wanted))


PLAIN = TrainingSettings(
    steps=1,
    batch=1,
    lr=1e-3,
    final_lr=0.1,
    warmup=0,
    weight_decay=0.1,
    beta2=0.99,
    clip=1.0,
    seed=0,
    eval_every=1,
    checkpoint_every=1,
)
"""One update as most trainings have it, to measure how long that takes."""
