"""Whether it is the weights for which two pieces of code part: B is run once more with those of A in place of the ones that differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from clearhead.checking.diff.align import parting
from clearhead.checking.diff.code import CodeSide
from clearhead.checking.diff.report import Pair, Reason
from clearhead.checking.diff.side import Side
from clearhead.checking.diff.weights import Match
from clearhead.messages import say


class Explained(NamedTuple):
    """What the weights explain.

    Args:
        reasons: one for each way in which weights differ.
        other: B with A's numbers, which parts from A later, or not at all.
    """

    reasons: tuple[Reason, ...]
    other: CodeSide


def by_weights(
    a: Side,
    b: Side,
    found: Sequence[Match],
    pairs: tuple[Pair, ...],
    run: Callable[[Side], tuple[Pair, ...]],
) -> Explained | None:
    """The reasons that lie in the weights; None if the two part no later with the same ones.

    Args:
        a: the one.
        b: the other.
        found: how their tensors are to each other.
        pairs: their stages.
        run: the pairs of A and another B.
    """
    first = parting(pairs)
    if first is None or not (isinstance(a, CodeSide) and isinstance(b, CodeSide)):
        return None
    own, others = a.weights, b.weights
    fitting = [each for each in found if each.state in ("changed", "related") and _fits(each, own, others)]
    if not fitting:
        return None
    other = b.with_weights({each.b: own[each.a] for each in fitting})
    after = run(other)
    parted = parting(after)
    if parted is not None and _equal_before(after, parted) <= _equal_before(pairs, first):
        return None
    left = after[-1].largest if parted is None else parted.largest
    groups: dict[str, list[Match]] = {}
    for each in fitting:
        groups.setdefault(each.id or "weights.changed", []).append(each)
    reasons = tuple(
        Reason(id, "reproduced", first.a or first.b, _words(some, len(found)), first.largest, left)
        for id, some in groups.items()
    )
    return Explained(reasons, other)


def _equal_before(pairs: tuple[Pair, ...], first: Pair) -> int:
    """How many pairs are equal before the two part."""
    return sum(pair.held in ("equal", "island") for pair in pairs[: pairs.index(first)])


def _fits(match: Match, own: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> bool:
    one, other = own.get(match.a), others.get(match.b)
    return one is not None and other is not None and one.shape == other.shape and one.is_floating_point()


def _words(some: Sequence[Match], whole: int) -> str:
    first = some[0]
    return say("diff_ours.other_weights", count=len(some), whole=whole, name=first.a, how=first.text or "-")
