"""Why two sides part: what is known at once, then what their weights say, then what must be searched."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from clearhead.checking.diff.align import parting
from clearhead.checking.diff.candidates import Candidate, candidate_of
from clearhead.checking.diff.exchanged_weights import by_weights
from clearhead.checking.diff.explain import explained
from clearhead.checking.diff.giving import Shared, weights_of_other
from clearhead.checking.diff.hints import suggested
from clearhead.checking.diff.onwards import Onwards, Two, onwards, two, unreached
from clearhead.checking.diff.ours import ModelSide
from clearhead.checking.diff.report import Pair, Reason
from clearhead.checking.diff.side import Given, Side, Walk
from clearhead.checking.diff.towards import sizes_apart, towards
from clearhead.checking.diff.trained import trained_apart
from clearhead.checking.diff.unsteady import unsteady
from clearhead.checking.diff.walking import Walked, walked
from clearhead.checking.diff.weights import Match
from clearhead.messages import say


def unexplained(reasons: tuple[Reason, ...], left: Pair | None, unreached: tuple[str, ...]) -> list[str]:
    """What is to be said where no reason, or not all of them, was found."""
    if left is None:
        return []
    if not reasons:
        return [say("diff.located")]
    gap = f"{left.largest:.1e}"
    return [say("diff.unexplained", place=left.a or left.b, gap=gap, count=max(1, len(unreached)))]


def reasons_for(shared: Shared, seen: Walked, first: Pair, given: Given) -> Onwards:
    """Why two part, and where they still part after that.

    Args:
        shared: both sides with their weights.
        seen: both, run.
        first: where they part.
        given: what both were given.
    """
    at_once = _at_once(shared, seen, first)
    if at_once is not None:
        return at_once
    a, b, reasons = _still(shared, given)
    seen = walked(a, b, given) if reasons else seen
    of_weights = by_weights(a, b, shared.pairs, seen.pairs, lambda side: walked(a, side, given).pairs)
    if of_weights is not None:
        reasons, b = (*reasons, *of_weights.reasons), of_weights.other
        seen = walked(a, b, given)
    last = () if seen.ids is None else (seen.ids,)
    if parting(seen.pairs) is None or seen.settled:
        return Onwards((*reasons, *last))
    # What is left is looked for with the same weights.
    found = why(a, b, seen.walks, given, shared.found)
    return found._replace(reasons=(*reasons, *found.reasons, *last))


def _at_once(shared: Shared, seen: Walked, first: Pair) -> Onwards | None:
    """What is known without a search: no numbers, other sizes, other training, results that alone differ."""
    a, b = shared.a, shared.b
    sizes = sizes_apart(a.config, b.config) if isinstance(a, ModelSide) and isinstance(b, ModelSide) else ""
    if seen.broken is not None:
        return Onwards((seen.broken,))
    if sizes:
        text = say("diff_ours.sizes", sizes=sizes)
        return Onwards((Reason("config.sizes", "consistent", first.a or first.b, text, first.largest, first.largest),))
    if (trained := trained_apart(a, b, shared.found, first)) is not None:
        return Onwards((trained,))
    return Onwards(() if seen.ids is None else (seen.ids,)) if seen.settled else None


def _still(shared: Shared, given: Given) -> tuple[Side, Side, tuple[Reason, ...]]:
    """Both sides without what they draw, and that they draw."""
    sides, reasons = [shared.a, shared.b], []
    for n, which in enumerate("AB"):
        drawn = unsteady(which, sides[n], given)
        if drawn is not None:
            reasons.append(drawn[0])
            sides[n] = drawn[1]
    return sides[0], sides[1], tuple(reasons)


def why(a: Side, b: Side, walks: tuple[Walk, Walk], given: Given, known: tuple[Match, ...] | None = None) -> Onwards:
    """The reasons, and where the two still part after all of them: ours is varied where one is ours; what that leaves, the formulas are asked.

    Args:
        a: the one.
        b: the other.
        walks: of A and of B.
        given: what both were given.
        known: what relates their tensors, where that was asked before.
    """
    reasons: tuple[Reason, ...] = ()
    now = two(a, b, walks, given)
    for side, other, mirrored in ((a, b, False), (b, a, True)):
        if not isinstance(side, ModelSide):
            continue
        spare = {**other.weights, **side.tensors} if isinstance(other, ModelSide) else side.tensors
        found, after = explained(
            replace(side, tensors=spare),
            walks[not mirrored],
            given,
            mirrored=mirrored,
            known=isinstance(other, ModelSide),
            more=known_beforehand(side, other, walks[not mirrored], mirrored=mirrored, known=known),
        )
        if found and after.first is None:
            return Onwards(found)
        if len(found) > len(reasons):
            reasons = found
            now = Two(a, after.side, (walks[0], after.walk), after.pairs)
            now = now if mirrored else Two(after.side, b, (after.walk, walks[1]), after.pairs)
    if reasons and all(isinstance(side, ModelSide) for side in (a, b)):
        return Onwards(reasons, parting(now.pairs), unreached(now.pairs))
    more = onwards(now, given)
    return more._replace(reasons=(*reasons, *more.reasons))


def known_beforehand(
    first: ModelSide, other: Side, walk: Walk, *, mirrored: bool, known: tuple[Match, ...] | None = None
) -> Callable[[ModelSide], Iterable[Candidate]]:
    """The changes that lead towards the other side: to its weights, its configuration if it is ours, and what its forward suggests."""
    weights = weights_of_other(first, other, mirrored=mirrored, known=known)

    def changes(side: ModelSide) -> Iterable[Candidate]:
        yield from weights(side)
        if isinstance(other, ModelSide):
            for variation in towards(side.config, other.config):
                yield candidate_of(side, variation)
        else:
            yield from suggested(side, walk)

    return changes
