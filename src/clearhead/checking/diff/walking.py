"""Two sides run on the same inputs, and held beside each other."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from clearhead.checking.diff.align import aligned, parting
from clearhead.checking.diff.report import Pair, Reason
from clearhead.checking.diff.results import beside_alone, beside_apart, broken, chosen, shaped_apart
from clearhead.checking.diff.side import Given, Side, Walk
from clearhead.checking.diff.vocabularies import common_ids


class Walked(NamedTuple):
    """Two walks, held beside each other.

    Args:
        walks: of A and of B.
        pairs: their stages.
        notes: what is to be said of their results.
        broken: that one of the two gives no numbers; None if both do.
        settled: whether what differs is beside the stages, so that no reason is searched in them.
        ids: that one of the two knows more ids; None if both know the same.
    """

    walks: tuple[Walk, Walk]
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...] = ()
    broken: Reason | None = None
    settled: bool = False
    ids: Reason | None = None


def walked(a: Side, b: Side, given: Given) -> Walked:
    """Both run and compared: their stages, then their results and what they give beside them."""
    ended, notes = chosen(a.run(given), b.run(given))
    walks, ids = common_ids(a, b, ended)
    pairs = aligned(*walks)
    if (lost := broken(*walks, pairs)) is not None:
        return Walked(walks, lost.pairs, notes, lost.reason)
    if parting(pairs) is not None:
        return Walked(walks, pairs, notes, ids=ids)
    apart = (*shaped_apart(*walks, pairs)[-1:], *beside_apart(*walks))
    pairs = (*pairs[:-1], *apart)
    if ids is not None and parting(pairs) is None and pairs:
        ids = replace(ids, after=pairs[-1].largest)
        pairs = (*pairs[:-1], replace(pairs[-1], largest=float("inf"), held="differs"))
    return Walked(walks, pairs, (*notes, *beside_alone(*walks)), settled=parting(pairs) is not None, ids=ids)
