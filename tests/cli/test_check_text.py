"""The report for a reader: what failed comes first, and what is small is not called nothing."""

from __future__ import annotations

from typing import Any

from clearhead.checking.report import Check, Fault, Report
from clearhead.cli.check_text import lines


def shown(effect: float) -> list[str]:
    checks = (
        Check("a", "pass", "right"),
        Check("b", "skipped", "-"),
        Check("c", "fail", "wrong"),
        Check("d", "pass", ""),
    )
    fault = Fault("c", "reproduced", "wrong", "x.py:1", "mend", effect)
    report: dict[str, Any] = Report("x", "lm", False, checks, (fault,)).to_dict()
    return [*lines(report)]


def test_what_failed_comes_first_and_the_rest_in_its_order() -> None:
    rows = [line.split() for line in shown(0.5) if line.startswith("  ") and len(line.split()) > 1]
    ids = [
        next(word for word in row if word in "abcd")
        for row in rows
        if any(word in ("a", "b", "c", "d") for word in row)
    ]
    assert ids == ["c", "a", "b", "d"]
    assert shown(0.5)[-1] == "faults named: 1; checks failed: 1, passed: 2"


def test_a_small_effect_is_not_nothing() -> None:
    assert any("off by 50.0% of" in line for line in shown(0.5))
    assert any("off by 2.0e-07 of" in line for line in shown(2e-7))
    assert not any("0.0%" in line for line in shown(2e-7))
