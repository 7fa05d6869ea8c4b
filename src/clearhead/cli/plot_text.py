"""A plot in plain characters, for any terminal."""

from __future__ import annotations

import string
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clearhead.cli.plot_panels import Kind, Line, Panel, Row
from clearhead.cli.plot_words import Words
from clearhead.text.columns import columns_of

HEIGHT = 17
LABELS = 4
"""Every so many rows one has its value in front."""
NARROWEST = 30

Places = NDArray[np.int64]


def chart(panel: Panel, names: Sequence[str], words: Words, *, window: int, width: int) -> str:
    """One panel: a small letter a run for its curve, the capital for what was measured at evaluations.

    Args:
        panel: what is shown.
        names: what the runs are called.
        words: the language of the legend.
        window: updates of the running mean.
        width: columns of the terminal.
    """
    low, high = _range(panel)
    values = np.linspace(high, low, HEIGHT)
    marks = [_number(float(np.exp(value) if panel.logarithmic else value)) for value in values]
    margin = max(map(len, marks)) + 1
    grid = _grid(panel, max(NARROWEST, width - margin - 2), (low, high), alone=len(names) == 1)
    rows = [
        f"{mark if row % LABELS == 0 else '':>{margin}} |{''.join(signs).rstrip()}"
        for row, (mark, signs) in enumerate(zip(marks, grid, strict=True))
    ]
    foot = [f"{'':>{margin}} +{'-' * len(grid[0])}", " " * (margin + 2) + _feet(panel, len(grid[0]))]
    return "\n".join([panel.title, *rows, *foot, *_legend(panel, names, words, window)])


def _grid(panel: Panel, width: int, limits: tuple[float, float], *, alone: bool) -> list[list[str]]:
    """The signs, row by row from above; what is drawn later covers what was there."""
    grid = [[" "] * width for _ in range(HEIGHT)]
    for level in panel.levels:
        if level.near:
            row = int(_rows(np.array([level.value]), panel, limits)[0])
            grid[row][::2] = ["-"] * len(grid[row][::2])
    order = {"thin": 0, "strong": 1, "points": 2}
    for line in sorted((line for line in panel.lines if line.kind in order), key=lambda line: order[line.kind]):
        sign = _sign(line)
        if line.kind != "thin" or alone:
            columns, rows = _places(line, panel, width, limits)
            for column, row in zip(columns.tolist(), rows.tolist(), strict=True):
                grid[row][column] = sign
    return grid


def _places(line: Line, panel: Panel, width: int, limits: tuple[float, float]) -> tuple[Places, Places]:
    """Where a line has signs: (columns, rows)."""
    known = np.isfinite(line.y)
    first, last = _ends(panel)
    columns = np.rint((line.x[known] - first) / ((last - first) or 1.0) * (width - 1)).astype(np.int64)
    rows = _rows(line.y[known], panel, limits)
    if line.kind != "strong" or not len(rows):
        return columns, rows
    # A row a column, the mean of the updates that fall into it, straight lines between; then what joins them upright.
    inside, where = np.unique(columns, return_inverse=True)
    means = np.bincount(where, weights=rows) / np.bincount(where)
    across = np.arange(inside[0], inside[-1] + 1)
    heights = np.rint(np.interp(across, inside, means)).astype(np.int64)
    joined = [(int(across[0]), int(heights[0]))]
    for column, before, after in zip(across[1:], heights[:-1], heights[1:], strict=True):
        way = range(before, after, 1 if after > before else -1)
        joined += [(int(column), row) for row in way[1:]] + [(int(column), int(after))]
    made = np.array(joined, dtype=np.int64)
    return made[:, 0], made[:, 1]


def _rows(values: Row, panel: Panel, limits: tuple[float, float]) -> Places:
    low, high = limits
    heights = np.log(values) if panel.logarithmic else values
    return np.rint((high - heights) / (high - low) * (HEIGHT - 1)).astype(np.int64)


def _range(panel: Panel) -> tuple[float, float]:
    """The lowest and the highest that is shown, as logarithms if the axis is one."""
    shown = np.concatenate([*(line.y for line in panel.lines), [level.value for level in panel.levels if level.near]])
    shown = shown[np.isfinite(shown)]
    heights = np.log(shown) if panel.logarithmic else shown
    low, high = float(heights.min()), float(heights.max())
    return (low, high) if high > low else (low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2)


def _ends(panel: Panel) -> tuple[float, float]:
    x = np.concatenate([line.x for line in panel.lines])
    return float(x.min()), float(x.max())


def _feet(panel: Panel, width: int) -> str:
    """First, middle and last place of the axis below, and what it is."""
    first, last = _ends(panel)
    left, right = _number(first), f"{_number(last)} {panel.x_label}"
    middle = _number(round((first + last) / 2)) if last - first > LABELS else ""
    room = width - len(left) - columns_of(right)
    before = max(1, width // 2 - len(left) - len(middle) // 2)
    after = room - before - len(middle)
    return f"{left}{' ' * before}{middle}{' ' * after}{right}" if after > 0 else f"{left}{' ' * max(1, room)}{right}"


def _legend(panel: Panel, names: Sequence[str], words: Words, window: int) -> list[str]:
    lines = []
    for run, name in enumerate(names):
        own = [line for line in panel.lines if line.run == run]
        signs = dict.fromkeys(_sign(line) for line in own if line.kind in ("strong", "points"))
        if signs:
            lines.append(f"  {' '.join(signs):<3}  {name}")
    signs_of: dict[Kind, str] = {"thin": ".", "strong": "a", "points": "A"}
    meanings = panel.meanings(words, window)
    shown = [kind for kind in signs_of if kind in meanings and (kind != "thin" or len(names) == 1)]
    keys = [f"{signs_of[kind]} {meanings[kind]}" for kind in shown]
    keys += [f"- {level.label}" if level.near else level.label for level in panel.levels]
    return [*lines, *([f"  {' · '.join(keys)}"] if keys else [])]


def _sign(line: Line) -> str:
    """The letter of a run; after z comes a."""
    letters = string.ascii_uppercase if line.kind == "points" else string.ascii_lowercase
    return "." if line.kind == "thin" else letters[line.run % len(letters)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"
