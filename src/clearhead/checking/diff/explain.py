"""Why two walks part, where one of the two is ours: it is changed, one change at a time, until it does what the other does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from clearhead.checking.diff.candidates import Candidate, alone, place_of
from clearhead.checking.diff.ours import MOVED, ModelSide, moved
from clearhead.checking.diff.report import Reason
from clearhead.checking.diff.searching import More, Search, Tried, nothing_more
from clearhead.checking.diff.side import Given, Stage, Walk
from clearhead.messages import UserError

MOST_REASONS = 8
"""After so many changes the two have little in common."""

SMALL = 20_000_000
"""A model with fewer weights than this is changed in two ways at once, too."""

MOST_MOVING = 24
"""With more changes that move the stage at which the two part, two at once are too many to try."""


def explained(
    side: ModelSide,
    other: Walk,
    given: Given,
    *,
    mirrored: bool = False,
    known: bool = False,
    more: More = nothing_more,
) -> tuple[tuple[Reason, ...], Tried]:
    """The changes that make the side do what the other does, as far as there are any.

    At the first stage at which the two part every change is tried with the side's own weights; of those that make the two agree there,
    the one with which they agree longest is kept, and the search goes on from the next parting.

    Args:
        side: ours.
        other: the forward of the other side.
        given: what both were given.
        mirrored: whether the side is B.
        known: whether these are tried alone, and all others only if none of them helps.
        more: changes that are known beforehand.

    Returns:
        The reasons in the order in which they were met, and the side after all of them, beside the other.
    """
    search, reasons = Search(other, given, mirrored, more, known), list[Reason]()
    now = search.tried(side)
    while now.first is not None and len(reasons) < MOST_REASONS:
        better = _better(search, now)
        if better is None and known:
            better = _better(replace(search, known=False), now)
        if better is None:
            break
        reasons += search.reasons(now, better)
        now = better
    return tuple(reasons), now


def _better(search: Search, now: Tried) -> Tried | None:
    """The change with which the two agree longer, None if there is none."""
    assert now.first is not None
    seen, place = Sieve(search, now), place_of(search.own(now.first))
    # Weights are seen to be others, whatever stage they first move: a gain of 1 hides the norm before it.
    weights = ((each,) for each in search.more(now.side) if each.id.startswith("weights."))
    best = _furthest(search, now, now.reach, chain(weights, seen.sifted(search.candidates(now.side))))
    moving = list(seen.moving)
    if place is not None and (best is None or best.first is not None):
        some = seen.hitting or search.candidates(now.side)
        one_block = (alone(now.side, each, place) for each in list(some))
        best = _furthest(search, now, best.reach if best else now.reach, seen.sifted(one_block)) or best
    if best is None:
        # What moves the stage may be right though the other shows no such stage.
        best = _furthest(search, now, now.reach, ((each,) for each in seen.moving))
    if best is not None:
        return best
    if len(moving) > MOST_MOVING or sum(each.numel() for each in now.side.tensors.values()) > SMALL:
        return None
    ids = {each.id for each in moving}
    both = (
        (one, other)
        for one in moving
        for other in search.candidates(one.make())
        if other.id in ids and other.id != one.id and seen.hits(other)
    )
    return _furthest(search, now, now.reach, both)


class Sieve:
    """Tells quickly which changes can be the reason: those that leave what is before the parting, and mend that.

    Args:
        search: the other side.
        now: the side before the change.

    Attributes:
        hitting: those that can be the reason, of the ones that have been sifted.
        moving: those that moved the stage at which the two part, and nothing before it, and did not mend it.
    """

    def __init__(self, search: Search, now: Tried) -> None:
        first = now.first
        assert first is not None
        values = {stage.name: stage.value for stage in now.walk.stages}
        self.search, self.first, self.stage = search, first, search.own(first)
        self.was = values.get(self.stage)
        names = {search.own(pair) for pair in now.before}
        self.expected = {name: value for name, value in values.items() if name in names}
        self.moving: list[Candidate] = []
        self.hitting: list[Candidate] = []

    def sifted(self, candidates: Iterable[Candidate]) -> Iterator[tuple[Candidate]]:
        """Those that can be the reason, each as soon as it is known to be one."""
        for each in candidates:
            if self.hits(each):
                self.hitting.append(each)
                yield (each,)

    def hits(self, candidate: Candidate) -> bool:
        """Whether the stage at which the two part holds numbers of the other side after the change."""
        last: Stage | None = None
        # A change may ask for a part that the weights do not fit.
        with suppress(UserError, RuntimeError):
            last = candidate.make().run(self.search.given, until=self.stage, expected=self.expected).stages[-1]
        if last is None:
            return False
        if last.name in self.expected and moved(last.value, self.expected[last.name]):
            # What is added to the scores shows in ours, and in the other's only behind them.
            return candidate.id == "position.kind" and last.name.endswith(".scores")
        if last.name == self.stage and self.was is not None and not moved(last.value, self.was):
            return False
        if last.name != self.stage or self.search.holds(last.value, max(self.first.allowed, MOVED)):
            return True
        self.moving.append(candidate)
        return False


def _furthest(search: Search, now: Tried, reach: float, changes: Iterable[tuple[Candidate, ...]]) -> Tried | None:
    """Of the changes, the one with which the two agree longest, the earlier of two; None if with none they agree longer than so far."""
    best = None
    for each in changes:
        found = search.changed(each)
        if found is not None and found.reach > reach and search.closes(now, found) and not search.passes(found):
            best, reach = found, found.reach
        if reach == math.inf:
            break
    return best
