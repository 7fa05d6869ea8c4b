"""A check's report as one page: no script, nothing fetched. Imports without torch."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from clearhead.cli.check_words import certainty, columns, effect, in_order, shows_sight, verdict
from clearhead.messages import language, say

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; background: #fff }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-bottom: 0 } code { font: 0.95em ui-monospace, monospace }
.fault { border-left: 4px solid #b3261e; padding-left: 1rem; margin: 1rem 0 } .fix { font-weight: 600 }
table { border-collapse: collapse; margin: 1rem 0 } td, th { padding: 0.2rem 0.6rem; text-align: left; vertical-align: top }
.checks tr:nth-child(even) { background: #f5f5f5 } .fail, .error { color: #b3261e; font-weight: 600 } .pass { color: #1a6b33 }
.sights { display: flex; gap: 2rem; flex-wrap: wrap } .sight td { width: 1.1rem; height: 1.1rem; padding: 0; border: 1px solid #ddd }
.seen { background: #2457a6 } .wrong { background: #b3261e } .lost { background: repeating-linear-gradient(45deg, #b3261e 0 2px, #fff 2px 6px) }
@media (prefers-color-scheme: dark) { body { color: #e8e8e8; background: #17181a } .checks tr:nth-child(even) { background: #222428 } }
"""


def page(report: Mapping[str, Any]) -> str:
    """The report as HTML.

    Args:
        report: what `Report.to_dict` gave.
    """
    title = escape(f"clearhead check {report['target']}")
    right = say("cli.check.right") if report["ok"] else say("cli.check.wrong")
    parts = [
        f"<h1>{title}</h1>",
        f"<p>{escape(report['kind'])} · <span class='{'pass' if report['ok'] else 'fail'}'>{escape(right)}</span></p>",
        *map(_fault, report["faults"]),
        _sights(report["sight"]) if shows_sight(report) else "",
        _checks(in_order(report)),
        "".join(f"<p>{escape(note)}</p>" for note in report["notes"]),
        _rounding(report["rounding"]) if report["rounding"] else "",
    ]
    head = f"<meta charset='utf-8'><meta name='viewport' content='width=device-width'><title>{title}</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang='{language()}'><head>{head}</head><body>{''.join(parts)}</body></html>\n"


def _fault(fault: Mapping[str, Any]) -> str:
    where = f" <code>{escape(fault['where'])}</code>" if fault["where"] else ""
    return (
        f"<section class='fault'><h2><code>{escape(fault['id'])}</code>{where}</h2>"
        f"<p>{escape(certainty(fault['certainty']))}. {escape(fault['evidence'])}</p>"
        f"<p class='fix'>{escape(say('cli.check.fix'))} {escape(fault['fix'])}</p><p>{escape(effect(fault))}</p></section>"
    )


def _sights(sight: Mapping[str, Any]) -> str:
    expected, found = sight["expected"], sight["found"]
    pictures = ((say("cli.check.expected"), expected), (say("cli.check.found"), found))
    drawn = "".join(
        f"<figure><figcaption>{escape(name)}</figcaption>{_sight(expected, rows)}</figure>" for name, rows in pictures
    )
    return f"<div class='sights'>{drawn}</div>"


def _sight(expected: list[list[bool]], rows: list[list[bool]]) -> str:
    marks = {(True, True): "seen", (False, True): "wrong", (True, False): "lost", (False, False): ""}
    body = "".join(
        "<tr>"
        + "".join(f"<td class='{marks[should, does]}'></td>" for should, does in zip(line, seen, strict=True))
        + "</tr>"
        for line, seen in zip(expected, rows, strict=True)
    )
    return f"<table class='sight'>{body}</table>"


def _checks(checks: list[Mapping[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td class='{check['verdict']}'>{escape(verdict(check['verdict']))}</td>"
        f"<td><code>{escape(check['id'])}</code></td><td>{escape(check['evidence'])}</td></tr>"
        for check in checks
    )
    return f"<table class='checks'>{rows}</table>"


def _rounding(rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in columns())
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
