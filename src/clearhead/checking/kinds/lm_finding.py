"""The words of a check of a language model."""

from __future__ import annotations

from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Certainty, Check, Fault, Sight
from clearhead.messages import say


def passed(name: str, evidence: str, largest: float = 0.0) -> Found:
    """A question that came out right."""
    return Found((Check(name, "pass", evidence, largest),))


def skipped(name: str, why: str) -> Found:
    """A question that could not have seen the fault."""
    return Found((Check(name, "skipped", why),))


def failed(
    name: str,
    evidence: str,
    *,
    where: str = "",
    largest: float = 0.0,
    effect: float | None = None,
    certainty: Certainty = "consistent",
    sight: Sight | None = None,
) -> Found:
    """A question that came out wrong, and the fault that this is; how to mend it is a message of its own."""
    fix = say(f"lm.fix.{name.replace('.', '_').replace('-', '_')}")
    fault = Fault(name, certainty, evidence, where, fix, effect)
    return Found((Check(name, "fail", evidence, largest),), (fault,), sight=sight)
