"""Which stage of A stands for which of B, and where the two part.

Two stages are partners if they hold the same numbers to rounding, as they lie or up to a view. What has no partner matters only if the
results differ: then the walk goes back from the result through everything without a partner, and where this begins, though all that
it was made of is the same in both, is the parting. What one side merely computes otherwise ends in partners again, and is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from clearhead.checking.diff.numbers import Mark, alike, constant, gap, laid, mark, plain
from clearhead.checking.diff.report import Held, Pair
from clearhead.checking.diff.side import Stage, Walk
from clearhead.checking.diff.sources import fed, known_behind, parents_of
from clearhead.checking.diff.stages import CodeStage
from clearhead.checking.rounding import GROWTH, UNIT

DEPTH = 16
"""So many stages, one after the other, may add up as much rounding as `GROWTH` allows for."""


STEP = 16
"""How many roundings one operation adds up."""

Parents = list[tuple[int, ...]]

EARLY = 16
"""How far from where the two part the stages are looked for that stand for each other."""

SIZED = 1
"""How many stages later two that are made alike may be, and still stand for each other better than two that are only as large."""

OTHERWISE = 3
"""The same for two that are not made of the same."""

FAINT, NEARLY = 0.02, -8
"""Two that differ by less than the first stand for each other, though they may be so many stages further on."""


@dataclass
class Matching:
    """Partners of two walks.

    Args:
        partner: places in A -> places in B that hold the same numbers.
        gap: how far these are apart.
        parted: pairs of places that stand for each other and differ, the first parting first.
        cones: of A and of B, what leads to a result that differs and has no partner, in order.
    """

    partner: dict[int, int] = field(default_factory=dict)
    gap: dict[int, float] = field(default_factory=dict)
    parted: dict[int, int] = field(default_factory=dict)
    cones: tuple[list[int], list[int]] = ((), ())  # type: ignore[assignment]


def allowed(kind: torch.dtype, depth: int = 0) -> float:
    """What rounding explains in a type after so many stages, beside the largest number."""
    return GROWTH[kind] * UNIT[kind] * (1 + depth / DEPTH)


def matched(a: Walk, b: Walk) -> Matching:
    """Partners by numbers, then what stands for each other where the two part."""
    found = Matching()
    _by_numbers(a, b, found)
    last = (len(a.stages) - 1, len(b.stages) - 1)
    if min(last) < 0 or found.partner.get(last[0]) == last[1] or _same(a, b, *last, islands=_islands(a, b, found)):
        return found
    # A result may be what the other has on the way to its own: it is known then, and still is no partner of the other's result.
    found.cones = (_cone(a, set(found.partner)), _cone(b, set(found.partner.values())))
    _by_place(a, b, found)
    return found


def aligned(a: Walk, b: Walk) -> tuple[Pair, ...]:
    """All stages of A with their partners, then those that B alone has; in A's order."""
    found = matched(a, b)
    pairs = [_pair(a, b, found, i) for i in range(len(a.stages))]
    taken = set(found.partner.values()) | set(found.parted.values())
    named = {pair.b for pair in pairs}
    alone = [
        Pair("", stage.name, tuple(stage.value.shape), 0.0, 0.0, "unpaired", stage.where)
        for j, stage in enumerate(b.stages)
        if j not in taken and stage.name not in named
    ]
    return (*alone, *pairs) if not pairs else (*pairs[:-1], *alone, pairs[-1])


def parting(pairs: tuple[Pair, ...]) -> Pair | None:
    """The first pair that differs; None if the two are equal."""
    return next((pair for pair in pairs if pair.held == "differs"), None)


def _pair(a: Walk, b: Walk, found: Matching, i: int) -> Pair:
    stage, limit = a.stages[i], _limits(a, b, i)
    j = found.parted.get(i, found.partner.get(i))
    if j is None:
        if i == len(a.stages) - 1 and b.stages and _same(a, b, i, len(b.stages) - 1, islands=_islands(a, b, found)):
            j = len(b.stages) - 1
            far = _apart(stage.value, b.stages[j].value, limit[1])
            return _judged(stage, b.stages[j], far, limit)
        return Pair(stage.name, "", tuple(stage.value.shape), 0.0, limit[0], "unpaired", stage.where)
    far = found.gap[i] if i not in found.parted else _apart(stage.value, b.stages[j].value, limit[1])
    return _judged(stage, b.stages[j], far, limit, differs=i in found.parted)


def _judged(a: Stage, b: Stage, far: float, limit: tuple[float, float], *, differs: bool = False) -> Pair:
    held: Held = "differs" if differs else "equal" if far <= limit[0] else "island"
    shown = limit[0] if held == "equal" else limit[1]
    return Pair(a.name, b.name, tuple(a.value.shape), far, shown, held, b.where or a.where)


def _limits(a: Walk, b: Walk, depth: int) -> tuple[float, float]:
    """What rounding explains of the type in which both ran, and of the narrowest that was used inside."""
    kinds = [walk.stages[-1].value.dtype for walk in (a, b) if walk.stages and walk.stages[-1].value.dtype in UNIT]
    own = max([torch.float64, *kinds], key=lambda kind: UNIT[kind])
    inside = max([own, a.narrowest, b.narrowest], key=lambda kind: UNIT.get(kind, 0.0))
    return allowed(own, depth), max(allowed(own, depth), GROWTH[inside] * UNIT[inside])


def _apart(x: Tensor, y: Tensor, near: float) -> float:
    """How far two stages are apart, up to a view where one makes them equal."""
    x, y = plain(x), plain(y)
    seen = laid(y, x, near)
    if seen is None:
        seen = y.reshape(x.shape) if x.numel() == y.numel() else y
    return gap(x, seen)


def _same(a: Walk, b: Walk, i: int, j: int, *, islands: bool) -> bool:
    """Whether two results are equal as they lie, or in the shape in which one of them lost an axis."""
    x, y = plain(a.stages[i].value), plain(b.stages[j].value)
    if x.numel() != y.numel() or [n for n in x.shape if n > 1] != [n for n in y.shape if n > 1]:
        return False
    own, inside = _limits(a, b, max(i, j))
    return gap(x.flatten(), y.flatten()) <= (inside if islands else own)


def _islands(a: Walk, b: Walk, found: Matching) -> bool:
    """Whether a narrower type brought its rounding into some stage, or that cannot be known."""
    known = all(isinstance(stage, CodeStage) for walk in (a, b) for stage in walk.stages)
    return not known or any(far > _limits(a, b, place)[0] for place, far in found.gap.items())


def _by_numbers(a: Walk, b: Walk, found: Matching) -> None:
    """Give each stage of A the stage of B that holds its numbers, one of the same name or the next in order first."""
    values = ([plain(s.value) for s in a.stages], [plain(s.value) for s in b.stages])
    marks = ([mark(x) for x in values[0]], [mark(x) for x in values[1]])
    names = {stage.name: j for j, stage in enumerate(b.stages)}
    parents = parents_of(a), parents_of(b)
    free, expected = set(range(len(b.stages))), 0
    free -= {j for j in free if constant(values[1][j])}
    for i, stage in enumerate(a.stages):
        if constant(values[0][i]):
            continue
        wanted = names.get(stage.name, -1)
        place = (i, expected, wanted)
        for j in _candidates(marks[0][i], marks[1], free, place):
            near = _near(a, b, (i, j), found, parents)
            seen = laid(values[1][j], values[0][i], near)
            if seen is not None:
                found.partner[i], found.gap[i] = j, gap(seen, values[0][i])
                free.discard(j)
                expected = j + 1
                break


def _near(a: Walk, b: Walk, at: tuple[int, int], found: Matching, parents: tuple[Parents, Parents]) -> float:
    """What rounding explains at two places: that of a narrower type only where it was used, or where it came in before.

    One operation of such a type, on numbers that are equal, rounds a few times; what it brought in may grow from there.
    """
    own, inside = _limits(a, b, at[0])
    stages = a.stages[at[0]], b.stages[at[1]]
    if inside == own or not all(isinstance(stage, CodeStage) for stage in stages):
        return inside
    before = parents[0][at[0]]
    if not all(found.gap.get(place, own + 1) <= own for place in before):
        return inside
    narrow = max(UNIT.get(x.dtype, 0.0) for stage in stages for x in (stage.value, *stage.inputs))
    return max(own, STEP * narrow)


def _candidates(own: Mark, others: list[Mark], free: set[int], place: tuple[int, int, int]) -> Iterator[int]:
    """The free stages of B whose sums are those of a stage of A, the likeliest first."""
    _, expected, named = place
    fitting = [j for j in free if alike(own, others[j])]
    yield from sorted(fitting, key=lambda j: (j != named, abs(j - expected)))


def _cone(walk: Walk, known: set[int]) -> list[int]:
    """What leads to the result without passing through a stage that has a partner, in order."""
    parents = parents_of(walk)
    last = len(walk.stages) - 1
    seen, todo = {last}, [] if last in known else list(parents[last])
    while todo:
        place = todo.pop()
        if place in seen or place in known:
            continue
        seen.add(place)
        todo += parents[place]
    return sorted(seen)


def _by_place(a: Walk, b: Walk, found: Matching) -> None:
    """Which stages stand for each other from the parting on."""
    first = _first(a, b, found)
    last = (len(a.stages) - 1, len(b.stages) - 1)
    if first is None or first[0] == last[0]:
        found.parted[last[0]] = last[1]
        return
    found.parted[first[0]] = first[1]
    next_b = first[1] + 1
    names = {b.stages[j].name: j for j in found.cones[1]}
    for i in (i for i in found.cones[0] if first[0] < i < last[0]):
        own = a.stages[i]
        named = names.get(own.name)
        if named is not None and named >= next_b and b.stages[named].value.numel() == own.value.numel():
            found.parted[i], next_b = named, named + 1
            continue
        for j in (j for j in found.cones[1] if next_b <= j < last[1]):
            other = b.stages[j]
            if other.made_by == own.made_by and other.value.shape == own.value.shape:
                found.parted[i], next_b = j, j + 1
                break
    found.parted[last[0]] = last[1]


def _first(a: Walk, b: Walk, found: Matching) -> tuple[int, int] | None:
    """The parting: of the first stages on both sides without a partner, the two that stand for each other best."""
    of_ours = {b.stages[j].name: j for j in found.cones[1] if not b.stages[j].made_by}
    for i in found.cones[0]:
        j = of_ours.get(a.stages[i].name, -1)
        if j >= 0 and not a.stages[i].made_by and a.stages[i].value.shape == b.stages[j].value.shape:
            # In two models of ours a name means one thing.
            return i, j
    known = set(found.partner), set(found.partner.values())
    fronts = _frontier(a, known[0], found.cones[0]), _frontier(b, known[1], found.cones[1])
    tables = [
        (i, j)
        for i in fronts[0]
        for j in fronts[1]
        if not fed(a.stages[i]) and not fed(b.stages[j]) and _made_alike(a.stages[i], b.stages[j])
    ]
    if tables:
        # A table of angles or of positions is made before anything that uses it.
        return tables[0]
    cones = [i for i in found.cones[0] if fed(a.stages[i])], [j for j in found.cones[1] if fed(b.stages[j])]
    back = {j: i for i, j in found.partner.items()}
    parents = parents_of(a), parents_of(b)
    made_of = (
        {i: known_behind(parents[0], i, {at: at for at in found.partner}) for i in cones[0][:EARLY]},
        {j: known_behind(parents[1], j, back) for j in cones[1][:EARLY]},
    )
    values = ({i: _telling(a.stages[i]) for i in made_of[0]}, {j: _telling(b.stages[j]) for j in made_of[1]})
    scored = [
        (x + y + cost, i, j)
        for x, i in enumerate(made_of[0])
        for y, j in enumerate(made_of[1])
        if (cost := _unlike((a.stages[i], b.stages[j]), values[0][i], values[1][j], (made_of[0][i], made_of[1][j])))
        is not None
    ]
    return min(scored)[1:] if scored else None


def _frontier(walk: Walk, known: set[int], cone: list[int]) -> list[int]:
    """What has no partner though all that it was made of has one."""
    parents = parents_of(walk)
    return [place for place in cone if all(parent in known for parent in parents[place])]


def _telling(stage: Stage) -> Tensor | None:
    """The numbers of a stage, None if they tell nothing."""
    x = plain(stage.value)
    return None if constant(x) else x


def _unlike(both: tuple[Stage, Stage], x: Tensor | None, y: Tensor | None, of: tuple[set[int], set[int]]) -> int | None:
    """How badly two stages stand for each other, None if they cannot."""
    a, b = both
    if x is None or y is None or x.numel() != y.numel() or not (of[0] & of[1] or a.name == b.name):
        return None
    cost = 0 if of[0] == of[1] else OTHERWISE
    cost += NEARLY if gap(x, y.reshape(x.shape)) < FAINT else 0
    fits = (a.name == b.name and x.shape == y.shape) or _made_alike(a, b)
    return cost - SIZED if fits else cost + SIZED


def _made_alike(a: Stage, b: Stage) -> bool:
    return a.made_by == b.made_by != "" and a.value.shape == b.value.shape
