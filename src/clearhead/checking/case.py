"""A target with one way to run it, whatever its interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.target import Target
from clearhead.checking.zeros import moved_off_zero

Inputs = tuple[Tensor, ...]


@dataclass(frozen=True)
class Case:
    """How a kind runs its target.

    Args:
        target: the code under check.
        inputs: (rows, length, seed, dtype) -> inputs of that size; the first axis of each is the rows.
        run: (module, inputs) -> the output, rows first; whatever else the code returns is left out.
        dtype: the type in which it runs: float64, or float32 if it refuses that.
        length_axis: which axis of the output has the positions; None if it has none.
        fixed: the one length that it takes; None if it takes several, or nothing is known.
    """

    target: Target
    inputs: Callable[[int, int, int, torch.dtype], Inputs]
    run: Callable[[Any, Inputs], Tensor]
    dtype: torch.dtype = torch.float64
    length_axis: int | None = 1
    fixed: int | None = None

    def ready(self, dtype: torch.dtype | None = None) -> Any:
        """A fresh copy in evaluation mode and in `dtype` (the case's own if None), projections that start at zero moved off it."""
        made = self.target.make()
        if isinstance(made, nn.Module):
            # Some classes' own `train` gives nothing back, and `eval` with it.
            made = moved_off_zero(made).to(dtype or self.dtype)
            made.eval()
        return made
