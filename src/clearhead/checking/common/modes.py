"""Whether a module does the same each time where it should, and not where dropout should be at work."""

from __future__ import annotations

from clearhead.checking.case import Case
from clearhead.checking.kinds.kind import Found


def modes(case: Case) -> Found:
    """What is asked of evaluation and training modes."""
    return Found()
