"""Attention weights and scores as formulas: over which axis, who sees whom, and by what the scores are scaled."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from clearhead.checking.common.trial import apart
from clearhead.checking.diff.formulas_scale import SCALES, scale_id, scale_words
from clearhead.checking.diff.formulas_sight import pattern_key, sight, sight_id
from clearhead.checking.diff.formulas_small import factor_words
from clearhead.checking.diff.numbers import HIDDEN, alike, constant, unsized
from clearhead.checking.diff.reading import Placed, Read, Reading, Scene, reason
from clearhead.messages import say

NOTHING = 1e-30
"""A weight below this is none."""

PRODUCTS = frozenset(("matmul", "bmm", "einsum", "baddbmm"))

FINITE = 1e-8
"""How near the logarithms of weights come to one number where scores are hidden by one."""


def softmaxes(reading: Reading, place: int) -> Iterator[Read]:
    """y = softmax over an axis of scores, of which some are hidden, a factor or a cap before it."""
    y = reading.value(place)
    if y.dim() < 3 or bool((y < 0).any()) or bool((y > 1 + 1e-9).any()) or place in reading.known:
        return
    if _hidden_later(reading, place):
        return
    for at in reading.sources(place):
        x = reading.value(at)
        if x.shape != y.shape or constant(x) or bool(x.isnan().any()):
            continue
        sources = reading.named((at,))
        for axis in range(-1, -y.dim() - 1, -1):
            sums = y.sum(axis)
            if y.shape[axis] < 2 or not bool(((sums - 1).abs() < 1e-6).logical_or(sums <= NOTHING).all()):
                continue
            found = list(_softmax(reading, at, y, axis, sources))
            yield from found or (_finite(reading, x, y, sources) if axis == -1 else ())
        yield from _after(reading, x, y, sources)


def _softmax(reading: Reading, at: int, y: Tensor, axis: int, sources: tuple[int, ...]) -> Iterator[Read]:
    x = reading.value(at)
    seen = (y > NOTHING) | ((x.abs() >= HIDDEN) & (y > 0))
    for kind, value in _before(x, y, seen, axis):
        made = value.masked_fill(~seen, float("-inf")).softmax(axis).nan_to_num()
        left = apart(made, y)
        if left <= max(reading.near, 1e-8 if kind else 0.0):
            pattern = sight(seen)
            inner = _inner(reading, at, kind)
            words = say("diff.words_softmax", inner=inner, axis=_axis(axis), sight=pattern)
            yield Read(("softmax", axis, pattern_key(seen), inner), words, left, sources)
            return


def _inner(reading: Reading, at: int, kind: str) -> str:
    """What the softmax is taken of, in words; a factor of the bare product of q and k by its formula."""
    if not kind:
        return "x"
    name, _, number = kind.partition(" ")
    if name == "cap":
        return f"{number} · tanh(x / {number})"
    stage, x = reading.stage(at), reading.value(at)
    operands = [each for each in stage.inputs if each.dim() >= 3]
    if stage.made_by in PRODUCTS and len(operands) == 2:
        return f"{scale_words(float(number), operands[0].shape[-1], x.shape[1], x.shape[-1])} · x"
    return f"{factor_words(float(number), 0)} · x"


def _before(x: Tensor, y: Tensor, seen: Tensor, axis: int) -> Iterator[tuple[str, Tensor]]:
    """What the softmax may be taken of: the scores, these by a factor, or capped."""
    yield "", x
    logs = torch.where(seen, y, torch.ones_like(y)).log()
    inside = torch.where(seen, x, torch.zeros_like(x))
    count = seen.sum(axis, keepdim=True).clamp(min=1)
    rows = (inside - inside.sum(axis, keepdim=True) / count) * seen
    wanted = (logs - (logs * seen).sum(axis, keepdim=True) / count) * seen
    power = float((rows * rows).sum())
    if power > 0:
        c = float((rows * wanted).sum()) / power
        yield f"factor {c:.9g}", x * c
    for cap in _caps(x, logs, seen, axis):
        yield f"cap {cap:.6g}", cap * (x / cap).tanh()


def _caps(x: Tensor, logs: Tensor, seen: Tensor, axis: int) -> Iterator[float]:
    """Caps that fit: a row's largest and smallest number have a known distance after the cap."""
    best, found = float("inf"), None
    for step in range(241):
        cap = 10 ** (step / 60 - 1)
        capped = cap * (x / cap).tanh()
        error = _spread(capped - logs, seen, axis)
        if error < best:
            best, found = error, cap
    if found is None:
        return
    low, high = found / 1.05, found * 1.05
    for _ in range(80):
        one, other = low + (high - low) / 3, high - (high - low) / 3
        errors = [_spread(cap * (x / cap).tanh() - logs, seen, axis) for cap in (one, other)]
        low, high = (low, other) if errors[0] < errors[1] else (one, high)
    yield (low + high) / 2


def _spread(gap: Tensor, seen: Tensor, axis: int) -> float:
    """How far a difference is from being one number a row."""
    gap = torch.where(seen, gap, torch.zeros_like(gap))
    count = seen.sum(axis, keepdim=True).clamp(min=1)
    return float((((gap - gap.sum(axis, keepdim=True) / count) * seen) ** 2).sum())


def _axis(axis: int) -> str:
    """An axis of weights (B,H,T,S), counted from the last, in words."""
    words = {
        -1: say("diff.axis_keys"),
        -2: say("diff.axis_queries"),
        -3: say("diff.axis_heads"),
        -4: say("diff.axis_rows"),
    }
    return words.get(axis, str(axis))


def _hidden_later(reading: Reading, place: int) -> bool:
    """Whether some of the weights are taken away behind the softmax: what is read there tells all of it."""
    y = reading.value(place)
    for at in reading.looked:
        z = reading.value(at)
        if place not in reading.parents[at] or z.shape != y.shape:
            continue
        gone = (z == 0) & (y > NOTHING)
        if bool(gone.any()) and not bool(gone.all()) and apart(torch.where(gone, torch.zeros_like(y), y), z) == 0:
            return True
    return False


def _finite(reading: Reading, x: Tensor, y: Tensor, sources: tuple[int, ...]) -> Iterator[Read]:
    """y = softmax of x in which some are replaced by a number, or have it added, that hides nothing for sure."""
    T, S = y.shape[-2:]
    if S < T or bool((y <= NOTHING).any()):
        return
    more = y.log() - x
    more = more - more.diagonal(S - T, -2, -1)[..., None]
    hidden = more.abs() > FINITE * 100
    if not bool(hidden.any()) or bool(hidden.flatten(0, -2).all(-1).any()):
        return
    for added, value in ((False, more + x), (True, more)):
        c = float(value[hidden].median())
        if abs(c) >= HIDDEN or float((value[hidden] - c).abs().max()) > FINITE * max(1.0, abs(c)):
            continue
        made = torch.where(hidden, x + c if added else torch.full_like(x, c), x).softmax(-1)
        left = apart(made, y)
        if left <= max(reading.near, FINITE):
            number, pattern = f"{c:.6g}", sight(~hidden)
            words = say("diff.words_finite_added", number=number, sight=pattern)
            words = words if added else say("diff.words_finite", number=number, sight=pattern)
            yield Read(("finite", -1, pattern_key(~hidden), number), words, left, sources)
            return


def _after(reading: Reading, x: Tensor, y: Tensor, sources: tuple[int, ...]) -> Iterator[Read]:
    """Weights that were hidden after the softmax, so that rows do not sum to 1."""
    seen = y > NOTHING
    left = apart(x.softmax(-1) * seen, y)
    if left <= reading.near and not bool(seen.all()):
        words = say("diff.words_after", sight=sight(seen))
        yield Read(("after", -1, pattern_key(seen), ""), words, left, sources)


def softmax_id(a: Read, b: Read) -> str:
    """The axis, the order of mask and softmax, who sees whom, or what is done to the scores."""
    if a.key[1] != b.key[1]:
        return "softmax.axis"
    if "finite" in (a.key[0], b.key[0]):
        return "causal.finite-mask"
    if a.key[0] != b.key[0]:
        return "causal.after-softmax"
    if a.key[2] != b.key[2]:
        return sight_id(str(a.key[2]), str(b.key[2]))
    both = f"{a.key[3]}, {b.key[3]}"
    if "tanh" in both:
        return "attention.softcap"
    odd = [str(each.key[3]) for each in (a, b) if "1 / sqrt(d)" not in str(each.key[3])]
    words = odd[0].partition(" = ")[0] if len(odd) == 1 else ""
    return SCALES.get("1" if words == "x" else words, "scale.factor")


def scores(scene: Scene) -> Placed | None:
    """Scores that differ by a factor: each beside the product of q and k as both have them."""
    for first, second in scene.pairs():
        # A factor may stand behind the product.
        i, j = _grown(scene.a, first), _grown(scene.b, second)
        x, y = scene.a.value(i), scene.b.value(j)
        if x.dim() < 3 or x.numel() != y.numel() or x.shape[-2:] != y.shape[-2:] or constant(x):
            continue
        # Heads may be in groups.
        y = y.reshape(x.shape)
        if bool((x.abs() >= HIDDEN).any()):
            continue
        c = float((x * y).sum() / (x * x).sum())
        left = apart(c * x, y)
        if left > scene.a.near or abs(c - 1) < 1e-9:
            continue
        one, other = _natural(scene.a, i), _natural(scene.b, j)
        if one is None and other is None:
            continue
        # Where one of the two products cannot be read, the other tells, and how far the two are apart.
        width = (one or other or (0.0, 0))[1]
        factors = (one[0], one[0] * c) if one is not None else (other[0] / c if other is not None else 0.0, 0.0)
        factors = factors if other is None else (factors[0], other[0])
        heads = x.numel() // (x.shape[0] * x.shape[-1] * x.shape[-2])
        words = [scale_words(each, width, heads, x.shape[-1]) for each in factors]
        text = say("diff.scores", a=words[0], b=words[1], where=scene.b.stage(j).where or scene.a.stage(i).where or "-")
        return reason(scale_id(factors, width, heads, x.shape[-1]), scene, (i, j), text, left)
    return None


def _grown(reading: Reading, place: int) -> int:
    """The last place that is a multiple of a place, one after the other."""
    for at in reading.looked:
        x, y = reading.value(place), reading.value(at)
        if place in reading.parents[at] and x.shape == y.shape and not constant(x):
            c = float((x * y).sum() / (x * x).sum())
            if apart(c * x, y) <= reading.near:
                place = at
    return place


def as_scaled(scene: Scene, i: int, j: int) -> tuple[int, int]:
    """Two places of scores, each behind the factor that may follow, where both are the same multiple of q and k there; else as they are."""
    for one in dict.fromkeys((i, _grown(scene.a, i))):
        for other in dict.fromkeys((j, _grown(scene.b, j))):
            factors = _natural(scene.a, one), _natural(scene.b, other)
            if factors[0] and factors[1] and abs(factors[0][0] / factors[1][0] - 1) < 1e-6:
                return one, other
    return i, j


def _natural(reading: Reading, place: int) -> tuple[float, int] | None:
    """By what a stage of scores is more than the product of what both have, and the width d of that product."""
    for at in reversed(reading.region(place) if place not in reading.known else []):
        pair = [x.double() for x in reading.stage(at).inputs if x.dim() >= 3]
        if len(pair) != 2 or reading.stage(at).made_by == "softmax":
            continue
        y, size = reading.value(place), 1.0
        made = _multiplied(pair[0], pair[1], y)
        if made is None:
            continue
        sources = [reading.value(s) for s in reading.sources(at)]
        for operand in pair:
            same = [s for s in sources if s.numel() == operand.numel() and alike(unsized(s), unsized(operand))]
            near = [float(_rms(operand) / _rms(s)) for s in same]
            size *= min(near, key=lambda r: abs(r - 1), default=1.0)
        return float((made * y).sum() / (made * made).sum()) * size, pair[0].shape[-1]
    return None


def _multiplied(one: Tensor, other: Tensor, y: Tensor) -> Tensor | None:
    """q kᵀ of two operands, in whichever way their axes lie, if it has the shape of the scores and is a multiple of them."""
    for q in (one, one.transpose(1, 2) if one.dim() == 4 else one):
        for k in (other, other.transpose(1, 2) if other.dim() == 4 else other):
            for turned in (k.transpose(-2, -1), k):
                if q.shape[-1] != turned.shape[-2] or q.shape[:-2] != turned.shape[:-2]:
                    continue
                made = q @ turned
                if made.shape == y.shape and apart(made * float((made * y).sum() / (made * made).sum()), y) < 1e-6:
                    return made
    return None


def _rms(x: Tensor) -> Tensor:
    return x.square().mean().sqrt()
