"""A check's report for a reader at a console. Imports without torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from clearhead.checking.report import Sight
from clearhead.checking.sight import drawn
from clearhead.cli.check_words import certainty, columns, effect, heading, in_order, shows_sight, verdict
from clearhead.messages import say


def lines(report: Mapping[str, Any]) -> Iterator[str]:
    """The report, a line at a time: what was checked, what is wrong and how to mend it, what was asked.

    Args:
        report: what `Report.to_dict` gave.
    """
    yield heading(report)
    for fault in report["faults"]:
        yield from _fault(fault)
    if shows_sight(report):
        yield ""
        yield from drawn(Sight(**report["sight"]))
    yield ""
    first = max((len(verdict(check["verdict"])) for check in report["checks"]), default=0)
    width = max((len(check["id"]) for check in report["checks"]), default=0)
    for check in in_order(report):
        yield f"  {verdict(check['verdict']):<{first}} {check['id']:<{width}}  {check['evidence']}"
    for note in report["notes"]:
        yield f"  {say('cli.check.note')} {note}"
    if report["rounding"]:
        yield ""
        yield from _table(report["rounding"])
    yield ""
    yield _sum(report)


def _fault(fault: Mapping[str, Any]) -> Iterator[str]:
    where = f"  ({fault['where']})" if fault["where"] else ""
    yield ""
    yield f"{fault['id']}{where}: {certainty(fault['certainty'])}"
    yield f"  {fault['evidence']}"
    yield f"  {say('cli.check.fix')} {fault['fix']}"
    if fault["effect"] is not None:
        yield f"  {effect(fault)}"


def _table(rows: list[list[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in [columns(), *rows]) for column in range(4)]
    for row in [columns(), *rows]:
        yield "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _sum(report: Mapping[str, Any]) -> str:
    verdicts = [check["verdict"] for check in report["checks"]]
    counts = {name: verdicts.count(name) for name in ("pass", "fail", "skipped", "error")}
    if report["ok"]:
        return say("cli.check.all_right", passed=counts["pass"], skipped=counts["skipped"])
    return say(
        "cli.check.wrong_sum",
        faults=len(report["faults"]),
        failed=counts["fail"] + counts["error"],
        passed=counts["pass"],
    )
