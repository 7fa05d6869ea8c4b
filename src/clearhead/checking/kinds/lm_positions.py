"""Positions of a language model: whether it has any, and what it is once every place looks alike to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from clearhead.checking.claims import stated
from clearhead.checking.kinds.lm_case import LmCase
from clearhead.checking.watch import Record

PLACES = r"pos|wpe|(^|\.)pe$"
MADE = r"pos(_?e|_?id|ition|_?tab|$)|wpe|(^|[._])pe$|rotary|rope|alibi|sinus|inv_?freq|freqs|slopes|relative"
"""What positions are called where they are parameters, buffers, modules, constructor values or arguments."""
TURNS = ("cos", "sin", "polar", "cos_", "sin_")


def declares_places(case: LmCase, record: Record) -> bool:
    """Whether a model has positions: a table or a module of them, an argument for them, a base of angles, or angles made on the way."""
    module = case.case.target.sample
    names = [*case.case.target.values, *case.case.target.signature.parameters]
    held = {"": module}
    if isinstance(module, nn.Module):
        held = dict(module.named_modules())
        names += [name for name, _ in (*module.named_parameters(), *module.named_buffers())]
    for path, inner in held.items():
        names += [name for name, value in vars(inner).items() if isinstance(value, Tensor)]
        # What the whole is called may as well say that it has none.
        names += [path, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(inner).__name__)] if path else []
    said = any(re.search(MADE, name.lower()) for name in names)
    based = stated(case.case.target, "rope_theta", "rope_base", "rotary_base", "theta") is not None
    return said or based or bool(record.named(*TURNS))


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
