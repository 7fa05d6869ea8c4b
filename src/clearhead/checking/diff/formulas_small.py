"""Formulas of single numbers, products with a matrix, and sums: what gives a stage from what came before it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, permutations

import torch
from torch import Tensor

from clearhead.checking.diff.numbers import alike, constant, gap, mark, plain
from clearhead.checking.diff.reading import Read, Reading
from clearhead.checking.kinds.feedforward_found import ACTIVATIONS
from clearhead.messages import say

RECENT, FEWER = 14, 8
"""How many stages back a sum of two is looked for, and one of three."""

EXACT = 1e-9
"""One number that is another is as near as this."""

TOLD = 1e-3
"""How near the factors of a sum must be told."""

WIDEST = 2e4
"""No root of a greater number is one that people write."""

ROWS = 64
"""How many numbers a sum is solved on; the rest tests it."""


def activations(reading: Reading, place: int) -> Iterator[Read]:
    """y = f(x), or f(x) u with a gate, for each known activation f."""
    y = reading.value(place)
    sources = [at for at in reading.sources(place) if reading.value(at).numel() == y.numel() and at != place]
    for at in sources:
        x = reading.value(at).reshape(y.shape)
        for name, function in ACTIVATIONS.items():
            left = gap(function(x), y)
            if left <= reading.near:
                yield Read(("one", name), f"{name}(x)", left, reading.named((at,)))
    for gate, up in permutations(sources, 2):
        x, u = (reading.value(at).reshape(y.shape) for at in (gate, up))
        both = tuple(sorted(reading.named((gate, up))))
        first = "x1" if reading.known[gate] == both[0] else "x2"
        second = "x2" if first == "x1" else "x1"
        for name, function in (*ACTIVATIONS.items(), ("", lambda z: z)):
            left = gap(function(x) * u, y)
            if left <= reading.near and (name or first == "x1"):
                words = f"{name}({first}) · {second}" if name else f"{first} · {second}"
                yield Read(("gated", name, first if name else ""), words, left, both)


def activation_id(a: Read, b: Read) -> str:
    """Which function, or which of two is bent."""
    if a.key[0] != b.key[0] or "" in (a.key[1], b.key[1]):
        return "activation.missing"
    return "activation.gate" if a.key[1] == b.key[1] else "activation.variant"


NEAR_ONE = 1e-5
"""Factors as near to 1 as this are written by what they are more or less."""


def elementwise(reading: Reading, place: int) -> Iterator[Read]:
    """y = x, c x, cap tanh(x / cap), or x with some numbers dropped and the others grown."""
    y = reading.value(place)
    for at in reading.sources(place):
        x = reading.shaped(at, y)
        if x is None or constant(x):
            continue
        sources = reading.named((at,))
        if at == place or gap(x, y) <= reading.near:
            yield Read(("x",), "x", 0.0, sources)
            continue
        c = float((x * y).sum() / (x * x).sum())
        left = gap(c * x, y)
        if left <= reading.near and not constant(y):
            yield Read(("factor", f"{c:.6g}"), f"{factor_words(c, x.shape[-1])} · x", left, sources)
            continue
        yield from _capped(reading, x, y, sources)
        yield from _dropped(reading, x, y, sources)


def _capped(reading: Reading, x: Tensor, y: Tensor, sources: tuple[int, ...]) -> Iterator[Read]:
    at = int(x.abs().argmax())
    cap = cap_of(float(x.flatten()[at]), float(y.flatten()[at]))
    if cap is not None:
        left = gap(cap * (x / cap).tanh(), y)
        if left <= max(reading.near, 1e-8):
            yield Read(("cap", f"{cap:.6g}"), f"{cap:.6g} · tanh(x / {cap:.6g})", left, sources)


def cap_of(x: float, y: float) -> float | None:
    """The cap with y = cap tanh(x / cap), by halving; None if there is none."""
    if not 0 < abs(y) < abs(x) or x * y < 0:
        return None
    low, high = abs(y), 1e6 * abs(x)
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if middle * math.tanh(abs(x) / middle) < abs(y) else (low, middle)
    return math.sqrt(low * high)


def _dropped(reading: Reading, x: Tensor, y: Tensor, sources: tuple[int, ...]) -> Iterator[Read]:
    gone = (y == 0) & (x != 0)
    if not bool(gone.any()) or bool(gone.all()):
        return
    c = float((y[~gone] / x[~gone]).median())
    left = gap(torch.where(gone, torch.zeros_like(x), c * x), y)
    rate = float(gone.double().mean())
    if left <= reading.near:
        words = say("diff.words_dropped", rate=f"{rate:.2f}", factor=f"{c:.4g}")
        yield Read(("dropped", f"{c:.4g}"), words, left, sources)


def elementwise_id(a: Read, b: Read) -> str:
    """A factor, a cap, or dropout."""
    kinds = {a.key[0], b.key[0]}
    if "dropped" in kinds:
        return "dropout.active-in-eval"
    return "attention.softcap" if "cap" in kinds else "scale.factor"


def factor_words(c: float, width: int) -> str:
    """A factor by the formula that brings it about."""
    named = {"sqrt(D)": width**0.5, "1 / sqrt(D)": width**-0.5, "D": float(width), "1 / D": 1 / width} if width else {}
    for words, value in named.items():
        if value and abs(c / value - 1) < 1e-6 and value not in (1.0, 2.0, 0.5):
            return f"{words} = {c:.6g}"
    return f"{c:.6g}" if c == 1 or abs(c - 1) > NEAR_ONE else f"(1 {c - 1:+.1e})"


def products(reading: Reading, place: int) -> Iterator[Read]:
    """y = x Wᵀ + b with the weights that entered; W itself in place of Wᵀ where it is square, and without b."""
    y = reading.value(place)
    for at in reading.sources(place):
        x = _as_given(reading, place, at)
        if at == place or x is None:
            continue
        biases = reading.given(place, 1, y.shape[-1])
        for matrix in reading.given(place, 2, x.shape[-1]):
            yield from _product(reading, (x, y), matrix, biases, reading.named((at,)))


def _as_given(reading: Reading, place: int, at: int) -> Tensor | None:
    """A source as a product takes it: with the axes that the product has, which a view may have given it; None if it does not."""
    x, y = reading.value(at), reading.value(place)

    def fits(z: Tensor) -> bool:
        return z.dim() == y.dim() >= 2 and z.shape[:-1] == y.shape[:-1]

    if fits(x):
        return x
    inputs = [plain(z) for n in reading.region(place) for z in reading.stage(n).inputs if z.numel() == x.numel()]
    return next((z for z in inputs if fits(z) and alike(mark(z), mark(x))), None)


def _product(
    reading: Reading, between: tuple[Tensor, Tensor], matrix: Tensor, biases: list[Tensor], sources: tuple[int, ...]
) -> Iterator[Read]:
    x, y = between
    wanted, seen = (x.shape[-1], y.shape[-1]), f"{float(matrix.abs().sum()):.9g}"
    for turned, form in ((matrix.T, "x Wᵀ"), (matrix, "x W")):
        if tuple(turned.shape) != wanted:
            continue
        made = x @ turned
        for bias, words in ((None, form), *((each, f"{form} + b") for each in biases)):
            left = gap(made if bias is None else made + bias, y)
            if left <= reading.near:
                # Both ways of storing a matrix that is not square are the same product.
                form_key = form if wanted[0] == wanted[1] else ""
                name = reading.weight(matrix)
                key = ("product", seen, form_key, bias is not None)
                yield Read(key, words, left, sources, f"W = {name}" if name else "")
                return


def product_id(a: Read, b: Read) -> str:
    """A matrix the wrong way round, a bias, or other weights."""
    if a.key[1] != b.key[1]:
        return "weights.values"
    return "load.transposed" if a.key[2] != b.key[2] else "projection.bias"


def vectors(reading: Reading, place: int) -> Iterator[Read]:
    """y = x + b or x · w with a vector of weights that entered."""
    y = reading.value(place)
    if place in reading.known or y.dim() < 2:
        return
    for at in reading.sources(place):
        x = reading.value(at)
        for each in reading.given(place, 1, y.shape[-1]) if x.shape == y.shape else ():
            for words, made in (("x + b", x + each), ("x · w", x * each)):
                left = gap(made, y)
                if left <= reading.near:
                    yield Read(("vector", words), words, left, reading.named((at,)))


def sums(reading: Reading, place: int) -> Iterator[Read]:
    """y = Σ c x over one to three of the stages that came before it and have its shape, or that of all its rows."""
    y = reading.value(place)
    if place in reading.known:
        yield Read(((reading.known[place], "1"),), "x", 0.0, ())
        return
    behind = [at for at in reading.distinct if at < place and _covers(reading.value(at), y)][-RECENT:]
    few = torch.linspace(0, y.numel() - 1, min(ROWS, y.numel())).long()
    wanted = y.flatten()[few]
    columns = {at: reading.value(at).expand_as(y).flatten()[few] for at in behind}
    for count, among in ((1, behind), (2, behind), (3, behind[-FEWER:])):
        every = list(combinations(among, count))
        if not every:
            continue
        # All sums of so many terms at once, on a few of the numbers.
        matrix = torch.stack([torch.stack([columns[at] for at in chosen], -1) for chosen in every])
        solved = torch.linalg.lstsq(matrix, wanted.expand(len(every), -1)[..., None]).solution
        left = (matrix @ solved - wanted[:, None]).abs().amax((1, 2))
        for n in (left <= reading.near * wanted.abs().max()).nonzero().flatten().tolist():
            found = _whole(reading, y, every[n], solved[n, :, 0]) if _steady(reading, matrix[n]) else None
            if found is not None:
                yield found
                return


def _covers(x: Tensor, y: Tensor) -> bool:
    return x.dim() >= 2 and x.squeeze(0).shape == y.shape[y.dim() - x.squeeze(0).dim() :] and not constant(x)


def _steady(reading: Reading, columns: Tensor) -> bool:
    """Whether the factors of a sum are told by its numbers: terms that are nearly multiples of each other may stand for anything."""
    lengths = columns.norm(dim=0)
    if bool((lengths == 0).any()):
        return False
    sizes = torch.linalg.svdvals(columns / lengths)
    return float(sizes[-1]) * TOLD > reading.near * float(sizes[0])


def simple(c: float, near: float) -> bool:
    """Whether a factor is one that people write: a few digits, or the root of a whole number, or one by it."""
    for each in (c, 1 / c, c * c, 1 / (c * c)):
        rounded = float(f"{each:.3g}") if each is c else float(round(each))
        if 0 < abs(rounded) <= WIDEST and abs(each / rounded - 1) <= near:
            return True
    return False


def _whole(reading: Reading, y: Tensor, chosen: tuple[int, ...], solved: Tensor) -> Read | None:
    """The sum, if it gives all of the numbers."""
    columns = torch.stack([reading.value(at).expand_as(y).flatten() for at in chosen], -1)
    left = gap(columns @ solved, y.flatten())
    if left > reading.near or bool((solved.abs() < 1e-6).any()):
        return None
    if len(chosen) == 1 and left > EXACT and abs(float(solved[0]) - 1) <= reading.near:
        # What is as near as a narrower type rounds is not the same: an eps was added.
        return None
    if len(chosen) > 1 and not all(simple(float(c), max(10 * reading.near, 1e-7)) for c in solved):
        return None
    terms = sorted((reading.known[at], f"{float(c):.6g}") for at, c in zip(chosen, solved, strict=True))
    return Read(tuple(terms), "", left, ())
