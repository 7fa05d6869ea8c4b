"""Two sides run on the same inputs, and held beside each other."""

from __future__ import annotations

from typing import NamedTuple

from clearhead.checking.diff.align import aligned, parting
from clearhead.checking.diff.report import Pair, Reason
from clearhead.checking.diff.results import beside_alone, beside_apart, broken, chosen, shaped_apart
from clearhead.checking.diff.side import Given, Side, Walk


class Walked(NamedTuple):
    """Two walks, held beside each other.

    Args:
        walks: of A and of B.
        pairs: their stages.
        notes: what is to be said of their results.
        broken: that one of the two gives no numbers; None if both do.
        settled: whether what differs is beside the stages, so that no reason is searched in them.
    """

    walks: tuple[Walk, Walk]
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...] = ()
    broken: Reason | None = None
    settled: bool = False


def walked(a: Side, b: Side, given: Given) -> Walked:
    """Both run and compared: their stages, then their results and what they give beside them."""
    walks, notes = chosen(a.run(given), b.run(given))
    pairs = aligned(*walks)
    if (lost := broken(*walks, pairs)) is not None:
        return Walked(walks, lost.pairs, notes, lost.reason)
    if parting(pairs) is not None:
        return Walked(walks, pairs, notes)
    apart = (*shaped_apart(*walks, pairs)[-1:], *beside_apart(*walks))
    pairs = (*pairs[:-1], *apart)
    return Walked(walks, pairs, (*notes, *beside_alone(*walks)), settled=parting(pairs) is not None)
