"""Plain SVG: curves with axes, and heat maps. No library; text in whatever font the reader has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from torch import Tensor

INK, FAINT, PAPER = "#333333", "#dddddd", "#ffffff"
# Told apart by the colour-blind, too (Okabe and Ito), and by their dashes.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DASHES = ("", "6 3", "2 2", "8 3 2 3", "", "6 3", "2 2")
MOST_POINTS = 160

Points = Sequence[tuple[float, float]]


def curves(
    series: Mapping[str, Points], *, x: str, y: str, log: bool = False, top: float | None = None, marks: bool = False
) -> str:
    """A line for each series, named at the side.

    Args:
        series: name -> points (x, y), x rising; what is not finite is left out.
        x: what the horizontal axis says.
        y: what the vertical axis says.
        log: whether y goes up by factors.
        top: where the vertical axis ends; at the highest point if None.
        marks: whether each point has a dot.
    """
    shown = {name: _thinned(points) for name, points in series.items()}
    xs, ys = _ends([px for points in shown.values() for px, _ in points]), _heights(shown, log, top)
    left, upper, wide, high = 58, 14, 400, 230

    def place(px: float, py: float) -> tuple[float, float]:
        part = (_up(py, log) - ys[0]) / (ys[1] - ys[0])
        return left + wide * (px - xs[0]) / (xs[1] - xs[0]), upper + high * (1 - min(1.0, max(0.0, part)))

    lines = [_text(left + wide / 2, upper + high + 36, x, "middle"), _turned(14, upper + high / 2, y)]
    for tick in _ticks(*ys, log=log):
        _, at = place(xs[0], tick)
        lines += [_line(left, at, left + wide, at, FAINT), _text(left - 6, at + 4, _short(tick), "end")]
    for tick in _ticks(*xs):
        at, _ = place(tick, 0 if not log else 1)
        lines += [
            _line(at, upper + high, at, upper + high + 4, INK),
            _text(at, upper + high + 18, _short(tick), "middle"),
        ]
    lines += [_line(left, upper, left, upper + high, INK), _line(left, upper + high, left + wide, upper + high, INK)]
    for number, (name, points) in enumerate(shown.items()):
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
        placed = [place(px, py) for px, py in points]
        lines.append(_polyline(placed, colour, dash))
        if marks:
            lines += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="2.5" fill="{colour}"/>' for px, py in placed]
        at = upper + 10 + 18 * number
        lines += [
            _polyline([(left + wide + 14, at - 4), (left + wide + 38, at - 4)], colour, dash),
            _text(left + wide + 44, at, name, "start"),
        ]
    names = max(map(len, shown), default=0)
    return _svg(left + wide + 52 + 7 * names, upper + high + 46, lines)


def heat_maps(maps: Mapping[str, Tensor], *, x: str, y: str, cell: int = 14) -> str:
    """Matrices of numbers from 0 to 1 side by side, darker for more; rows go down.

    Args:
        maps: title -> matrix.
        x: what the columns are.
        y: what the rows are.
        cell: the side of a cell.
    """
    lines, left, lowest = [], 30, 0.0
    for title, matrix in maps.items():
        rows, columns = matrix.shape
        wide, high, upper = cell * columns, cell * rows, 26
        lines.append(_text(left, 16, title, "start"))
        for row, values in enumerate(matrix.tolist()):
            for column, value in enumerate(values):
                if value >= 0.02:
                    lines.append(
                        f'<rect x="{left + cell * column}" y="{upper + cell * row}" width="{cell}" height="{cell}" '
                        f'fill="{COLOURS[0]}" fill-opacity="{min(1.0, value):.2f}"/>'
                    )
        lines.append(
            f'<rect x="{left}" y="{upper}" width="{wide}" height="{high}" fill="none" stroke="{INK}" stroke-width="0.5"/>'
        )
        lines += [_text(left + wide / 2, upper + high + 18, x, "middle"), _turned(left - 10, upper + high / 2, y)]
        left, lowest = left + max(wide, 7 * len(title)) + 40, max(lowest, upper + high + 28)
    return _svg(left - 20, lowest, lines)


def _thinned(points: Points) -> Points:
    """Some of the points, the last one among them, each the mean of those since the one before."""
    finite = [point for point in points if math.isfinite(point[1])]
    size = max(1, math.ceil(len(finite) / MOST_POINTS))
    groups = [finite[start : start + size] for start in range(0, len(finite), size)]
    return [(group[-1][0], sum(py for _, py in group) / len(group)) for group in groups]


def _heights(shown: Mapping[str, Points], log: bool, top: float | None) -> tuple[float, float]:
    values = [_up(py, log) for points in shown.values() for _, py in points]
    low, high = _ends(values if log else [0.0, *values])
    return low, high if top is None else _up(top, log)


def _up(value: float, log: bool) -> float:
    return math.log10(max(value, 1e-30)) if log else value


def _ends(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if high > low else (low, low + 1)


def _ticks(low: float, high: float, *, log: bool = False) -> list[float]:
    """Round numbers between the ends; powers of ten on an axis of factors."""
    if log:
        step = max(1, round((high - low) / 6))
        return [10.0**power for power in range(math.ceil(low), math.floor(high) + 1, step)]
    size = 10 ** math.floor(math.log10((high - low) / 4))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor * 5 >= high - low)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _short(number: float) -> str:
    return f"{number:.3g}".replace("e-0", "e-").replace("e+0", "e")


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _polyline(points: Points, colour: str, dash: str) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    placed = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
    return f'<polyline points="{placed}" fill="none" stroke="{colour}" stroke-width="1.8"{dashed}/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _turned(x: float, y: float, text: str) -> str:
    return f'<text transform="translate({x:.1f} {y:.1f}) rotate(-90)" text-anchor="middle">{escape(text)}</text>'


def _svg(width: float, height: float, lines: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="12" fill="{INK}">'
    )
    paper = f'<rect width="100%" height="100%" fill="{PAPER}"/>'
    return "\n".join([head, paper, *lines, "</svg>"]) + "\n"
