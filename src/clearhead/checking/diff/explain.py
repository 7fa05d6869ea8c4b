"""Why two walks part, where one of the two is ours: it is changed, one change at a time, until it does what the other does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from torch import Tensor

from clearhead.checking.diff.align import aligned, parting
from clearhead.checking.diff.candidates import Candidate, alone, candidates_of, place_of
from clearhead.checking.diff.numbers import Mark, alike, laid, mark, plain, unsized
from clearhead.checking.diff.ours import MOVED, ModelSide, moved
from clearhead.checking.diff.report import Pair, Reason
from clearhead.checking.diff.side import Given, Walk
from clearhead.checking.diff.sources import parents_of
from clearhead.checking.diff.stages import CodeStage
from clearhead.checking.strangers import Attempt
from clearhead.messages import say

MOST_REASONS = 8
"""After so many changes the two have little in common."""

SMALL = 20_000_000
"""A model with fewer weights than this is changed in two ways at once, too."""

MOST_MOVING = 24
"""With more changes that move the stage at which the two part, two at once are too many to try."""

More = Callable[[ModelSide], Iterable[Candidate]]
"""From a side to changes of it that are known beforehand, tried before all others."""


def _nothing_more(side: ModelSide) -> Iterable[Candidate]:
    return ()


@dataclass(frozen=True)
class Tried:
    """A changed side beside the other.

    Args:
        candidates: the changes that were made.
        side: after them.
        walk: its forward.
        pairs: its stages beside those of the other.
    """

    candidates: tuple[Candidate, ...]
    side: ModelSide
    walk: Walk
    pairs: tuple[Pair, ...]

    @property
    def first(self) -> Pair | None:
        """Where it parts from the other."""
        return parting(self.pairs)

    @property
    def before(self) -> tuple[Pair, ...]:
        """The pairs that hold the same before that."""
        first = self.first
        some = self.pairs if first is None else self.pairs[: self.pairs.index(first)]
        return tuple(pair for pair in some if pair.held in ("equal", "island"))

    @property
    def reach(self) -> float:
        """How many these are, each counted once on either side: a mixture that is v itself says nothing; infinitely many if the two do not part."""
        return math.inf if self.first is None else min(len({p.a for p in self.before}), len({p.b for p in self.before}))


@dataclass(frozen=True)
class Search:
    """What is searched in.

    Args:
        other: the forward of the other side.
        given: what both were given.
        mirrored: whether the side that is changed is B.
        more: changes that are known beforehand.
        known: whether the reasons can only be among these.
    """

    other: Walk
    given: Given
    mirrored: bool = False
    more: More = field(default=_nothing_more)
    known: bool = False

    @cached_property
    def others(self) -> list[tuple[Mark, Tensor]]:
        """The stages of the other side, with their sums."""
        values = [plain(stage.value) for stage in self.other.stages]
        return [(mark(value), value) for value in values]

    def tried(self, side: ModelSide, *candidates: Candidate) -> Tried:
        """The side beside the other, all of it."""
        walk = side.run(self.given)
        pairs = aligned(self.other, walk) if self.mirrored else aligned(walk, self.other)
        return Tried(candidates, side, walk, pairs)

    def own(self, pair: Pair) -> str:
        """What the side that is changed calls a stage."""
        return pair.b if self.mirrored else pair.a

    def candidates(self, side: ModelSide) -> Iterable[Candidate]:
        """All changes of a side."""
        length = self.given.inputs[-1].shape[1]
        return chain(self.more(side), () if self.known else candidates_of(side, length))

    def holds(self, value: Tensor, near: float) -> bool:
        """Whether the other side has a stage with these numbers."""
        value = plain(value)
        own = mark(value)
        return any(alike(own, each) and laid(other, value, near) is not None for each, other in self.others)

    def passes(self, found: Tried) -> bool:
        """Whether a change only lets the side hold what the other has on its way: the other goes on from there before the two part.

        Without its turn a query is what it is in the other before it is turned.
        """
        first = found.first
        if first is None or not all(isinstance(stage, CodeStage) for stage in self.other.stages):
            return False
        met = {pair.a if self.mirrored else pair.b for pair in found.before}
        turned = {
            pair.a if self.mirrored else pair.b for pair in found.before if self.own(pair).rpartition(".")[2] in "qk"
        }
        parents = parents_of(self.other)
        for place, stage in enumerate(self.other.stages):
            if stage.name in met:
                continue
            for x in (self.other.stages[at] for at in parents[place]):
                whole = x.name in turned and x.value.numel() == stage.value.numel()
                if whole and not alike(unsized(plain(x.value)), unsized(plain(stage.value))):
                    return True
        return False

    def reasons(self, now: Tried, after: Tried) -> Iterator[Reason]:
        """The changes between the two, as reasons."""
        first = now.first
        assert first is not None
        there = (pair for pair in after.before if self.own(pair) == self.own(first))
        left = next(there, max(after.before, key=lambda pair: pair.largest, default=first)).largest
        for each in after.candidates:
            a, b = (each.after, each.before) if self.mirrored else (each.before, each.after)
            text = say("diff_ours.reason", a=a, b=b)
            yield Reason(each.id, "reproduced", first.a or first.b, text, first.largest, left)


def explained(
    side: ModelSide,
    other: Walk,
    given: Given,
    *,
    mirrored: bool = False,
    known: bool = False,
    more: More = _nothing_more,
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
    best = _furthest(search, now.reach, chain(weights, seen.sifted(search.candidates(now.side))))
    moving = list(seen.moving)
    if place is not None and (best is None or best.first is not None):
        some = seen.hitting or search.candidates(now.side)
        one_block = (alone(now.side, each, place) for each in list(some))
        best = _furthest(search, best.reach if best else now.reach, seen.sifted(one_block)) or best
    if best is None:
        # What moves the stage may be right though the other shows no such stage.
        best = _furthest(search, now.reach, ((each,) for each in seen.moving))
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
    return _furthest(search, now.reach, both)


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
        with Attempt():
            walk = candidate.make().run(self.search.given, until=self.stage, expected=self.expected)
            last = walk.stages[-1]
            if last.name in self.expected and moved(last.value, self.expected[last.name]):
                # What is added to the scores shows in ours, and in the other's only behind them.
                return candidate.id == "position.kind" and last.name.endswith(".scores")
            if last.name == self.stage and self.was is not None and not moved(last.value, self.was):
                return False
            if last.name != self.stage or self.search.holds(last.value, max(self.first.allowed, MOVED)):
                return True
            self.moving.append(candidate)
        return False


def _furthest(search: Search, reach: float, changes: Iterable[tuple[Candidate, ...]]) -> Tried | None:
    """Of the changes, the one with which the two agree longest, the earlier of two; None if with none they agree longer than so far."""
    best = None
    for each in changes:
        with Attempt():
            found = search.tried(each[-1].make(), *each)
            if found.reach > reach and not search.passes(found):
                best, reach = found, found.reach
        if reach == math.inf:
            break
    return best
