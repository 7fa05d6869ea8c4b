"""What a plot shows, before anybody draws it: a panel a column, with the curves of all runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearhead.cli.plot_words import Words
from clearhead.messages import UserError, say
from clearhead.training.curves import Curves, running_mean

Row = NDArray[np.float64]
Kind = Literal["thin", "strong", "points", "best"]

LOSSES = ("loss", "val_loss")
EXACT = ("lr", "tokens", "memory")
"""Columns without noise, which a mean would only blur."""
FAR = 0.25
"""A level further from the curves than this part of their height would press them flat: it is named, not drawn."""
WIDEST_WINDOW = 200


class Line(NamedTuple):
    """A curve, or the points of one."""

    column: str
    run: int
    """Which of the runs, from 0."""
    kind: Kind
    """Every update (thin), the running mean (strong), evaluations (points), the best of them."""
    x: Row
    y: Row


class Level(NamedTuple):
    """A value that is known without training."""

    label: str
    value: float
    near: bool
    """Whether it can be drawn beside the curves."""
    run: int | None
    """The one run that it belongs to; None if all or several have it."""


class Panel(NamedTuple):
    """One pair of axes."""

    column: str
    title: str
    x_label: str
    lines: tuple[Line, ...]
    levels: tuple[Level, ...]
    logarithmic: bool

    def meanings(self, words: Words, window: int) -> dict[Kind, str]:
        """What the kinds of lines in it are, where that has to be said."""
        measured = words.validation if self.column in LOSSES else words.measured
        known: dict[Kind, str] = {"thin": words.every_update, "points": measured, "best": words.best_mark}
        known |= {"strong": words.mean_of(window)} if any(line.kind == "thin" for line in self.lines) else {}
        there = {line.kind for line in self.lines}
        return {kind: known[kind] for kind in ("thin", "strong", "points", "best") if kind in there and kind in known}


class Plot(NamedTuple):
    """What is to be shown; how it looks is decided by who draws it."""

    runs: Sequence[Curves]
    columns: Sequence[str]
    """Names of metrics.jsonl, a panel each."""
    axis: str
    """What the curves are laid over."""
    window: int
    """Updates of the running mean."""
    logarithmic: bool
    """Powers at equal distances; what is not above 0 cannot be shown then."""

    @property
    def names(self) -> list[str]:
        """What the runs are called."""
        return [run.name for run in self.runs]

    def panels(self, words: Words, names: Sequence[str]) -> list[Panel]:
        """The curves, a panel a column; runs that have not recorded a column are left out of its panel.

        Args:
            words: the language of the labels.
            names: what the runs are called on them.

        Raises:
            UserError: if a run does not know where its updates lie on the axis, or a panel has nothing to show.
        """
        return [_panel(self, column, words, names) for column in self.columns]


def window_of(runs: Sequence[Curves], smooth: int | None) -> int:
    """How many updates the running mean takes: as asked, or a fiftieth of the longest run."""
    longest = max(len(run.steps) for run in runs)
    return smooth if smooth is not None else min(WIDEST_WINDOW, max(1, longest // 50))


def _panel(plot: Plot, column: str, words: Words, names: Sequence[str]) -> Panel:
    lines = [
        line for place, run in enumerate(plot.runs) for line in _of_run(column, place, run, plot.axis, plot.window)
    ]
    if not any(np.isfinite(line.y).any() for line in lines):
        raise UserError(say("plot.nothing_finite", column=column))
    if plot.logarithmic:
        lines = [line._replace(y=np.where(line.y > 0, line.y, np.nan)) for line in lines]
        if not any(np.isfinite(line.y).any() for line in lines):
            raise UserError(say("plot.nothing_above_zero", column=column))
    levels = _levels(plot, lines, words, names) if column in LOSSES else []
    return Panel(column, words.title(column), words.axis(plot.axis), tuple(lines), tuple(levels), plot.logarithmic)


def _of_run(column: str, place: int, run: Curves, axis: str, window: int) -> list[Line]:
    x = run.along(axis)
    lines: list[Line] = []
    if column in run.columns:
        lines += _of_column(column, place, x, run.columns[column], window)
    if column == "loss" and "val_loss" in run.columns:
        lines += _points("val_loss", place, x, run.columns["val_loss"])
    best = run.best() if column in LOSSES else None
    if best is not None:
        where = run.steps.index(best.step)
        lines.append(Line("val_loss", place, "best", x[where : where + 1], np.array([best.value])))
    return lines


def _of_column(column: str, place: int, x: Row, y: Row, window: int) -> list[Line]:
    """What is measured at every update as a line, what is measured now and then as points."""
    if 2 * np.isfinite(y).sum() < len(y) or column == "val_loss":
        return _points(column, place, x, y)
    if column in EXACT or window == 1:
        return [Line(column, place, "strong", x, y)]
    return [Line(column, place, "thin", x, y), Line(column, place, "strong", x, running_mean(y, window))]


def _points(column: str, place: int, x: Row, y: Row) -> list[Line]:
    known = np.isfinite(y)
    return [Line(column, place, "points", x[known], y[known])] if known.any() else []


def _levels(plot: Plot, lines: Sequence[Line], words: Words, names: Sequence[str]) -> list[Level]:
    """Each different level once; where runs differ in it, with the name of its run."""
    shown = np.concatenate([line.y for line in lines])
    shown = shown[np.isfinite(shown)]
    owners: dict[tuple[str, str], list[int]] = {}
    for place, curves in enumerate(plot.runs):
        for key, value in curves.levels.items():
            owners.setdefault((key, f"{value:.3f}"), []).append(place)
    made = []
    for (key, written), places in owners.items():
        value = plot.runs[places[0]].levels[key]
        whose = f" ({', '.join(names[place] for place in places)})" if len(places) < len(names) else ""
        label, near = words.level(key, written) + whose, _near(value, shown, logarithmic=plot.logarithmic)
        run = places[0] if len(places) == 1 < len(names) else None
        made.append(Level(label if near else words.outside(label), value, near, run))
    return made


def _near(value: float, shown: Row, *, logarithmic: bool) -> bool:
    if logarithmic and value <= 0:
        return False
    if logarithmic:
        value, shown = float(np.log(value)), np.log(shown)
    low, high = float(shown.min()), float(shown.max())
    return low - FAR * (high - low) <= value <= high + FAR * (high - low)
