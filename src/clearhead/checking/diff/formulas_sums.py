"""Stages as sums of what came before them: what is added to the stream, by which factor, and what is missing."""

from __future__ import annotations

from itertools import islice

from clearhead.checking.diff.formulas_small import sums
from clearhead.checking.diff.numbers import gap, views
from clearhead.checking.diff.reading import Placed, Read, Reading, Scene, reason
from clearhead.checking.diff.sources import embeds, fed
from clearhead.messages import say

FIRST = 6
"""Pairs from the parting on that are taken for sums."""

ADDED = frozenset(("add", "__add__", "__radd__", "__iadd__", "add_"))

SUMS = ADDED | frozenset(("sub", "mul", "__mul__", "mul_", "dropout"))
"""Operations by which sums are made, and their terms grown."""


def summed(scene: Scene) -> Placed | None:
    """Sums of other terms, or of the same ones by other factors."""
    for i, j in islice(scene.found.parted.items(), FIRST):
        one, other = next(sums(scene.a, i), None), next(sums(scene.b, j), None)
        if one is None or other is None or one.key == other.key:
            continue
        terms = terms_of(one), terms_of(other)
        words = [sum_words(scene, each) for each in terms]
        if words[0] == words[1]:
            continue
        text = say("diff.summed", a=words[0], b=words[1], where=where_of(scene, i, j))
        return reason(sum_id(scene, *terms), scene, (i, j), text, other.left)
    return None


def biased(scene: Scene) -> Placed | None:
    """The same numbers with a vector of weights added on one side."""
    for i, j in islice(scene.found.parted.items(), FIRST):
        x, y = scene.a.value(i), scene.b.value(j)
        if y.dim() < 2 or x.numel() != y.numel():
            continue
        vectors = [*scene.b.given(j, 1, y.shape[-1]), *scene.a.given(i, 1, y.shape[-1])]
        for each in views(x, y) if vectors and x.shape != y.shape else [x]:
            more = y - each.reshape(y.shape)
            row = more.reshape(-1, y.shape[-1])[0]
            for bias in (sign * vector for vector in vectors for sign in (1, -1)):
                left = gap(more, bias.expand_as(more)) if gap(row, bias) <= scene.a.near else 1.0
                if left <= scene.a.near:
                    many, few = ("B", "A") if any(gap(row, v) <= scene.a.near for v in vectors) else ("A", "B")
                    text = say("diff.biased", stage=scene.place(i), many=many, few=few, where=where_of(scene, i, j))
                    return reason("projection.bias", scene, (i, j), text, left)
    return None


def terms_of(read: Read) -> dict[int, float]:
    """Places in A with their factors, of a sum."""
    return {int(str(term[0])): float(str(term[1])) for term in read.key if isinstance(term, tuple)}


def sum_words(scene: Scene, terms: dict[int, float]) -> str:
    """A sum by the names of its terms."""
    return " + ".join((f"{c:g} · " if c != 1 else "") + scene.place(at) for at, c in terms.items())


def sum_id(scene: Scene, one: dict[int, float], other: dict[int, float]) -> str:
    """What a sum lacks or has too much of."""
    for few, many in ((one, other), (other, one)):
        if list(few.values()) == [2.0] and len(many) == 2 and set(few) <= set(many):
            return "residual.doubled"
        if set(few) < set(many):
            return _lacking(scene, few, set(many) - set(few))
    if set(one) == set(other):
        tables = [at for at in one if one[at] != other[at] and not fed(scene.a.stage(at))]
        return "position.twice" if tables else _factor_id(scene, one, other)
    spread = _spread(scene, one, other), _spread(scene, other, one)
    if set(spread[0]) == set(spread[1]):
        return sum_id(scene, *spread)
    gone = [at for at in (*one, *other) if (at in one) != (at in other)]
    direct = {(x, y) for x in gone for y in scene.a.parents[x] if scene.a.stage(x).made_by in SUMS}
    if any(_comes_from(scene, x, y) and (x, y) not in direct for x in gone for y in gone if x != y):
        return "residual.from-norm"
    return "residual.stale"


def _spread(scene: Scene, one: dict[int, float], other: dict[int, float]) -> dict[int, float]:
    """A sum with those of its terms that the other does not have, and that are sums themselves, written out."""
    found: dict[int, float] = {}
    for at, c in one.items():
        parents = scene.a.parents[at]
        whole = at not in other and scene.a.stage(at).made_by in ADDED and len(parents) == 2
        for part in parents if whole else (at,):
            found[part] = found.get(part, 0.0) + c
    return found


def _lacking(scene: Scene, few: dict[int, float], more: set[int]) -> str:
    """What it is called that terms are missing: tables of positions, or a part of the stream."""
    if any(fed(scene.a.stage(at)) for at in more):
        return "residual.missing"
    return "position.unused" if all(embeds(scene.a.stage(at)) for at in few) else "position.twice"


def _factor_id(scene: Scene, one: dict[int, float], other: dict[int, float]) -> str:
    changed = [scene.a.stage(at) for at in one if one[at] != other[at]]
    if changed and all(embeds(each) for each in changed):
        return "embedding.scale"
    return "residual.scale" if len(one) > 1 else "scale.factor"


def _comes_from(scene: Scene, place: int, of: int) -> bool:
    """Whether a place of A was made, at some point, of another."""
    seen, todo = {place}, [place]
    while todo:
        for at in scene.a.parents[todo.pop()]:
            if at == of:
                return True
            if at not in seen:
                seen.add(at)
                todo.append(at)
    return False


def terms_at(reading: Reading, place: int) -> dict[int, float] | None:
    """The sum that a place is, by places in A; None if it is none."""
    if place not in reading.known and reading.stage(place).made_by not in SUMS:
        return None
    read = next(sums(reading, place), None)
    return None if read is None else terms_of(read)


def where_of(scene: Scene, i: int, j: int) -> str:
    """The line of a pair of places, B's if it is code."""
    return scene.b.stage(j).where or scene.a.stage(i).where or "-"
