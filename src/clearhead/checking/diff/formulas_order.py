"""The same numbers in another place: q, k and v exchanged, heads arranged otherwise, positions shifted, a norm before or after, sums of other terms."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.checking.common.trial import apart
from clearhead.checking.diff.formulas_norm import normed
from clearhead.checking.diff.formulas_small import sums
from clearhead.checking.diff.numbers import alike, constant, laid, mark, plain, rearranged
from clearhead.checking.diff.reading import Read, Reader, Reading, Scene, reason
from clearhead.checking.diff.report import Reason
from clearhead.messages import say

PRODUCTS = frozenset(("matmul", "bmm", "einsum", "baddbmm", "scaled_dot_product_attention"))


def exchanged(scene: Scene) -> Reason | None:
    """A product of two tensors that both have, but not of the same two, or not in the same roles."""
    for i, j in scene.found.parted.items():
        one, other = _operands(scene.a, i), _operands(scene.b, j)
        if one and other and None not in (*one, *other) and one != other:
            names = [", ".join(scene.place(at) for at in each if at is not None) for each in (one, other)]
            text = say("diff.exchanged", a=names[0], b=names[1], where=_where(scene, i, j))
            return reason("qkv.layout", scene, (i, j), text, 0.0, certainty="consistent")
    return None


def _operands(reading: Reading, place: int) -> tuple[int | None, ...]:
    """Which sources the two factors of a product are, by places in A."""
    if reading.stage(place).made_by not in PRODUCTS or place in reading.known:
        return ()
    marks = {at: mark(reading.value(at)) for at in reading.sources(place)}
    pair = [mark(plain(x)) for x in reading.stage(place).inputs if x.dim() >= 3][:2]
    return tuple(next((reading.known[at] for at, own in marks.items() if alike(own, m)), None) for m in pair)


def arranged(scene: Scene) -> Reason | None:
    """The same numbers, arranged otherwise: in the stage itself, or in what a product is made of."""
    for i, j in scene.pairs():
        x, y = scene.a.value(i), scene.b.value(j)
        between = [(x, y)]
        if scene.a.stage(i).made_by in PRODUCTS and scene.b.stage(j).made_by in PRODUCTS:
            between += [
                (plain(one), plain(other))
                for one, other in zip(scene.a.stage(i).inputs, scene.b.stage(j).inputs, strict=False)
            ]
        for one, other in between:
            found = _arranged(one, other, scene.a.near)
            if found is not None:
                text = say("diff.arranged", what=found[1], where=_where(scene, i, j))
                return reason(found[0], scene, (i, j), text, 0.0)
    return None


def _arranged(x: Tensor, y: Tensor, near: float) -> tuple[str, str] | None:
    """How the numbers of x lie in y; None if they are not the same numbers, or lie the same way."""
    if x.shape != y.shape or x.dim() < 3 or constant(x) or apart(x, y) <= near or not rearranged(x, y, near):
        return None
    for axis in range(1, x.dim() - 1):
        order = _order(x, y, axis, near)
        if order is not None:
            name = "heads.kv-tiled" if len(_kinds(x, axis, near)) < x.shape[axis] else "heads.order"
            return name, say("diff.arranged_axis", axis=axis, order=", ".join(map(str, order)))
    turned = laid(y, x, near) is not None
    return ("scores.transposed" if turned else "heads.split-without-transpose"), say("diff.arranged_mixed")


def _order(x: Tensor, y: Tensor, axis: int, near: float) -> list[int] | None:
    """For each slice of y along an axis, which slice of x it is."""
    found = []
    for n in range(y.shape[axis]):
        own = y.select(axis, n)
        at = next((m for m in range(x.shape[axis]) if apart(x.select(axis, m), own) <= near), None)
        if at is None:
            return None
        found.append(at)
    return found


def _kinds(x: Tensor, axis: int, near: float) -> list[int]:
    """The slices that are not a copy of an earlier one."""
    slices = [x.select(axis, n) for n in range(x.shape[axis])]
    return [n for n, own in enumerate(slices) if all(apart(own, other) > near for other in slices[:n])]


def shifted(scene: Scene) -> Reason | None:
    """The same rows, some positions on."""
    for i, j in scene.pairs():
        x, y = scene.a.value(i), scene.b.value(j)
        if x.shape != y.shape or constant(x):
            continue
        for axis in range(max(x.dim() - 1, 0)):
            for step in (1, 2, -1, -2):
                count = x.shape[axis] - abs(step)
                if count < 2:
                    continue
                one, other = x.narrow(axis, max(step, 0), count), y.narrow(axis, max(-step, 0), count)
                left = apart(one, other)
                if left <= scene.a.near and not constant(one):
                    text = say("diff.shifted", step=step, where=_where(scene, i, j))
                    return reason("position.offset", scene, (i, j), text, left)
    return None


def moved_norm(scene: Scene) -> Reason | None:
    """A product with the same matrix, of a norm of what both have in one and of that itself in the other."""
    for i in scene.a.looked:
        for j in scene.b.looked:
            if not _same_matrix(scene, i, j):
                continue
            one, other = _fed_by(scene.a, i), _fed_by(scene.b, j)
            if one is None or other is None or one[:2] == other[:2]:
                continue
            words = [_fed_words(scene, each) for each in (one, other)]
            final = i >= len(scene.a.walk.stages) - 2 and j >= len(scene.b.walk.stages) - 2
            name = "input" if not (one[1] or other[1]) else "norm.final-missing" if final else "norm.placement"
            text = say("diff.fed", stage=scene.place(i), a=words[0], b=words[1], where=_where(scene, i, j))
            return reason(name, scene, (i, j), text, max(one[2], other[2]))
    return None


def _same_matrix(scene: Scene, i: int, j: int) -> bool:
    """Whether two places are products with one matrix."""
    pairs = [
        (plain(x), plain(y))
        for x in scene.a.stage(i).inputs
        for y in scene.b.stage(j).inputs
        if x.dim() == y.dim() == 2 and x.numel() == y.numel() and x.is_floating_point()
    ]
    return any(
        (x.shape == y.shape and torch.equal(x, y)) or (x.T.shape == y.shape and torch.equal(x.T, y)) for x, y in pairs
    )


def _fed_by(reading: Reading, place: int) -> tuple[int, str, float] | None:
    """What a product is made of: a stage that both have, by its place in A, and the norm that it went through."""
    parents = [at for at in reading.parents[place] if reading.value(at).dim() >= 2]
    if len(parents) != 1:
        return None
    at = parents[0]
    if at in reading.known:
        return reading.known[at], "", 0.0
    found = normed(reading, at)
    return None if found is None else (found.sources[0], found.words, found.left)


def _fed_words(scene: Scene, found: tuple[int, str, float]) -> str:
    place, words, _ = found
    return say("diff.fed_norm", norm=words, x=scene.place(place)) if words else scene.place(place)


def rewired(scene: Scene, reader: Reader) -> Reason | None:
    """The same formula of something else."""
    one = [(i, read) for i in scene.a.looked for read in reader(scene.a, i)]
    other = [(j, read) for j in scene.b.looked for read in reader(scene.b, j)] if one else []
    for i, read in one:
        for j, second in other:
            if read.key == second.key and read.sources != second.sources and (read.sources and second.sources):
                names = [", ".join(scene.place(at) for at in each.sources) for each in (read, second)]
                text = say("diff.rewired", formula=read.words, a=names[0], b=names[1], where=_where(scene, i, j))
                return reason("input", scene, (i, j), text, second.left)
    return None


def summed(scene: Scene) -> Reason | None:
    """Sums of other terms, or of the same ones by other factors."""
    for i, j in scene.found.parted.items():
        one, other = next(sums(scene.a, i), None), next(sums(scene.b, j), None)
        if one is None or other is None or one.key == other.key:
            continue
        words = [_sum_words(scene, each) for each in (one, other)]
        text = say("diff.summed", a=words[0], b=words[1], where=_where(scene, i, j))
        return reason(sum_id(scene, one, other), scene, (i, j), text, other.left)
    return None


def _terms(read: Read) -> dict[int, float]:
    return {int(str(term[0])): float(str(term[1])) for term in read.key if isinstance(term, tuple)}


def _sum_words(scene: Scene, read: Read) -> str:
    terms = _terms(read)
    return " + ".join((f"{c:g} · " if c != 1 else "") + scene.place(at) for at, c in terms.items())


def sum_id(scene: Scene, a: Read, b: Read) -> str:
    """What a sum lacks or has too much of."""
    one, other = _terms(a), _terms(b)
    for few, many in ((one, other), (other, one)):
        if list(few.values()) == [2.0] and len(many) == 2 and set(few) <= set(many):
            return "residual.doubled"
        if set(few) < set(many):
            return "residual.missing"
    if set(one) == set(other):
        return "residual.scale" if len(one) > 1 else "scale.factor"
    gone = [at for at in (*one, *other) if (at in one) != (at in other)]
    if any(_norm_of(scene, x, y) for x in gone for y in gone if x != y):
        return "residual.from-norm"
    return "residual.stale"


def _norm_of(scene: Scene, place: int, of: int) -> bool:
    """Whether one place of A is made of another, and of no sum."""
    return of in scene.a.parents[place] or any(of in scene.a.parents[at] for at in scene.a.parents[place])


def _where(scene: Scene, i: int, j: int) -> str:
    return scene.b.stage(j).where or scene.a.stage(i).where or "-"
