"""Sines and cosines of positions: which columns form a pair, and how fast each pair turns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

BASE = 10_000.0


class Waves(NamedTuple):
    """A table read as pairs of one sine and one cosine.

    Args:
        layout: "interleaved" or "halves".
        speeds: ω (n), an angle a position.
        start: the position of the first row, the same for all pairs; None if the pairs do not agree.
        steady: whether each angle grows by the same step.
    """

    layout: str
    speeds: Tensor
    start: float | None
    steady: bool


def layouts(table: Tensor) -> Iterator[tuple[str, Tensor, Tensor]]:
    """The two ways to pair columns: (name, first columns, second columns)."""
    width = table.shape[1] // 2 * 2
    yield "interleaved", table[:, 0:width:2], table[:, 1:width:2]
    yield "halves", table[:, : width // 2], table[:, width // 2 : width]


def squares_off(table: Tensor) -> dict[str, Tensor]:
    """(n) for each layout: how far a² + b² of each pair is from a constant, beside its size."""
    found = {}
    for name, a, b in layouts(table):
        squares = a**2 + b**2
        found[name] = (squares - squares[:1]).abs().amax(0) / squares.abs().max().clamp(min=1e-30)
    return found


def waves(table: Tensor, near: float) -> Waves | None:
    """The table (T,D) as waves; None if no pairing has a² + b² constant."""
    off = squares_off(table)
    best = min(off, key=lambda name: float(off[name].max()))
    if float(off[best].max()) > near:
        return None
    _, a, b = next(each for each in layouts(table) if each[0] == best)
    angle = torch.atan2(a, b)
    if float(_step(angle).median()) < 0:
        angle = torch.atan2(b, a)
    step = torch.remainder(angle[1:] - angle[:-1] + torch.pi, 2 * torch.pi) - torch.pi
    steady = bool((torch.remainder(step - step[:1] + torch.pi, 2 * torch.pi) - torch.pi).abs().max() < 100 * near)
    speeds = step.median(0).values
    begun = angle[0] / speeds.where(speeds.abs() > 1e-9, torch.ones_like(speeds))
    clear = (speeds.abs() > 1e-3) & (speeds.abs() < 0.5)
    starts = begun[clear] if bool(clear.any()) else begun[:1]
    agree = bool((starts - starts[0]).abs().max() < 1e-2)
    return Waves(best, speeds, float(starts[0]) if agree else None, steady)


def _step(angle: Tensor) -> Tensor:
    return torch.remainder(angle[1] - angle[0] + torch.pi, 2 * torch.pi) - torch.pi


def known_mistake(table: Tensor, near: float) -> str | None:
    """The faulty formula that gives this table, as it is written; None if none does."""
    length, width = table.shape
    t, n = torch.arange(length, dtype=torch.float64)[:, None], width // 2
    i, j = torch.arange(n, dtype=torch.float64), torch.arange(2 * n, dtype=torch.float64)
    formulas = {
        "sin, cos(t · 10000^(2i/D))": BASE ** (2 * i / width),
        "sin, cos(t / 10000^(i/D))": BASE ** (-i / width),
        "sin, cos(t / 10000^(4i/D))": BASE ** (-4 * i / width),
        "sin, cos(t / 10000^i)": BASE ** (-i),
        "sin, cos(t), without frequencies": torch.ones(n, dtype=torch.float64),
        "sin, cos(t / (10000 · 2i/D))": 1 / (BASE * 2 * i / width),
        "sin, cos(t / (2i/D)^10000)": 1 / (2 * i / width) ** BASE,
        "sin, cos(t · 2i/D)": 2 * i / width,
        "sin, cos(t / 10000)": torch.full((n,), 1 / BASE, dtype=torch.float64),
        "sin, cos(t / (10000^(2i) / D)), divided by D outside the power": width * BASE ** (-2 * i),
        "sin, cos(t / (10000^i / D)), divided by D outside the power": width * BASE ** (-i),
        "sin, cos(t · 10000^(-2i) / D), divided by D outside the power": BASE ** (-2 * i) / width,
        "sin, cos(t / 10000^(2i))": BASE ** (-2 * i),
        "sin, cos(t · exp(-2i / D)), without the base": (-2 * i / width).exp(),
        "sin, cos(t · exp(2i) · -log(10000) / D)": -(2 * i).exp() * math.log(BASE) / width,
        "sin, cos(t · exp(-log10(10000) · 2i/D)), with the logarithm to 10": (-4 * 2 * i / width).exp(),
        "sin, cos(t · exp(-log2(10000) · 2i/D)), with the logarithm to 2": (-math.log2(BASE) * 2 * i / width).exp(),
        "sin, cos(t · -log(10000) · 2i/D), without exp": -math.log(BASE) * 2 * i / width,
        "sin, cos(t / (1 + 10000 · 2i/D))": 1 / (1 + BASE * 2 * i / width),
        "sin, cos(t / 10000^(D/2i))": BASE ** (-width / (2 * i)),
    }  # fmt: skip
    for name, speeds in formulas.items():
        angle = t * speeds
        if any(_is(first, second, angle, near) for _, first, second in layouts(table)):
            return name
    right = t * BASE ** (-2 * i / width)
    for name, wave in (("sine", right.sin()), ("cosine", right.cos())):
        if any(_close(first, wave, near) and _close(second, wave, near) for _, first, second in layouts(table)):
            return f"the {name} in both columns of a pair"
    columns = {
        "column j at t / 10000^(2j/D), so that sine and cosine differ": BASE ** (-2 * j / width),
        "column j at t / 10000^(j/D), so that sine and cosine differ": BASE ** (-j / width),
    }
    return next((name for name, speeds in columns.items() if _of_columns(table, t * speeds, near)), None)


def _of_columns(table: Tensor, angle: Tensor, near: float) -> bool:
    """Whether each column of the table is a sine or cosine of its own angle: the two in turns, in halves, or even columns before odd ones."""
    n = angle.shape[1] // 2
    in_turns, in_halves = (table[:, 0 : 2 * n : 2], table[:, 1 : 2 * n : 2]), (table[:, :n], table[:, n : 2 * n])
    turns = (angle[:, 0::2].sin(), angle[:, 1::2].cos())
    halves = (angle[:, :n].sin(), angle[:, n:].cos())
    ways = ((in_turns, turns), (in_halves, halves), (in_halves, turns))
    return any(_close(of[0], wave[0], near) and _close(of[1], wave[1], near) for of, wave in ways)


def _is(first: Tensor, second: Tensor, angle: Tensor, near: float) -> bool:
    if _close(first, angle.sin(), near) and _close(second, angle.cos(), near):
        return True
    return _close(first, angle.cos(), near) and _close(second, angle.sin(), near)


def _close(one: Tensor, other: Tensor, near: float) -> bool:
    both = one.isfinite() & other.isfinite()
    same = bool((one.isfinite() == other.isfinite()).all())
    return same and bool(both.any()) and bool(((one - other)[both].abs() < near).all())
