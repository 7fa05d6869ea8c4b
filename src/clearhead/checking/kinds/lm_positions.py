"""A model to which every place looks alike: what then still differs does not come from positions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

PLACES = r"pos|wpe|(^|\.)pe$"


class NoPlaces(TorchFunctionMode):
    """Angles computed on the way are all 0: nothing is turned."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        with torch._C.DisableTorchFunction():
            if name in ("cos", "polar"):
                return torch.ones_like(result)
            return torch.zeros_like(result) if name == "sin" else result


def without_places(module: Any) -> Any:
    """The module with every table of positions made flat: zeros, or the angle 0."""
    if not isinstance(module, nn.Module):
        return module
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if re.search(PLACES, name.removesuffix(".weight")):
                parameter.zero_()
        for name, buffer in module.named_buffers():
            buffer.copy_(flat(buffer, name))
        for inner in module.modules():
            plain = {key: value for key, value in vars(inner).items() if isinstance(value, Tensor)}
            for key, value in plain.items():
                setattr(inner, key, flat(value, key))
    return module


def flat(table: Tensor, name: str) -> Tensor:
    """The table with all places alike, if its name or its values say that it is one of angles or positions."""
    if table.is_complex():
        return torch.ones_like(table)
    if not table.is_floating_point() or table.dim() == 0 or table.numel() == 0:
        return table
    rows = table.reshape(-1, table.shape[-1])
    waves = table.dim() >= 2 and bool((rows.abs() <= 1).all() and rows.min() < 0)
    if "cos" in name or (waves and bool((rows[0] == 1).all())):
        return torch.ones_like(table)
    if re.search(rf"sin(?!k)|inv_?freq|freqs|theta|{PLACES}", name):
        return torch.zeros_like(table)
    # A table of waves begins with the angle 0: zeros and ones.
    if waves and bool((rows[0] * (rows[0] - 1) == 0).all()):
        return rows[:1].expand_as(rows).reshape(table.shape).clone()
    return table
