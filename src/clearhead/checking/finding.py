"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """The verdict of one check."""

    id: str
    """Of the fault that it looks for."""
    passed: bool
    largest: float
    """The largest wrong influence or difference found."""
    evidence: str
    """What was done and seen, in one sentence."""
