"""Calls of a case of which nothing is known but how to run it: a size that it takes, outputs, differences."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case, Inputs
from clearhead.checking.strangers import Attempt, Seeded

ROWS, LENGTHS = 4, (6, 5, 4, 3, 8, 7, 16, 32, 64, 2, 1)
"""How many rows a trial has, and the lengths that are tried, in order; some code takes one length only."""

SAME = {torch.float64: 1e-9, torch.float32: 2e-4}
"""Outputs that differ by less than this, beside their size, differ by rounding."""


class Trial(NamedTuple):
    """A size that the code takes.

    Args:
        rows: B.
        length: T.
    """

    rows: int
    length: int


def trial(case: Case) -> Trial | None:
    """The first usual size with which the case runs; None if it runs with none."""
    for length in (*LENGTHS, case.fixed) if case.fixed is not None else LENGTHS:
        with Attempt(), torch.no_grad():
            run(case, case.ready(), given(case, ROWS, length))
            return Trial(ROWS, length)
    return None


def given(case: Case, rows: int, length: int, seed: int = 0) -> Inputs:
    """Random inputs in the type of the case."""
    return case.inputs(rows, length, seed, case.dtype)


def run(case: Case, module: Any, inputs: Inputs) -> Tensor:
    """The output for copies of the inputs, so that code that works in place changes none of ours."""
    return case.run(module, tuple(each.clone() for each in inputs))


def output(case: Case, module: Any, inputs: Inputs, seed: int | None = None) -> Tensor:
    """The output without gradients, the random numbers as they come or those of a seed."""
    with torch.no_grad():
        if seed is None:
            return run(case, module, inputs).detach().clone()
        with Seeded(seed):
            return run(case, module, inputs).detach().clone()


def apart(one: Tensor, other: Tensor) -> float:
    """The largest difference beside the size of the larger; infinite if shapes differ or one alone is not finite."""
    if one.shape != other.shape:
        return float("inf")
    if one.numel() == 0:
        return 0.0
    one, other = one.double(), other.double()
    same = (one == other) | (one.isnan() & other.isnan())
    gap = torch.where(same, torch.zeros_like(one), (one - other).abs())
    if not bool(gap.isfinite().all()):
        return float("inf")
    size = torch.maximum(one.abs(), other.abs())
    largest = float(torch.where(size.isfinite(), size, torch.zeros_like(size)).max())
    return float(gap.max()) / largest if largest > 0 else float(gap.max())


def same(case: Case, one: Tensor, other: Tensor) -> bool:
    """Whether two outputs differ by no more than rounding."""
    return apart(one, other) <= tolerance(case)


def tolerance(case: Case) -> float:
    """What counts as rounding in the type of the case."""
    return SAME.get(case.dtype, 5e-2)


def with_zeros_filled(module: Any) -> Any:
    """The module with small random numbers added to all its weights: what is zero by choice at the start is not zero for ever.

    Without it a branch that ends in a zero projection hides all that stands before it.
    """
    if not isinstance(module, nn.Module):
        return module
    drawn = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point() and parameter.device.type == "cpu":
                noise = torch.randn(parameter.shape, generator=drawn, dtype=torch.float64)
                parameter.add_((0.05 * noise).to(parameter.dtype))
    return module
