"""What is searched for the reason why two walks part, and how a changed side is held beside the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from torch import Tensor

from clearhead.checking.diff.align import matched, pairs_of, parting
from clearhead.checking.diff.candidates import Candidate, candidates_of
from clearhead.checking.diff.numbers import Mark, alike, laid, mark, plain, unsized
from clearhead.checking.diff.ours import ModelSide
from clearhead.checking.diff.partners import Matching
from clearhead.checking.diff.report import Pair, Reason
from clearhead.checking.diff.side import Given, Walk
from clearhead.checking.diff.sources import parents_of
from clearhead.checking.diff.stages import CodeStage
from clearhead.messages import UserError, say

More = Callable[[ModelSide], Iterable[Candidate]]
"""From a side to changes of it that are known beforehand, tried before all others."""


def nothing_more(side: ModelSide) -> Iterable[Candidate]:
    """No change is known."""
    return ()


@dataclass(frozen=True)
class Tried:
    """A changed side beside the other.

    Args:
        candidates: the changes that were made.
        side: after them.
        walk: its forward.
        pairs: its stages beside those of the other.
        found: which of them stand for each other.
    """

    candidates: tuple[Candidate, ...]
    side: ModelSide
    walk: Walk
    pairs: tuple[Pair, ...]
    found: Matching

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
    more: More = field(default=nothing_more)
    known: bool = False

    @cached_property
    def others(self) -> list[tuple[Mark, Tensor]]:
        """The stages of the other side, with their sums."""
        values = [plain(stage.value) for stage in self.other.stages]
        return [(mark(value), value) for value in values]

    def tried(self, side: ModelSide, *candidates: Candidate) -> Tried:
        """The side beside the other, all of it."""
        return self._beside(side, side.run(self.given), candidates)

    def changed(self, candidates: tuple[Candidate, ...]) -> Tried | None:
        """The side after changes, the last of which makes it; None if it cannot be built or run so."""
        side, walk = None, None
        # A change may ask for a part that the weights do not fit.
        with suppress(UserError, RuntimeError):
            side = candidates[-1].make()
            walk = side.run(self.given)
        return None if side is None or walk is None else self._beside(side, walk, candidates)

    def _beside(self, side: ModelSide, walk: Walk, candidates: tuple[Candidate, ...]) -> Tried:
        both = (self.other, walk) if self.mirrored else (walk, self.other)
        found = matched(*both)
        return Tried(candidates, side, walk, pairs_of(*both, found), found)

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

    def closes(self, now: Tried, after: Tried) -> bool:
        """Whether the two agree, after a change, at the very stage at which they parted, or in all that is made of it.

        That more agree for once is no evidence: attention to nothing but oneself mixes v, which the other has as well.
        """
        if after.first is None:
            return True
        assert now.first is not None
        place = min(i for i, j in now.found.parted.items() if self._pair(now, i, j) == (now.first.a, now.first.b))
        own, other = (now.found.parted[place], place) if self.mirrored else (place, now.found.parted[place])
        names = {stage.name: n for n, stage in enumerate(after.walk.stages)}
        still = names.get(now.walk.stages[own].name, -1)
        cones = after.found.cones[::-1] if self.mirrored else after.found.cones
        return still not in cones[0] and other not in cones[1]

    def _pair(self, now: Tried, i: int, j: int) -> tuple[str, str]:
        a, b = (self.other, now.walk) if self.mirrored else (now.walk, self.other)
        return a.stages[i].name, b.stages[j].name

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
        left = self._left(first, after)
        for each in after.candidates:
            a, b = (each.after, each.before) if self.mirrored else (each.before, each.after)
            text = say("diff_ours.reason", a=a, b=b)
            yield Reason(each.id, "reproduced", first.a or first.b, text, first.largest, left)

    def _left(self, first: Pair, after: Tried) -> float:
        """What remains at the stage at which the two parted: at the same stage of the side that was changed, else of the other, else of what follows."""
        at = next((n for n, pair in enumerate(after.pairs) if self.own(pair) == self.own(first)), len(after.pairs))
        held = [pair for pair in after.before if after.pairs.index(pair) >= at]
        same = (pair for pair in held if self.own(pair) == self.own(first))
        others = (pair for pair in after.before if self._others(pair) == self._others(first))
        return next(chain(same, others, held, after.pairs[-1:])).largest

    def _others(self, pair: Pair) -> str:
        return pair.a if self.mirrored else pair.b
