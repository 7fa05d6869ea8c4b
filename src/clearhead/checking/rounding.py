"""Rounding, a float32 island, or a fault: what the difference of two results says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from clearhead.checking.common.trial import apart
from clearhead.checking.watch import Record, watched
from clearhead.messages import UserError, say

UNIT = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
"""What one rounding costs, beside the size of the number."""

GROWTH = {torch.float64: 2.0**8, torch.float32: 2.0**8, torch.float16: 2.0**4, torch.bfloat16: 2.0**4}
"""How many roundings may add up in a computation of usual depth; in 16 bit, sums are kept in float32 by every kernel."""


class Rounding(NamedTuple):
    """What a difference is.

    Args:
        verdict: rounding of the type of the results, an island (rounding of a narrower type that was used inside), or a fault.
        largest: the largest difference beside the largest number.
        allowed: what rounding explains.
        narrowest: the narrowest type that was used.
        text: all of this in a sentence.
    """

    verdict: Literal["rounding", "island", "fault"]
    largest: float
    allowed: float
    narrowest: torch.dtype
    text: str


def rounding_of(one: Any, other: Any, *inputs: Any) -> Rounding:
    """What the difference of two tensors, or of what two modules or functions give for copies of the inputs, is.

    Args:
        one: a tensor, or a module or function.
        other: another one.
        inputs: of modules and functions.

    Raises:
        UserError: if one is a tensor and the other is not, or a function gives no tensor.
    """
    if isinstance(one, Tensor) != isinstance(other, Tensor):
        raise UserError(say("asserts.unlike", one=type(one).__name__, other=type(other).__name__))
    if isinstance(one, Tensor):
        return _judged(one, other, [])
    results, used = [], []
    for each in (one, other):
        record = _ran(each, inputs)
        results.append(_first(record.result))
        used += list(_types(record))
    return _judged(results[0], results[1], used)


def _judged(one: Tensor, other: Tensor, used: list[torch.dtype]) -> Rounding:
    """The verdict; without knowing the operations, a difference of float32's size between float64 tensors is an island."""
    if one.shape != other.shape:
        text = say("asserts.shapes", one=tuple(one.shape), other=tuple(other.shape))
        return Rounding("fault", float("inf"), 0.0, torch.float64, text)
    own = max((one.dtype, other.dtype), key=lambda kind: UNIT.get(kind, 0.0))
    inside = max([own, *(kind for kind in used if kind in UNIT)], key=lambda kind: UNIT.get(kind, 0.0))
    if not used and own is torch.float64:
        inside = torch.float32
    gap = apart(one.detach(), other.detach())
    if own not in UNIT:
        verdict: Literal["rounding", "island", "fault"] = "rounding" if gap == 0 else "fault"
        return _said(Rounding(verdict, gap, 0.0, own, ""), one, other)
    allowed = {kind: GROWTH[kind] * UNIT[kind] for kind in (own, inside)}
    verdict = "rounding" if gap <= allowed[own] else "island" if gap <= allowed[inside] else "fault"
    kind = own if verdict == "rounding" else inside
    return _said(Rounding(verdict, gap, allowed[kind], kind, ""), one, other)


def _said(found: Rounding, one: Tensor, other: Tensor) -> Rounding:
    """The verdict with its sentence."""
    gap, allowed, kind = f"{found.largest:.1e}", f"{found.allowed:.1e}", str(found.narrowest).removeprefix("torch.")
    if found.verdict == "fault":
        place = _place(one, other)
        first, second = (f"{float(each[place]):.6g}" for each in (one, other))
        text = say("asserts.fault", gap=gap, allowed=allowed, kind=kind, place=list(place), one=first, other=second)
    elif found.verdict == "island":
        text = say("asserts.island", gap=gap, allowed=allowed, kind=kind)
    else:
        text = say("asserts.rounding", gap=gap, allowed=allowed, kind=kind)
    return found._replace(text=text)


def _place(one: Tensor, other: Tensor) -> tuple[int, ...]:
    """Where the difference is largest, what is no number first."""
    gap = (one.detach().double() - other.detach().double()).abs().nan_to_num(nan=float("inf"))
    return tuple(int(index) for index in torch.unravel_index(gap.argmax(), gap.shape)) if gap.numel() else ()


def _ran(code: Any, inputs: tuple[Any, ...]) -> Record:
    copies = [each.clone() if isinstance(each, Tensor) else each for each in inputs]
    with torch.no_grad():
        return watched(code if isinstance(code, nn.Module) else None, lambda: code(*copies))


def _types(record: Record) -> Iterator[torch.dtype]:
    """The types of all real results."""
    for op in record.ops:
        if isinstance(op.result, Tensor) and op.result.is_floating_point():
            yield op.result.dtype


def _first(value: Any) -> Tensor:
    """The first tensor among what was returned."""
    if isinstance(value, Tensor):
        return value
    inner = value if isinstance(value, list | tuple) else getattr(value, "__dict__", {})
    for each in inner.values() if isinstance(inner, Mapping) else inner:
        if isinstance(each, Tensor):
            return each
    raise UserError(say("asserts.no_tensor", found=type(value).__name__))
