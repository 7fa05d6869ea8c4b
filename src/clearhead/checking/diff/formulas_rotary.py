"""Rotary turns as formulas, solved from vectors before and after: which features pair, how many turn, how fast, from which position."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.checking.common.trial import apart
from clearhead.checking.diff.numbers import constant
from clearhead.checking.diff.reading import Read, Reading
from clearhead.messages import say


class Turned(NamedTuple):
    """A turn.

    Args:
        pairing: "half-split" (i, i + r/2) or "interleaved" (2i, 2i + 1).
        turning: r, how many features turn.
        base: of the frequencies base^(-2i/r).
        start: the position of the first vector.
        direction: 1, or -1 if it turns backwards.
        left: what is left of the vectors after it.
    """

    pairing: str
    turning: int
    base: float
    start: float
    direction: int
    left: float


def turns(reading: Reading, place: int) -> Iterator[Read]:
    """y = the turn of a source, whatever its axes."""
    y = reading.value(place)
    if y.dim() == 5 and y.shape[-1] == 2:
        # Complex numbers, as pairs.
        y = y.flatten(-2)
    if y.dim() not in (3, 4) or place in reading.known or constant(y):
        return
    for at in reading.wider(place):
        x = reading.value(at)
        if x.numel() != y.numel() or constant(x):
            continue
        for before, after in _layouts(x, y):
            found = solved(before, after, reading.near)
            if found is not None:
                key = ("turn", found.pairing, found.turning, f"{found.base:.4g}", f"{found.start:.3g}", found.direction)
                yield Read(key, _words(found, y.shape[-1]), found.left, reading.named((at,)))
                return


def _layouts(x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Before and after, both (..., T, d), where the turn keeps the length of each vector."""
    forms = [x] if x.shape == y.shape else []
    if x.dim() == 4 and x.transpose(1, 2).shape == y.shape:
        forms.append(x.transpose(1, 2))
    if x.dim() == 3 and y.dim() == 4:
        if y.shape[1] == x.shape[1]:
            forms.append(x.reshape(y.shape))
        if y.shape[2] == x.shape[1]:
            forms.append(x.reshape(y.shape[0], y.shape[2], y.shape[1], y.shape[3]).transpose(1, 2))
    for form in forms:
        if apart(form.norm(dim=-1), y.norm(dim=-1)) < 1e-6:
            yield form, y
            if y.dim() == 4:
                yield form.transpose(1, 2), y.transpose(1, 2)


def solved(x: Tensor, y: Tensor, near: float) -> Turned | None:
    """The turn that takes x to y, both (..., T, d); None if none does.

    Args:
        x: before.
        y: after.
        near: the largest difference that may be left, beside the largest number.
    """
    width = x.shape[-1]
    still = (x - y).abs().flatten(0, -2).amax(0) <= near * x.abs().max()
    if bool(still.all()) or x.shape[-2] < 3:
        return None
    last = int((~still).nonzero().max()) + 1
    for turning in sorted({width, last, last + last % 2}):
        if turning % 2 or turning > width or not bool(still[turning:].all()):
            continue
        for pairing in ("half-split", "interleaved"):
            found = _solved(_complex(x, pairing, turning), _complex(y, pairing, turning), near)
            if found is not None:
                return Turned(pairing, turning, *found)
    return None


def _complex(x: Tensor, pairing: str, turning: int) -> Tensor:
    """(N, T, r/2): pairs as complex numbers."""
    part = x[..., :turning].reshape(-1, x.shape[-2], turning)
    half = turning // 2
    one, other = (part[..., :half], part[..., half:]) if pairing == "half-split" else (part[..., 0::2], part[..., 1::2])
    return torch.complex(one.contiguous(), other.contiguous())


def _solved(x: Tensor, y: Tensor, near: float) -> tuple[float, float, int, float] | None:
    """Base, start, direction and what is left, if all vectors of a position turn by one angle a pair, and angles grow evenly."""
    turn = (y * x.conj()).sum(0)
    turn = turn / turn.abs()
    left = float((x * turn - y).abs().max() / y.abs().max())
    if left > max(near, 1e-7):
        return None
    steps = (turn[1:] * turn[:-1].conj()).angle()
    speeds = steps[0]
    if bool(((steps - speeds).abs() > 1e-5).any()) or float(speeds[0]) == 0:
        return None
    direction = 1 if float(speeds[0]) > 0 else -1
    pairs = len(speeds)
    ratio = float(speeds[1] / speeds[0]) if pairs > 1 else 1.0
    base = ratio**-pairs if ratio > 0 else math.nan
    # The slowest pair tells the start without whole turns.
    start = float(turn[0, -1].angle() / speeds[-1]) if float(speeds[-1].abs()) > 1e-12 else 0.0
    return base, round(start, 4) + 0.0, direction, left


def _words(found: Turned, width: int) -> str:
    return say(
        "diff.words_turn",
        pairing=found.pairing,
        turning=found.turning,
        width=width,
        base=f"{found.base:.6g}",
        start=f"{found.start:g}",
        direction="-" if found.direction < 0 else "+",
    )


def turn_id(a: Read, b: Read) -> str:
    """The first of pairing, partial width, base and positions that is different."""
    names = ("", "rotary.pairing", "rotary.partial", "rotary.base", "rotary.offset", "rotary.direction")
    return next((name for place, name in enumerate(names) if name and a.key[place] != b.key[place]), "rotary")
