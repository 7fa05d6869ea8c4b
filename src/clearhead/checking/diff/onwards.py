"""From one reason to the next: what is explained is given the other side's numbers, and the two are walked on from there.

A reason stands only if it closes the difference: with the numbers of the other in the place that it names, the two agree longer than before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.checking.diff.align import aligned, parting
from clearhead.checking.diff.code import CodeSide
from clearhead.checking.diff.forcing import Put
from clearhead.checking.diff.formulas import found_in
from clearhead.checking.diff.numbers import plain, views
from clearhead.checking.diff.reading import Placed, Scene, scene
from clearhead.checking.diff.report import Pair, Reason
from clearhead.checking.diff.side import Given, Side, Stage, Walk
from clearhead.checking.diff.skipping import skips
from clearhead.checking.diff.stages import CodeStage
from clearhead.checking.diff.vocabularies import common_ids
from clearhead.messages import UserError

INPUT = "the input"
"""What vectors that both are given are called."""

LAID = 3
"""In so many ways numbers are laid into the axes of another stage."""

MOST_NAMED, MOST_STEPS = 5, 24
"""How many reasons are given, and how many places are explained for them: each block may have the same one."""


class Onwards(NamedTuple):
    """What was found.

    Args:
        reasons: the first cause first, each kind once.
        left: where the two still part, and nothing is known; None if they do not.
        unreached: the stages from there on that differ.
    """

    reasons: tuple[Reason, ...]
    left: Pair | None = None
    unreached: tuple[str, ...] = ()


class Two(NamedTuple):
    """Two sides with their walks.

    Args:
        a: the one.
        b: the other.
        walks: of A and of B.
        pairs: their stages.
    """

    a: Side
    b: Side
    walks: tuple[Walk, Walk]
    pairs: tuple[Pair, ...]

    @property
    def reach(self) -> float:
        """How many stages are equal before the two part; infinitely many if they do not."""
        first = parting(self.pairs)
        if first is None:
            return float("inf")
        return sum(pair.held in ("equal", "island") for pair in self.pairs[: self.pairs.index(first)])


def two(a: Side, b: Side, walks: tuple[Walk, Walk], given: Given) -> Two:
    """Two sides with their walks, held beside each other; of vectors the first stage is what both were given."""
    one, other = (_with_inputs(walk, given) for walk in walks)
    return Two(a, b, (one, other), aligned(one, other))


def _with_inputs(walk: Walk, given: Given) -> Walk:
    """The walk, what it was given before its first stage: what that was made of is known, too."""
    x = given.inputs[0]
    stages = [stage for stage in walk.stages if isinstance(stage, CodeStage)]
    if walk.stages and walk.stages[0].name == INPUT:
        return walk
    if not x.is_floating_point() or len(stages) < len(walk.stages):
        return walk
    begun = [any(_is_given(each, x) for each in stage.inputs) for stage in stages]
    moved = (
        replace(stage, parents=(*((0,) if first else ()), *(at + 1 for at in stage.parents)))
        for stage, first in zip(stages, begun, strict=True)
    )
    return replace(walk, stages=(CodeStage(INPUT, x), *moved))


def _is_given(each: Tensor, x: Tensor) -> bool:
    """Whether an operand is what the forward was given, as it lies, with its rows in one, or with time first as kernels want it."""
    if each.numel() != x.numel() or not each.is_floating_point():
        return False
    forms = (x, x.transpose(0, 1)) if each.dim() == x.dim() > 2 else (x,)
    return any(
        # Its first step may be to round them.
        each.shape[-1] == x.shape[-1] and torch.equal(each.flatten(), form.to(each.dtype).flatten())
        for form in forms
    )


def onwards(now: Two, given: Given) -> Onwards:
    """All reasons, as far as one leads to the next.

    Args:
        now: the two, which part.
        given: what both were given.
    """
    reasons: dict[str, Reason] = {}
    with torch.no_grad():
        for step in range(MOST_STEPS):
            if parting(now.pairs) is None or len(reasons) == MOST_NAMED:
                break
            found = _next(now, given, whole=step == 0)
            if found is None:
                break
            reason, now = found
            reasons.setdefault(reason.id, reason.bare)
            if not _can_go_on(now):
                break
    left = parting(now.pairs) if _can_go_on(now) else None
    return Onwards(tuple(reasons.values()), left, () if left is None else unreached(now.pairs))


def unreached(pairs: tuple[Pair, ...]) -> tuple[str, ...]:
    """The stages from the parting on that no partner has equal."""
    first = parting(pairs)
    rest = () if first is None else pairs[pairs.index(first) :]
    return tuple(pair.a or pair.b for pair in rest if pair.held in ("differs", "unpaired"))


def _can_go_on(now: Two) -> bool:
    """Whether one of the two is code, in which numbers can be put in place of others; asked of all positions in one run."""
    return any(_forced(side, walk) for side, walk in zip((now.a, now.b), now.walks, strict=True))


def _forced(side: Side, walk: Walk) -> bool:
    return isinstance(side, CodeSide) and not walk.last_only


def _next(now: Two, given: Given, *, whole: bool) -> tuple[Placed, Two] | None:
    """The first reason that closes the difference, and the two after it.

    Args:
        now: the two.
        given: what both were given.
        whole: whether a step that one of them leaves out, which explains all, goes before a formula that explains some.
    """
    seen = scene(*now.walks, (now.a.weights, now.b.weights))
    if seen is None:
        return None
    for reason in found_in(seen):
        if not _can_go_on(now):
            return reason, now
        after = _closed(now, seen, reason, given)
        if after is None:
            continue
        if whole and parting(after.pairs) is not None:
            return _skipped(now, seen, given, whole=True) or (reason, after)
        return reason, after
    return _skipped(now, seen, given, whole=False)


def _skipped(now: Two, seen: Scene, given: Given, *, whole: bool) -> tuple[Placed, Two] | None:
    """A step of one of the two that the other does not take: without it nothing differs, or, of positions, less."""
    for skip in skips(seen):
        side, walk = (now.a, now.b)[skip.side], now.walks[skip.side]
        if not _forced(side, walk):
            continue
        # What is put may be refused by the code that comes after it.
        with suppress(UserError):
            tried = _with_put(now, skip.side, walk.stages[skip.place], skip.value, given)
            if tried is None or tried.reach <= now.reach:
                continue
            reason = skip.reason(seen, _left(tried))
            # That some more stages agree for once is no evidence that a step is missing; a formula says more than that one is.
            if tried.reach == float("inf"):
                if not whole or reason.id not in ("block.wiring", "embedding.scale", "scale.factor"):
                    return reason, tried
            elif reason.id == "position.missing" and not whole:
                return reason, tried
    return None


def _left(now: Two) -> float:
    return now.pairs[-1].largest if parting(now.pairs) is None and now.pairs else 0.0


def _closed(now: Two, seen: Scene, reason: Placed, given: Given) -> Two | None:
    """The two with the numbers of one in the other at the place of a reason, if they agree longer then."""
    for i, j in _places(seen, reason.at):
        n = 1 if _forced(now.b, now.walks[1]) else 0
        if not _forced((now.a, now.b)[n], now.walks[n]):
            continue
        for places in dict.fromkeys((((i, j),), _siblings(seen, i, j))):
            after: Two | None = now
            # What is put may be refused by the code that comes after it.
            with suppress(UserError):
                for one, other in places:
                    put = (other, seen.a.stage(one).value) if n else (one, seen.b.stage(other).value)
                    after = None if after is None else _with_put(after, n, now.walks[n].stages[put[0]], put[1], given)
                if after is not None and after.reach > now.reach:
                    return after
    return None


def _siblings(seen: Scene, i: int, j: int) -> tuple[tuple[int, int], ...]:
    """The places that are made of the same as two places, in the same way, one beside the other: with q the keys and the values."""
    one, other = (
        [
            n
            for n in each.cone
            if each.parents[n] == each.parents[at] and each.stage(n).made_by == each.stage(at).made_by
        ]
        for each, at in ((seen.a, i), (seen.b, j))
    )
    fits = len(one) == len(other) and all(
        seen.a.value(m).numel() == seen.b.value(n).numel() for m, n in zip(one, other, strict=True)
    )
    return tuple(zip(one, other, strict=True)) if fits else ((i, j),)


def _places(seen: Scene, at: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """The place of a reason; behind one whose numbers cannot be exchanged, the next that can."""
    i, j = at
    if seen.a.value(i).numel() == seen.b.value(j).numel():
        yield at
        return
    later = ((m, n) for m, n in seen.found.parted.items() if m > i and n > j)
    yield from (each for each in later if seen.a.value(each[0]).numel() == seen.b.value(each[1]).numel())


def _with_put(now: Two, n: int, stage: Stage, value: Tensor, given: Given) -> Two | None:
    """The two, one of them with a tensor in place of a stage's; of several ways in which it may lie there the one that leads furthest."""
    side = (now.a, now.b)[n]
    if not isinstance(stage, CodeStage) or not isinstance(side, CodeSide) or stage.at < 0:
        return None
    best = None
    for laid in _laid(value, stage.value):
        other = replace(side, puts=(*side.puts, Put(stage.at, stage.part, laid)))
        walk = other.run(given)
        both = (now.a, other, (now.walks[0], walk)) if n else (other, now.b, (walk, now.walks[1]))
        found = two(both[0], both[1], common_ids(*both).walks, given)
        best = found if best is None or found.reach > best.reach else best
    return best


def _laid(value: Tensor, like: Tensor) -> list[Tensor]:
    """The numbers of the one in the axes of the other: of all ways in which they may lie, the nearest few."""
    if value.numel() != like.numel() or value.is_complex() != like.is_complex():
        return []
    if value.shape == like.shape:
        return [value]
    wanted = plain(like)
    return sorted(views(plain(value), wanted), key=lambda each: float((each - wanted).square().sum()))[:LAID]
