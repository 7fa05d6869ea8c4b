"""Weights as found: what cannot do anything, does the same twice, or never trains."""

from __future__ import annotations

from clearhead.checking.case import Case
from clearhead.checking.kinds.kind import Found
from clearhead.checking.target import Target


def weights(target: Target) -> Found:
    """What is asked of the weights alone, nothing run."""
    return Found()


def unused(case: Case) -> Found:
    """Whether each parameter gets a gradient."""
    return Found()
