"""Which tensor is which, where names and shapes do not tell: every way is tried, and that with which the two agree longest is taken."""

from __future__ import annotations

import math

from clearhead.checking.diff.align import parting
from clearhead.checking.diff.giving import Shared
from clearhead.checking.diff.side import Given
from clearhead.checking.diff.walking import Walked, walked
from clearhead.messages import say

MOST = 60
"""So many ways are tried."""


def best_guess(shared: Shared, seen: Walked, given: Given) -> tuple[Shared, Walked]:
    """The sides with the weights where they make the two agree longest, the first guess if no other does better.

    Args:
        shared: both, as was guessed first.
        seen: both so, run.
        given: what both were given.
    """
    best, at = (shared, seen), reach(seen)
    for make in shared.otherwise[:MOST]:
        other = make()
        walks = walked(other.a, other.b, given)
        if reach(walks) > at:
            best, at = (other, walks), reach(walks)
        if at == math.inf:
            break
    first = parting(seen.pairs)
    if best[0] is shared or first is None:
        return best
    note = say("diff_ours.guessed", place=first.a or first.b, gap=f"{first.largest:.1e}")
    return best[0]._replace(notes=(note, *best[0].notes)), best[1]


def reach(seen: Walked) -> float:
    """How many stages are equal before the two part; infinitely many if they do not."""
    first = parting(seen.pairs)
    if first is None:
        return math.inf
    return sum(pair.held in ("equal", "island") for pair in seen.pairs[: seen.pairs.index(first)])
