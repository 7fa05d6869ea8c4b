"""A comparison as one page: no script, nothing fetched. Imports without torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from clearhead.checking.diff import said
from clearhead.messages import language, say

WIDTH, HEIGHT, LEFT, BELOW = 960.0, 220.0, 48.0, 16.0
LEAST, MOST = -18, 2
"""Powers of ten that the chart spans: below stands what is equal to the last bit."""
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; background: #fff }
h1 { font-size: 1.4rem; overflow-wrap: anywhere } h2 { font-size: 1.1rem } code { font: 0.95em ui-monospace, monospace; overflow-wrap: anywhere }
.reason { border-left: 4px solid #b3261e; padding-left: 1rem; margin: 1rem 0 } .reason h3 { font-size: 1rem; margin-bottom: 0 }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums } td, th { padding: 0.2rem 0.6rem; text-align: left; vertical-align: top }
tr:nth-child(even) { background: #f5f5f5 } .differs { color: #b3261e; font-weight: 600 } .equal { color: #1a6b33 } tr.first td { font-weight: 700 }
.wide { overflow-x: auto } svg { display: block; max-width: 100%; height: auto } svg text { font: 11px system-ui, sans-serif; fill: currentColor }
.bar-equal { fill: #1a6b33 } .bar-island { fill: #b07c00 } .bar-differs { fill: #b3261e } .grid { stroke: #8884 } .allowed { stroke: currentColor; stroke-width: 1.5 }
summary { cursor: pointer }
@media (prefers-color-scheme: dark) { body { color: #e8e8e8; background: #17181a } tr:nth-child(even) { background: #222428 }
.differs { color: #ff8a80 } .equal { color: #7ccf92 } .bar-equal { fill: #7ccf92 } .bar-island { fill: #e0b040 } .bar-differs { fill: #ff8a80 } }
"""


def page(found: Mapping[str, Any]) -> str:
    """The comparison as HTML.

    Args:
        found: what `Difference.to_dict` gave.
    """
    title = escape(f"clearhead diff {said.word(found['a'])} {said.word(found['b'])}")
    reasons = f"<h2>{escape(say('diff.why'))}</h2>{''.join(map(_reason, found['reasons']))}" if found["reasons"] else ""
    parts = [
        f"<h1>{title}</h1>",
        f"<p class='{'equal' if found['ok'] else 'differs'}'>{escape(said.verdict(found))}</p>",
        reasons,
        f"<h2>{escape(say('diff.stages'))}</h2>",
        _chart(found),
        _stages(found),
        _weights(found),
        "".join(f"<p>{escape(say('diff.note'))} {escape(note)}</p>" for note in found["notes"]),
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = (
        f"<meta charset='utf-8'><meta http-equiv='Content-Security-Policy' content=\"{policy}\">"
        f"<meta name='viewport' content='width=device-width'><title>{title}</title><style>{STYLE}</style>"
    )
    return f"<!doctype html><html lang='{language()}'><head>{head}</head><body>{''.join(parts)}</body></html>\n"


def _reason(reason: Mapping[str, Any]) -> str:
    return (
        f"<section class='reason'><h3><code>{escape(reason['id'])}</code> · <code>{escape(said.word(reason['place']))}</code></h3>"
        f"<p>{escape(reason['text'])}</p><p>{escape('; '.join(filter(None, (said.certainty(reason['certainty']), said.remains(reason)))))}</p></section>"
    )


def _chart(found: Mapping[str, Any]) -> str:
    """The walk: a bar a stage that has a partner, as high as its difference's power of ten."""
    pairs = [pair for pair in found["pairs"] if pair["held"] != "unpaired"]
    step = (WIDTH - LEFT) / max(len(pairs), 1)
    marks = [_bar(pair, LEFT + n * step, min(step * 0.8, 40.0)) for n, pair in enumerate(pairs)]
    label = escape(say("diff.chart"))
    return (
        f"<p>{label}</p><svg role='img' aria-label='{label}' viewBox='0 -10 {WIDTH:g} {HEIGHT + BELOW + 10:g}' width='{WIDTH:g}'>"
        f"{''.join(map(_line, range(LEAST, MOST + 1, 4)))}{''.join(marks)}</svg>"
    )


def _line(power: int) -> str:
    y = _height(10.0**power)
    return (
        f"<line class='grid' x1='{LEFT:g}' x2='{WIDTH:g}' y1='{y:.1f}' y2='{y:.1f}'/>"
        f"<text x='{LEFT - 6:g}' y='{y + 4:.1f}' text-anchor='end'>1e{power}</text>"
    )


def _bar(pair: Mapping[str, Any], x: float, width: float) -> str:
    top, allowed = _height(pair["largest"]), _height(pair["allowed"])
    tip = escape(f"{said.place(pair)}: {said.number(pair['largest'])} ({said.held(pair['held'])})")
    return (
        f"<g><title>{tip}</title><rect class='bar-{pair['held']}' x='{x:.1f}' y='{top:.1f}' width='{width:.1f}' height='{HEIGHT - top + 1:.1f}'/>"
        f"<line class='allowed' x1='{x:.1f}' x2='{x + width:.1f}' y1='{allowed:.1f}' y2='{allowed:.1f}'/></g>"
    )


def _height(value: float) -> float:
    """Where a difference stands in the chart; one without a size stands at the top."""
    if value <= 0:
        return HEIGHT
    power = math.log10(value) if math.isfinite(value) else MOST
    return HEIGHT - HEIGHT * (min(max(power, LEAST), MOST) - LEAST) / (MOST - LEAST)


def _stages(found: Mapping[str, Any]) -> str:
    pairs, near = found["pairs"], said.around(found)
    short = _table(found, [pairs[n] for n in near])
    if len(near) == len(pairs):
        return short
    return f"{short}<details><summary>{escape(say('diff.all_stages', count=len(pairs)))}</summary>{_table(found, pairs)}</details>"


def _table(found: Mapping[str, Any], pairs: Sequence[Mapping[str, Any]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in said.columns())
    body = "".join(
        f"<tr{' class=first' if pair == found['first'] else ''}>"
        + "".join(f"<td class='{pair['held']}'>{escape(cell)}</td>" for cell in said.row(pair))
        + "</tr>"
        for pair in pairs
    )
    return f"<div class='wide'><table><tr>{head}</tr>{body}</table></div>"


def _weights(found: Mapping[str, Any]) -> str:
    other = [each for each in found["tensors"] if each["state"] != "same"]
    rows = [
        f"<tr><td>{escape(said.state(each['state']))}</td><td>{escape(said.tensor(each))}</td><td><code>{escape(each.get('id', ''))}</code></td></tr>"
        for each in other
    ]
    told = f"<h2>{escape(say('diff.weights'))}</h2><p>{escape(said.counts(found))}</p>"
    short = f"<table>{''.join(rows[: said.MOST_TENSORS])}</table>" if rows else ""
    if len(rows) <= said.MOST_TENSORS:
        return told + short
    summary = escape(say("diff.all_tensors", count=len(rows)))
    return f"{told}{short}<details><summary>{summary}</summary><table>{''.join(rows)}</table></details>"
