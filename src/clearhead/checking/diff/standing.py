"""Which stages stand for each other where two walks part."""

from __future__ import annotations

from torch import Tensor

from clearhead.checking.diff.numbers import constant, gap, plain
from clearhead.checking.diff.partners import Matching, limits
from clearhead.checking.diff.side import Stage, Walk
from clearhead.checking.diff.sources import fed, known_behind, parents_of

EARLY = 16
"""How far from where the two part the stages are looked for that stand for each other."""

SIZED = 1
"""How many stages later two that are made alike may be, and still stand for each other better than two that are only as large."""

OTHERWISE = 3
"""The same for two that are not made of the same."""

FAINT, NEARLY = 0.02, -8
"""Two that differ by less than the first stand for each other, though they may be so many stages further on."""


def cone(walk: Walk, known: set[int]) -> list[int]:
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


def by_place(a: Walk, b: Walk, found: Matching) -> None:
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
    own, other = found.known
    fronts = _frontier(a, set(own), found.cones[0]), _frontier(b, set(other), found.cones[1])
    chosen = _best(a, b, found, fronts)
    places = {b.stages[j].name: j for j in fronts[1]}
    for i in fronts[0] if chosen is not None else ():
        j = places.get(a.stages[i].name, -1)
        alike = j >= 0 and _made_alike(a.stages[i], b.stages[j])
        if chosen is not None and i < chosen[0] and alike and differs(a, b, i, j):
            # Made of what is the same, called the same, made alike, and it differs earlier.
            return i, j
    return chosen


def _best(a: Walk, b: Walk, found: Matching, fronts: tuple[list[int], list[int]]) -> tuple[int, int] | None:
    """Of a first table that differs, or what stands for each other best."""
    known = found.known
    tables = [
        (i, j)
        for i in fronts[0]
        for j in fronts[1]
        if not fed(a.stages[i]) and not fed(b.stages[j]) and _made_alike(a.stages[i], b.stages[j])
    ]
    # Two masks of nothing but one number have no partner, and are the same all the same: none of these is compared further.
    same = {i for i, j in tables if not differs(a, b, i, j)}, {j for i, j in tables if not differs(a, b, i, j)}
    tables = [(i, j) for i, j in tables if i not in same[0] and j not in same[1]]
    if tables:
        # A table of angles or of positions is made before anything that uses it.
        return tables[0]
    cones = [i for i in found.cones[0] if fed(a.stages[i])], [j for j in found.cones[1] if fed(b.stages[j])]
    parents = parents_of(a), parents_of(b)
    made_of = (
        {i: known_behind(parents[0], i, known[0]) for i in cones[0][:EARLY]},
        {j: known_behind(parents[1], j, known[1]) for j in cones[1][:EARLY]},
    )
    values = ({i: _telling(a.stages[i]) for i in made_of[0]}, {j: _telling(b.stages[j]) for j in made_of[1]})
    scored = [
        (x + y + cost, i, j)
        for x, i in enumerate(made_of[0])
        for y, j in enumerate(made_of[1])
        if (cost := _unlike((a.stages[i], b.stages[j]), values[0][i], values[1][j], (made_of[0][i], made_of[1][j])))
        is not None
    ]
    return _earlier((a, b), cones, made_of, min(scored)[1:]) if scored else None


def _earlier(
    walks: tuple[Walk, Walk],
    cones: tuple[list[int], list[int]],
    made_of: tuple[dict[int, set[int]], dict[int, set[int]]],
    chosen: tuple[int, int],
) -> tuple[int, int]:
    """An earlier pair made of the same, behind which both do the same, step by step: what comes there differs by less only because it is a sum."""
    for i in (i for i in cones[0] if i < chosen[0] and i in made_of[0]):
        for j in (j for j in cones[1] if j < chosen[1] and made_of[1].get(j) == made_of[0][i]):
            x, y = walks[0].stages[i], walks[1].stages[j]
            steps = [
                [walk.stages[n].made_by for n in cone if first < n <= last]
                for walk, cone, first, last in zip(walks, cones, (i, j), chosen, strict=True)
            ]
            if x.value.shape == y.value.shape and x.made_by and steps[0] == steps[1]:
                return i, j
    return chosen


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


def differs(a: Walk, b: Walk, i: int, j: int) -> bool:
    """Whether two stages of one shape hold numbers that are further apart than rounding explains."""
    return gap(plain(a.stages[i].value), plain(b.stages[j].value)) > limits(a, b, max(i, j))[1]


def _made_alike(a: Stage, b: Stage) -> bool:
    return a.made_by == b.made_by != "" and a.value.shape == b.value.shape
