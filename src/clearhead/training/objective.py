"""What a training learns from: batches, a loss, and what it is judged by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic

from clearhead.training.fit import Loss, Sample


@dataclass(frozen=True)
class Objective(Generic[Sample]):
    """What a training learns from, and what it is judged by.

    Args:
        batches: step -> batch, a pure function.
        validation: the batches of all validation data, anew at each call.
        loss: what is made small; its mean over the validation data chooses the best checkpoint.
        measures: further (sum, count) pairs to report of the validation data, by name.
        sizes_vary: whether batches differ in their shapes, as those of rows that are padded to the longest.
    """

    batches: Callable[[int], Sample]
    validation: Callable[[], Iterable[Sample]]
    loss: Loss[Sample]
    measures: Mapping[str, Loss[Sample]] = field(default_factory=dict)
    sizes_vary: bool = False
