"""Mean, standard deviation and range of a tensor, quick enough to be taken of every tensor of a forward."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from clearhead.tracing.trace import summary

Numbers = dict[str, float | int | None]
"""mean, std, least, most and bytes; None where no number is finite."""

AT_ONCE = 1 << 18
"""How many numbers of a contiguous tensor are copied at a time; one row at least."""

NEVER_TAKEN: Numbers = {"mean": None, "std": None, "least": None, "most": None}
"""What is known of a tensor that was not looked at."""


def summed(tensor: Tensor) -> Numbers:
    """What `tracing.trace.summary` says, some twenty times as quickly where all numbers are finite.

    Each row of the last axis is summed in the type that it has, at least float32, and the rows in float64: an error that grows with the
    square root of one row.

    Args:
        tensor: of any shape.
    """
    return _quick(tensor) or summary(tensor)


def summed_parts(parts: Iterable[Tensor]) -> Numbers:
    """The same of a tensor that is never held whole: its parts, one after another.

    Args:
        parts: what the tensor is made of, in any order; at least one.
    """
    total = [_counted(part) for part in parts]
    return _joined(total)


def summing(parts: Iterable[Tensor], taken: list[Numbers]) -> Iterator[Tensor]:
    """The parts as they are, for somebody who reads them once; behind the last one the numbers of the whole are in `taken`.

    Args:
        parts: what the tensor is made of; at least one.
        taken: gets one entry.
    """
    total = []
    for part in parts:
        total.append(_counted(part))
        yield part
    taken.append(_joined(total))


def _counted(part: Tensor) -> tuple[int, Numbers]:
    """How many numbers are finite, and what `summary` says of those."""
    numbers = _quick(part)
    return (part.numel(), numbers) if numbers else (int(part.isfinite().sum()), summary(part))


def _quick(tensor: Tensor) -> Numbers | None:
    """The numbers if all of the tensor's are finite; None otherwise."""
    rows = _rows(tensor)
    if not rows.numel():
        return None
    least, most = (float(each) for each in torch.aminmax(rows))
    if not (math.isfinite(least) and math.isfinite(most)):
        return None
    count = rows.numel()
    mean = float(rows.sum(-1).double().sum()) / count
    squares = _squares(rows) / count
    if squares > 4 * (spread := squares - mean * mean):
        # The two nearly cancel: take the mean off first, some rows at a time.
        flat = rows.reshape(-1, rows.shape[-1])
        step = max(1, AT_ONCE // rows.shape[-1])
        spread = math.fsum(_squares(part - mean) for part in torch.split(flat, step)) / count
    numbers: Numbers = {"mean": mean, "std": math.sqrt(max(spread, 0.0)), "least": least, "most": most}
    return {**numbers, "bytes": tensor.numel() * tensor.element_size()}


def _joined(total: list[tuple[int, Numbers]]) -> Numbers:
    """Numbers of parts, and how many of them are finite, as those of the whole."""
    size = sum(int(each["bytes"] or 0) for _, each in total)
    known = [(n, float(each["mean"]), float(each["std"] or 0.0), each) for n, each in total if each["mean"] is not None]
    if not known:
        return {**NEVER_TAKEN, "bytes": size}
    count = sum(n for n, *_ in known)
    mean = sum(n * own for n, own, *_ in known) / count
    # The spread of the whole is that within the parts and that between their means.
    spread = sum(n * (std * std + (own - mean) ** 2) for n, own, std, _ in known) / count
    numbers: Numbers = {"mean": mean, "std": math.sqrt(spread)}
    numbers["least"] = min(float(each["least"] or 0.0) for *_, each in known)
    numbers["most"] = max(float(each["most"] or 0.0) for *_, each in known)
    return {**numbers, "bytes": size}


def _rows(tensor: Tensor) -> Tensor:
    """The tensor, cut from its graph, in at least float32; as rows."""
    wide = tensor.detach()
    if not wide.is_floating_point() or wide.dtype in (torch.bfloat16, torch.float16):
        wide = wide.float()
    return wide.reshape(-1, 1) if wide.dim() < 1 else wide


def _squares(rows: Tensor) -> float:
    """Σ x²."""
    return float(torch.linalg.vector_norm(rows, dim=-1).double().square().sum())
