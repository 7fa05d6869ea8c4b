"""The words of a check's report, for console and page alike. Imports without torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clearhead.messages import say


def verdict(name: str) -> str:
    """What came out of one check."""
    words = {
        "pass": say("cli.check.pass"),
        "fail": say("cli.check.fail"),
        "skipped": say("cli.check.skipped"),
        "error": say("cli.check.error"),
    }
    return words[name]


def certainty(name: str) -> str:
    """How a fault is known."""
    return say("cli.check.reproduced") if name == "reproduced" else say("cli.check.consistent")


def heading(report: Mapping[str, Any]) -> str:
    """What was checked, and as what."""
    target, kind = report["target"], report["kind"]
    if not kind:
        return str(target)
    if report["guessed"]:
        return say("cli.check.guessed", target=target, kind=kind)
    return say("cli.check.as_kind", target=target, kind=kind)


def effect(fault: Mapping[str, Any]) -> str:
    """How far the output is off; "" if that is not known."""
    if fault["effect"] is None:
        return ""
    # What rounds to 0.0% is something all the same.
    shown = format(fault["effect"], ".1%" if fault["effect"] >= SMALLEST else ".1e")
    return say("cli.check.effect", effect=shown)


def in_order(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The checks of a report, those that failed first: among many that are right they are not seen."""
    return sorted(report["checks"], key=lambda check: check["verdict"] not in ("fail", "error"))


SMALLEST = 0.0005
"""The smallest effect that is told in percent."""

SEEING = ("causal.", "window.", "mask.", "softmax.", "heads.", "scores.", "batch.", "norm.axis", "feedforward.")
"""Beginnings of the names of faults that change who sees whom."""


def shows_sight(report: Mapping[str, Any]) -> bool:
    """Whether the picture of who sees whom says something of the faults that were found."""
    sight = report["sight"]
    named = any(fault["id"].startswith(SEEING) for fault in report["faults"])
    return sight is not None and named and sight["expected"] != sight["found"]


def columns() -> list[str]:
    """The heading of the table of number types."""
    return [say("cli.check.what"), "float32", "bfloat16", say("cli.check.verdict")]
