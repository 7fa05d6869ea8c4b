"""Projections that are zero at the start by choice, moved off zero, so that nothing is hidden behind them."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

SIZE = 0.05


def moved_off_zero(module: nn.Module) -> nn.Module:
    """The module, in place, with small random numbers, the same each time, in trainable matrices and gates that are all zeros.

    A branch that ends in a zero projection adds nothing, a zero table of positions tells no order: both are known choices, and
    no probe could see through them. That they are zero is said by what looks at the weights as found.

    Args:
        module: a copy that is ours to change.
    """
    drawn = torch.Generator().manual_seed(17)
    with torch.no_grad():
        for parameter in module.parameters():
            if isinstance(parameter, UninitializedParameter) or parameter.device.type != "cpu":
                continue
            wide = sum(length > 1 for length in parameter.shape) >= 2 or parameter.numel() == 1
            if wide and parameter.requires_grad and parameter.is_floating_point() and not bool(parameter.any()):
                noise = torch.randn(parameter.shape, generator=drawn, dtype=torch.float64)
                parameter.copy_((SIZE * noise).to(parameter.dtype))
    return module
