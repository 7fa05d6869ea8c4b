"""Rounding or fault: the same weights in float64, float32 and bfloat16."""

from __future__ import annotations

from clearhead.checking.case import Case
from clearhead.checking.kinds.kind import Found
from clearhead.checking.settings import Settings


def precision(case: Case, settings: Settings) -> Found:
    """What number types do to the output."""
    return Found()
