"""What a check says: verdicts of its checks, faults with their names, and what may be shown of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Verdict = Literal["pass", "fail", "skipped", "error"]
"""Right, wrong, could not have seen it, or the code under check failed."""

Certainty = Literal["reproduced", "consistent"]
"""A faulty formula gives the very output to rounding, or what was seen fits the name."""


@dataclass(frozen=True)
class Check:
    """The verdict of one question.

    Args:
        id: of the fault that was looked for, as in the dictionary of faults.
        verdict: what came out.
        evidence: what was done and seen, in one sentence with numbers; for `skipped` why nothing could be seen.
        largest: the largest wrong influence or difference, 0 if none.
    """

    id: str
    verdict: Verdict
    evidence: str
    largest: float = 0.0


@dataclass(frozen=True)
class Fault:
    """A mistake, named.

    Args:
        id: its name in the dictionary of faults.
        certainty: whether a faulty formula reproduces the output, or the name fits what was seen.
        evidence: the smallest thing that shows it, with numbers.
        where: the line ("att.py:31") or the module ("blocks.0.attention") in which it is, "" if unknown.
        fix: how to mend it, in one line.
        effect: how far the output is from what it should be, beside its size; None if that is not known.
    """

    id: str
    certainty: Certainty
    evidence: str
    where: str
    fix: str
    effect: float | None = None


@dataclass(frozen=True)
class Sight:
    """Who sees whom: what was expected and what was found, rows are queries and columns keys.

    Args:
        expected: whether a query should see a key.
        found: whether it does.
        strength: how strongly, relative to the strongest.
    """

    expected: list[list[bool]]
    found: list[list[bool]]
    strength: list[list[float]]


@dataclass(frozen=True)
class Report:
    """What `clearhead check` found.

    Args:
        target: what was checked, as the user called it.
        kind: as what.
        guessed: whether the kind was guessed.
        checks: every question asked, in order.
        faults: the mistakes, the most certain cause first.
        notes: what is legal and worth knowing: a float32 island, a finite mask constant, a zero-initialised projection.
        sight: who sees whom, where the kind has positions.
        rounding: rows of the table of number types: (what, float32, bfloat16, verdict), if asked.
    """

    target: str
    kind: str
    guessed: bool
    checks: tuple[Check, ...]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...] = ()
    sight: Sight | None = None
    rounding: tuple[tuple[str, str, str, str], ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults and all(check.verdict in ("pass", "skipped") for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON has it."""
        plain = asdict(self)
        return {"target": self.target, "kind": self.kind, "ok": self.ok, **plain}
