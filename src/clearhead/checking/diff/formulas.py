"""Why two parts differ where neither can be varied: stub."""

from __future__ import annotations

from clearhead.checking.diff.report import Pair, Reason
from clearhead.checking.diff.side import Walk


def formula_reasons(a: Walk, b: Walk, first: Pair) -> tuple[Reason, ...]:
    """Nothing yet."""
    del a, b, first
    return ()
