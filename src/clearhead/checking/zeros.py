"""Projections that are zero at the start by choice, moved off zero, so that nothing is hidden behind them."""

from __future__ import annotations

import re

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

SIZE = 0.05
FACTORS = r"gamma|alpha|scale|gate|gain|(^|\.)g$"
"""Names of vectors that multiply a branch feature by feature."""


def moved_off_zero(module: nn.Module) -> nn.Module:
    """The module, in place, with small random numbers, the same each time, in trainable matrices and gates that are all zeros.

    A branch that ends in a zero projection or in factors of zero (or of 1 + w, with w of minus one) adds nothing, a zero table of positions tells no order: both are known choices, and
    no probe could see through them. That they are zero is said by what looks at the weights as found.

    Args:
        module: a copy that is ours to change.
    """
    drawn = torch.Generator().manual_seed(17)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if isinstance(parameter, UninitializedParameter) or parameter.device.type != "cpu":
                continue
            if parameter.requires_grad and parameter.is_floating_point() and _silences(name, parameter):
                noise = torch.randn(parameter.shape, generator=drawn, dtype=torch.float64)
                parameter.add_((SIZE * noise).to(parameter.dtype))
    return module


def _silences(name: str, parameter: nn.Parameter) -> bool:
    """Whether what it multiplies is nothing: all zeros, or a vector of minus ones, to which a one is added."""
    wide = sum(length > 1 for length in parameter.shape) >= 2 or parameter.numel() == 1
    if wide or re.search(FACTORS, name, re.IGNORECASE) is not None:
        return not bool(parameter.any()) or (not wide and bool((parameter == -1).all()))
    return False
