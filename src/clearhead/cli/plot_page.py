"""A plot as a page in one file: the picture and its numbers, without a script, without anything from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from clearhead.cli.plot_figure import INK, cleaned, svg
from clearhead.cli.plot_fonts import FAMILY
from clearhead.cli.plot_panels import Plot
from clearhead.cli.plot_words import Words
from clearhead.messages import language, say
from clearhead.training.curves import Curves

ROWS = 200
"""Updates of a run whose numbers stand on the page; all evaluations are among them."""

STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #1c1e22; --line: #8884 }
@media (prefers-color-scheme: dark) { :root { --ground: #16181c; --ink: #e4e6ea } }
body { margin: 2rem auto; max-width: 70rem; padding: 0 1rem; background: var(--ground); color: var(--ink);
  font: 15px/1.5 %s }
h1 { font-size: 1.3rem; font-weight: 600 }
svg { display: block; max-width: 100%%; height: auto; margin: 1rem 0 }
.wide { overflow-x: auto }
table { border-collapse: collapse; margin: 0.5rem 0; font-variant-numeric: tabular-nums }
th, td { padding: 0.15rem 0.8rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap }
th:first-child, td:first-child { text-align: left }
summary { cursor: pointer; margin-top: 0.8rem }
"""


def page(plot: Plot, words: Words) -> str:
    """The page as HTML.

    Args:
        plot: what is shown.
        words: the language of the labels.

    Raises:
        UserError: if matplotlib is not installed, or there is nothing to show.
    """
    picture = svg(plot, words, ground=None)
    # Inside a page there is no prologue, and ink takes the colour of the page's words.
    picture = picture[picture.index("<svg") :].replace(INK, "currentColor")
    title = f"{say('plot.page_title')}: {', '.join(map(cleaned, plot.names))}"
    picture = re.sub(r"<svg\b", f'<svg role="img" aria-label="{escape(title)}"', picture, count=1)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    numbers = [_numbers(run) for run in plot.runs]
    return "\n".join(
        [
            f'<!doctype html>\n<html lang="{language()}">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>\n<style>{STYLE % FAMILY}</style>\n</head>\n<body>",
            f"<h1>{escape(title)}</h1>\n{picture}",
            _summary(plot.runs),
            *numbers,
            "</body>\n</html>\n",
        ]
    )


def _summary(runs: Sequence[Curves]) -> str:
    """A row a run."""
    head = [
        say("plot.page_run"),
        say("plot.page_updates"),
        say("plot.page_last_loss"),
        say("plot.page_best"),
        say("plot.page_at"),
    ]
    rows = []
    for run in runs:
        last, best = run.last("loss"), run.best()
        found = ["", ""] if best is None else [_written(best.value), f"{best.step:,}"]
        rows.append([cleaned(run.name), f"{run.steps[-1]:,}", "" if last is None else _written(last.value), *found])
    return _table(head, rows)


def _numbers(run: Curves) -> str:
    """The numbers of a run, to be opened."""
    names, places = list(run.columns), shown_places(run)
    rows = [[f"{run.steps[place]:,}", *(_written(run.columns[name][place]) for name in names)] for place in places]
    title = say("plot.page_numbers", name=cleaned(run.name), shown=len(places), count=f"{len(run.steps):,}")
    return f"<details>\n<summary>{escape(title)}</summary>\n{_table(['step', *names], rows)}\n</details>"


def shown_places(run: Curves) -> list[int]:
    """Which updates have their numbers on the page: about `ROWS` at equal distances, the last, and every evaluation."""
    count = len(run.steps)
    even = np.linspace(0, count - 1, min(count, ROWS)).round().astype(np.int64)
    losses = run.columns.get("val_loss")
    evaluated = np.zeros(0, dtype=np.int64) if losses is None else np.flatnonzero(np.isfinite(losses))
    chosen: list[int] = np.union1d(even, evaluated).tolist()
    return chosen


def _written(value: float) -> str:
    return f"{value:.5g}" if np.isfinite(value) else ""


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    titles = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="wide"><table>\n<tr>{titles}</tr>\n{body}\n</table></div>'
