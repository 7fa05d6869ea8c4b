"""Norms as formulas: which statistics, over which axis, where eps stands and how large it is, and how the weights enter.

y = c / s · g + β, where c is x or x minus its mean. For each way in which weights may enter, s is read off the stage row by row, and held
against the variance: sqrt(var + eps), sqrt(var) + eps, each with n or n - 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torch import Tensor

from clearhead.checking.common.trial import apart
from clearhead.checking.diff.formulas_small import factor_words
from clearhead.checking.diff.numbers import constant
from clearhead.checking.diff.reading import Placed, Read, Reading, Scene, compared, reason
from clearhead.checking.diff.sources import embeds
from clearhead.messages import say

AXES = {-1: "features", -2: "tokens", 0: "batch"}
"""Axes over which people take statistics."""

LONG = 14
"""More operations than a norm takes, with the sum before it."""

SMALL = 0.2
"""An eps that is larger than this part of the variance is none."""


TOLD, LARGE = 1e-2, 1e-1
"""How near rows must agree on a larger one, and that part of the largest that is taken."""


class Root(NamedTuple):
    """How the divisor comes from the variance.

    Args:
        form: "sqrt(v + eps)" or "sqrt(v) + eps".
        unbiased: whether the variance divides by n - 1.
        eps: what is added.
    """

    form: str
    unbiased: bool
    eps: float


def norms(reading: Reading, place: int) -> list[Read]:
    """All norms of a source of the same shape that give a place."""
    return norms_of(reading, place, None)


def norms_of(reading: Reading, place: int, of: int | None) -> list[Read]:
    """The same of one certain stage, whether or not that has a partner."""
    key = ("norms", place, of)
    if key not in reading.read:
        reading.read[key] = list(_norms(reading, place, of))
    return reading.read[key]


def _norms(reading: Reading, place: int, of: int | None) -> Iterator[Read]:
    y = reading.value(place)
    if y.dim() < 2 or y.shape[-1] < 3 or place in reading.known or constant(y):
        return
    if len(reading.region(place)) > LONG:
        return
    for at in reading.sources(place) if of is None else [of]:
        x = reading.shaped(at, y)
        if x is None or constant(x):
            continue
        entered = reading.given(place, 1, y.shape[-1])
        vectors = [each for each in entered if not _one_of(each)]
        for form, gain in _gains(entered):
            for shifted, bias in ((False, None), *((True, each) for each in vectors)):
                z = (y if bias is None else y - bias) / (1.0 if gain is None else gain)
                yield from _of(reading, x, z, (form, shifted, at))


def _one_of(each: Tensor) -> bool:
    """Whether a vector of weights is all ones or all zeros, and does nothing."""
    return bool((each == each[0]).all()) and float(each[0]) in (0.0, 1.0)


def _gains(entered: list[Tensor]) -> Iterator[tuple[str, Tensor | None]]:
    """The ways in which weights enter; those by which nothing can be divided are left out, and those that do nothing."""
    yield "", None
    for form, shift in (("w", 0.0), ("(1 + w)", 1.0)):
        for each in entered:
            gain = each + shift
            # What entered may be 1 + w itself, made beside the norm.
            made = any(bool((gain - 1 - other).abs().max() <= 1e-12) for other in entered) and not _one_of(each)
            if bool((gain.abs() > 1e-6).all()) and not bool((gain == 1).all()) and not (made and not shift):
                yield form, gain


def _of(reading: Reading, x: Tensor, z: Tensor, ways: tuple[str, bool, int]) -> Iterator[Read]:
    """The norms that give z, which is the stage with its weights taken off."""
    form, shifted, at = ways
    for axis, over in AXES.items():
        if x.shape[axis] < 2:
            continue
        for centred in (True, False):
            c = x - x.mean(axis, keepdim=True) if centred else x
            if not _along(c, z, axis):
                continue
            power = (c * c).sum(axis, keepdim=True)
            inverse = (c * z).sum(axis, keepdim=True) / power
            left = apart(inverse * c, z)
            if left > max(reading.near, 1e-10) or not bool((inverse > 0).all()):
                continue
            root = _root(1 / inverse, power / x.shape[axis], x.shape[axis], reading.near)
            if root is not None:
                key = ("norm", centred, over, root.form, root.unbiased, f"{root.eps:.2e}", form, shifted)
                yield Read(key, _words(centred, over, root, (form, shifted)), left, (reading.known.get(at, -1),))
                return


def _along(c: Tensor, z: Tensor, axis: int) -> bool:
    """Whether the first line along an axis of the one is a multiple of that of the other, roughly: a quick look before the whole."""
    line: list[int | slice] = [0] * c.dim()
    line[axis] = slice(None)
    one, other = c[tuple(line)], z[tuple(line)]
    return float((one @ other) ** 2) >= (1 - 1e-6) * float((one @ one) * (other @ other))


def _root(s: Tensor, v: Tensor, count: int, near: float) -> Root | None:
    """How a divisor comes from the variance; the first form whose eps is the same in all rows."""
    for unbiased in (False, True):
        own = v * count / (count - 1) if unbiased else v
        for form, eps in (("sqrt(v + eps)", s * s - own), ("sqrt(v) + eps", s - own.sqrt())):
            size = float((own if form == "sqrt(v + eps)" else own.sqrt()).abs().max())
            middle = float(eps.median())
            spread = float((eps - middle).abs().max())
            if spread > max(near, 1e-11) * size or middle < -near * size:
                continue
            # Rows of other sizes tell one number that is added from a factor.
            told = float((own - own.median()).abs().max()) > SMALL * size and spread <= TOLD * middle <= LARGE * size
            if middle <= SMALL * size or told:
                return Root(form, unbiased, 0.0 if abs(middle) < 1e-14 * size else middle)
    return None


def _words(centred: bool, over: str, root: Root, ways: tuple[str, bool]) -> str:
    form, shifted = ways
    top = "(x - mean)" if centred else "x"
    inner = ("var" if centred else "mean(x²)") + (" · n/(n - 1)" if root.unbiased else "")
    eps = f"{root.eps:.3g}"
    below = f"sqrt({inner} + {eps})" if root.form == "sqrt(v + eps)" else f"(sqrt({inner}) + {eps})"
    axis = "" if over == "features" else f" [{over}]"
    return f"{top} / {below}{axis}" + (f" · {form}" if form else "") + (" + b" if shifted else "")


def norm_id(a: Read, b: Read) -> str:
    """What is different, the gravest first."""
    parts = ("", "norm.formula", "norm.axis", "norm.eps-placement", "norm.unbiased-variance", "norm.eps-value")
    for place, name in enumerate(parts):
        if name and a.key[place] != b.key[place]:
            return name
    return "norm.offset" if "(1 + w)" in (a.key[6], b.key[6]) else "norm.weight"


def offset(scene: Scene) -> Placed | None:
    """Gains that enter as w on one side and as 1 + w on the other."""
    found = compared(scene, gains, lambda a, b: "norm.offset" if "(1 + w)" in (a.key[1], b.key[1]) else "")
    return found if found is not None and found.id else None


def gains(reading: Reading, place: int) -> Iterator[Read]:
    """y = x · w or x · (1 + w) with a vector of weights that entered; x itself where the gain is 1."""
    y = reading.value(place)
    if place in reading.known:
        yield Read(("gain", "1"), "x", 0.0, reading.named((place,)))
        return
    entered = reading.given(place, 1, y.shape[-1]) if y.dim() >= 2 else []
    for at in reading.sources(place) if entered else ():
        x = reading.value(at)
        if x.shape != y.shape or constant(x):
            continue
        rows = tuple(range(y.dim() - 1))
        gain = (x * y).sum(rows) / (x * x).sum(rows).clamp(min=1e-300)
        left = apart(x * gain, y)
        for form, shift in (("(1 + w)", 1.0), ("w", 0.0)) if left <= reading.near else ():
            if any(apart(each + shift, gain) <= 10 * reading.near for each in entered):
                yield Read(("gain", form), f"x · {form}", left, reading.named((at,)))
                break


def grown(scene: Scene) -> Placed | None:
    """The same norm, on one side of what has been multiplied by a number before: not another eps."""
    for mirrored in (False, True):
        plainly, grows = (scene.b, scene.a) if mirrored else (scene.a, scene.b)
        for at in plainly.looked:
            for read in norms(plainly, at):
                found = _grown(grows, read)
                if found is None:
                    continue
                place, factor, left = found
                i, j = (place, at) if mirrored else (at, place)
                x = scene.place(read.sources[0])
                words = [x, f"{factor} · {x}"]
                a, b = reversed(words) if mirrored else words
                where = scene.b.stage(j).where or scene.a.stage(i).where or "-"
                stage = scene.a.stage(read.sources[0])
                first = embeds(stage) or not scene.a.parents[read.sources[0]]
                name = "embedding.scale" if first else "scale.factor"
                return reason(name, scene, (i, j), say("diff.rewired", formula=read.words, a=a, b=b, where=where), left)
    return None


def _grown(reading: Reading, read: Read) -> tuple[int, str, float] | None:
    """Where a side has a norm of something multiplied: the place, the factor, and what is left."""
    for place in reading.looked:
        y = reading.value(place)
        for middle in (at for at in reading.region(place) if at != place and reading.value(at).shape == y.shape):
            x = next(
                (reading.value(at) for at in reading.sources(middle) if reading.known[at] == read.sources[0]), None
            )
            if x is None or x.numel() != y.numel() or constant(x):
                continue
            x, z = x.reshape(y.shape), reading.value(middle)
            c = float((x * z).sum() / (x * x).sum())
            if abs(c - 1) < 1e-6 or apart(c * x, z) > reading.near:
                continue
            same = next((each for each in norms_of(reading, place, middle) if each.key == read.key), None)
            if same is not None:
                return place, factor_words(c, y.shape[-1]), same.left
    return None
