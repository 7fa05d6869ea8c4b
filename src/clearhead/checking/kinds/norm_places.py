"""The line of a norm at which something happens, from the operations that ran."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clearhead.checking.watch import Op, Record

SPREADS = ("var", "std", "var_mean", "std_mean", "norm", "vector_norm", "mean", "sum", "rsqrt", "sqrt", "pow", "square")
HALF = (torch.float16, torch.bfloat16)


def place_of_spread(record: Record) -> str:
    """Where the spread is taken."""
    for name in ("layer_norm", "rms_norm", "batch_norm", "group_norm", "normalize", *SPREADS):
        found = [op.where for op in record.named(name) if op.where]
        if found:
            return found[-1]
    return _last(record)


def place_of_axis(record: Record) -> str:
    """Where a statistic is taken over another axis than the last."""
    for op in record.named(
        "mean",
        "var",
        "std",
        "var_mean",
        "std_mean",
        "norm",
        "sum",
        "vector_norm",
        "batch_norm",
        "group_norm",
        "instance_norm",
        "layer_norm",
    ):
        x = op.arguments[0] if op.arguments else None
        if not op.where or not isinstance(x, Tensor):
            continue
        axes = op.argument(1, "dim", op.keywords.get("axis"))
        axes = [axes] if isinstance(axes, int) else axes
        if axes is None or not isinstance(axes, tuple | list) or any(a not in (-1, x.dim() - 1) for a in axes):
            return op.where
    return place_of_spread(record)


def place_of_eps(record: Record, value: float) -> str:
    """Where a constant of that size is added, or given."""
    for op in record.ops:
        numbers = [n for n in (*op.arguments, *op.keywords.values()) if isinstance(n, float)]
        if op.where and any(abs(n - value) <= 0.02 * abs(value) for n in numbers):
            return op.where
    return place_of_spread(record)


def place_of_narrow(record: Record) -> str:
    """Where a 16-bit number first comes out; "" if none does."""
    for op in record.ops:
        if _narrow(op.result):
            return op.where or op.module
    return ""


def _narrow(value: Any) -> bool:
    items = value if isinstance(value, tuple | list) else (value,)
    return any(isinstance(item, Tensor) and item.dtype in HALF for item in items)


def _last(record: Record) -> str:
    found = [op.where for op in record.ops if isinstance(op, Op) and op.where]
    return found[-1] if found else ""
