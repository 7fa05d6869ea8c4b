"""The line at which rotary code turns."""

from __future__ import annotations

from clearhead.checking.watch import Record


def place_of_turn(record: Record) -> str:
    """The last product of the user's, which is where cos and sin meet the vectors; where angles are made, if none is."""
    for names in (("mul", "__mul__", "__rmul__", "einsum"), ("cos", "polar", "outer"), ("cat", "stack")):
        found = [op.where for op in record.named(*names) if op.where]
        if found:
            return found[-1]
    return next((op.where for op in reversed(record.ops) if op.where), "")
