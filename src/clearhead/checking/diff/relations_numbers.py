"""What numbers are to others at the same places: a constant, a factor, a sum, rounded or quantised."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.checking.diff.relations_orders import Shapes
from clearhead.checking.diff.relations_views import near, sampled
from clearhead.messages import say

EXACT = 1e-13
"""What may be lost where numbers are only multiplied or added to, in float64."""

SINGLE = 5e-7
"""The same, where B's were computed in float32."""

KINDS = (torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16, torch.float16, torch.float32)
"""Types that numbers may have been rounded to, the narrowest first."""

SCHEMES = ((8, 0), (8, 32), (8, 64), (8, 128), (4, 32), (4, 64), (4, 128), (4, 0))
"""How weights are usually quantised: bits, and how many neighbours of a row share a scale (0: all)."""


class Linear(NamedTuple):
    """B is A times a factor plus a number."""

    factor: float
    shift: float


def linear(a: Tensor, b: Tensor, offset: float = 1.0) -> Iterator[Linear]:
    """The factors and sums that may turn A's numbers into B's: no change, negated, a factor, a sum.

    Args:
        a: numbers, float64, in the order of B's.
        b: B's.
        offset: what one that is added to every entry adds to these numbers.
    """
    norm, largest = float(a.norm()), float(b.abs().max())
    if not math.isfinite(norm) or not math.isfinite(largest):
        return
    yield Linear(1.0, 0.0)
    # Of few numbers some factor or sum is soon right.
    if len(a) < 4 or norm == 0.0:
        return
    yield Linear(-1.0, 0.0)
    factor = float((a * b).sum()) / norm**2
    if factor:
        yield Linear(_round(factor), 0.0)
    shift = float((b - a).mean()) / offset
    if shift:
        yield Linear(1.0, round(shift) if abs(shift - round(shift)) < 1e-6 and round(shift) else shift)


def _round(factor: float) -> float:
    """A factor without what the rounding of the numbers has added to it."""
    for value in (factor, 1 / factor):
        for power in (1, 2):
            whole = round(abs(value) ** power)
            if 0 < whole <= 65536 and abs(abs(value) ** power / whole - 1) < 1e-6:
                exact = math.copysign(float(whole) ** (1 / power), value)
                return exact if value == factor else 1 / exact
    return factor


def factor_text(factor: float, shapes: Shapes) -> str:
    """A factor as people write it: "2", "sqrt(64), the root of the head width", "1/sqrt(768)"."""
    for value, over in ((factor, ""), (1 / factor, "1/")):
        size = abs(value)
        sign = "-" if factor < 0 else ""
        if abs(size - round(size)) < 1e-9 * size:
            return f"{sign}{over}{round(size)}{_known(round(size), shapes)}"
        square = size * size
        if abs(square - round(square)) < 1e-9 * square and round(square) <= 16384:
            return f"{sign}{over}sqrt({round(square)}){_known(round(square), shapes)}"
    return f"{factor:.6g}"


def _known(number: int, shapes: Shapes) -> str:
    """Which size of the model a number is, if any."""
    if number == shapes.head_width:
        return say("weights.is_head_width", number=number)
    if number == shapes.width:
        return say("weights.is_width", number=number)
    return ""


def constant(b: Tensor) -> float | None:
    """The number that all of B's are, None if they differ."""
    first = b[(0,) * b.dim()]
    value = float(first)
    some = b[:2, :8] if b.dim() == 2 else b[:8]
    if not bool((some == first).all()):
        return None
    return value if b.numel() > 1 and math.isfinite(value) and bool((b == first).all()) else None


def _holds(x: Tensor, kind: torch.dtype) -> bool:
    return x.dtype == kind or bool((x.to(kind).to(x.dtype) == x).all())


def narrowest(a: Tensor, b: Tensor) -> torch.dtype | None:
    """The narrowest type that B's numbers fit in and A's do not; matrices."""
    places = sampled((a.shape[0], a.shape[1]))
    mine, theirs = a[places], b[sampled((b.shape[0], b.shape[1]))]
    for kind in KINDS:
        if not _holds(theirs, kind):
            continue
        if _holds(mine, kind):
            # Of two that are both so rounded, neither is the other's rounding.
            return None
        if _holds(b, kind):
            return kind
    return None


Quantiser = Callable[[Tensor], Tensor]


def quantised(a: Tensor, b: Tensor) -> tuple[int, int, Quantiser] | None:
    """The bits and the group in which A's rows, quantised, are B's, and what does it; None if no usual way does.

    Args:
        a: A's, a matrix.
        b: B's, of the same shape.
    """
    rows = min(len(a), 8)
    gap = float((a[:rows] - b[:rows]).double().norm() / a[:rows].double().norm().clamp_min(1e-300))
    if not 0.0 < gap < 0.2 or a.shape[1] < 8:
        return None
    for bits, group in SCHEMES:
        for levels in (symmetric, spread):
            if group and a.shape[1] % group:
                continue

            def quantise(x: Tensor, levels: Levels = levels, bits: int = bits, group: int = group) -> Tensor:
                groups = x.reshape(-1, group or x.shape[-1]).double()
                return levels(groups, bits).reshape(x.shape).to(x.dtype)

            if _mostly(quantise(a[:rows]), b[:rows]) and _mostly(quantise(a), b):
                return bits, group or a.shape[1], quantise
    return None


Levels = Callable[[Tensor, int], Tensor]


def symmetric(x: Tensor, bits: int) -> Tensor:
    """Numbers (N,G) rounded to multiples of their row's largest, over 2^(bits-1) - 1."""
    scale = x.abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1)
    made: Tensor = torch.round(x / scale.clamp_min(1e-300)) * scale
    return made


def spread(x: Tensor, bits: int) -> Tensor:
    """Numbers (N,G) rounded to 2^bits steps from their row's smallest to its largest."""
    low, high = x.amin(1, keepdim=True), x.amax(1, keepdim=True)
    scale = (high - low) / (2**bits - 1)
    made: Tensor = torch.round((x - low) / scale.clamp_min(1e-300)) * scale + low
    return made


def _mostly(one: Tensor, other: Tensor) -> bool:
    """Whether nearly all are equal but for the rounding of a scale to 16 bit; a number halfway between two steps may go either way."""
    gap = (one - other).abs() <= 6e-4 * other.abs() + 1e-7 * other.abs().max()
    return float(gap.double().mean()) > 0.99


def few_numbers(a: Tensor, b: Tensor) -> int | None:
    """How many different numbers a row of B has at most, where that is far fewer than A's: quantised in some way; else None."""
    rows = min(len(a), 4)
    if a.shape[1] < 32 or float((a[:rows] - b[:rows]).double().norm()) > 0.3 * float(a[:rows].double().norm()):
        return None
    mine, theirs = (max(len(torch.unique(row)) for row in each[:rows]) for each in (a, b))
    return theirs if theirs <= 256 and 2 * theirs < mine and not near(a[:rows], b[:rows], 0.0) else None
