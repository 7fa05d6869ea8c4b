"""Which stages of two walks hold the same numbers, to what rounding explains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import torch

from clearhead.checking.diff.numbers import Mark, alike, constant, gap, laid, mark, plain
from clearhead.checking.diff.side import Walk
from clearhead.checking.diff.sources import parents_of
from clearhead.checking.diff.stages import CodeStage
from clearhead.checking.rounding import GROWTH, UNIT

DEPTH = 256
"""So many stages, one after the other, may add up as much rounding as `GROWTH` allows for.

Measured: models of 12, 24 and 48 layers, written in two ways that are equal in exact arithmetic (float64, up to 2553 stages), are nowhere
further apart than 1.8e-15, a sixteenth of what `GROWTH` alone allows, and no further at depth 48 than at 12. What is left is for weights
that make more of rounding than random ones.
"""


STEP = 16
"""How many roundings one operation adds up."""

Parents = list[tuple[int, ...]]


@dataclass
class Matching:
    """Partners of two walks.

    Args:
        partner: places in A -> places in B that hold the same numbers.
        gap: how far these are apart.
        twins: places in A, and in B, whose numbers a place with a partner has, too -> that place.
        parted: pairs of places that stand for each other and differ, the first parting first.
        cones: of A and of B, what leads to a result that differs and has no partner, in order.
    """

    partner: dict[int, int] = field(default_factory=dict)
    gap: dict[int, float] = field(default_factory=dict)
    parted: dict[int, int] = field(default_factory=dict)
    twins: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    cones: tuple[list[int], list[int]] = ((), ())  # type: ignore[assignment]

    @property
    def known(self) -> tuple[dict[int, int], dict[int, int]]:
        """Places in A, and in B, whose numbers both have -> the place in A that stands for them."""
        back = {j: i for i, j in self.partner.items()}
        own = {i: i for i in self.partner} | self.twins[0]
        return own, back | {j: back[first] for j, first in self.twins[1].items()}


def allowed(kind: torch.dtype, depth: int = 0) -> float:
    """What rounding explains in a type after so many stages, beside the largest number."""
    return GROWTH[kind] * UNIT[kind] * (1 + depth / DEPTH)


def limits(a: Walk, b: Walk, depth: int) -> tuple[float, float]:
    """What rounding explains of the type in which both ran, and of the narrowest that was used inside."""
    kinds = [walk.stages[-1].value.dtype for walk in (a, b) if walk.stages and walk.stages[-1].value.dtype in UNIT]
    own = max([torch.float64, *kinds], key=lambda kind: UNIT[kind])
    inside = max([own, a.narrowest, b.narrowest], key=lambda kind: UNIT.get(kind, 0.0))
    return allowed(own, depth), max(allowed(own, depth), GROWTH[inside] * UNIT[inside])


def by_numbers(a: Walk, b: Walk, found: Matching) -> None:
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
    own, inside = limits(a, b, at[0])
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


def twins(walk: Walk, partners: Collection[int], near: float) -> dict[int, int]:
    """The places without a partner that hold the numbers of one with a partner of which they were made: a sum with nothing, a second name."""
    parents = parents_of(walk)
    values = {place: plain(stage.value) for place, stage in enumerate(walk.stages)}
    by_size: dict[int, list[int]] = defaultdict(list)
    for place in sorted(partners):
        by_size[values[place].numel()].append(place)
    marks = {place: mark(values[place]) for place in values if by_size.get(values[place].numel())}
    found = {}
    for place, own in marks.items():
        if place in partners or constant(values[place]):
            continue
        behind = set(parents[place]) | {at for each in parents[place] for at in parents[each]}
        for other in (at for at in by_size[values[place].numel()] if at in behind):
            if alike(own, marks[other]) and laid(values[other], values[place], near) is not None:
                found[place] = other
                break
    return found
