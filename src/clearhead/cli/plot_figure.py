"""A plot as a picture, drawn by matplotlib: SVG whose words are text, PNG with the fonts of this machine."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from clearhead.cli.plot_fonts import FAMILY, drawable, installed
from clearhead.cli.plot_panels import Level, Line, Panel, Plot
from clearhead.cli.plot_words import Words, english_words
from clearhead.messages import UserError, say
from clearhead.text.columns import columns_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1")
"""Those of Okabe and Ito, which can be told apart without seeing red or green, but black and yellow, which one of the
grounds would swallow. Shapes of points differ, too, and a second round of colours is dashed."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ((0, (6, 3)), (0, (2, 2)), (0, (6, 2, 1, 2)), (0, (1, 3)))
INK = "#1c1e22"
"""Of axes and words; a page with a dark ground shows it light."""
WIDTH, HEIGHT, LOWER = 7.2, 4.0, 2.6
"""Of the axes in inches: the height of a panel alone, and of one among several."""
LEFT, ABOVE, BELOW, BETWEEN = 0.75, 0.45, 0.65, 0.7
COLUMN = 0.068
"""Width of a column of text in the legend, in inches."""
ENTRY = 0.195
"""Height of a line of the legend, in inches."""
LONGEST_NAME = 40
NOTHING = np.zeros(0)


class Entry(NamedTuple):
    """A line of the legend."""

    handle: Line2D
    label: str


def svg(plot: Plot, words: Words, *, ground: str | None = "white") -> str:
    """The picture as SVG: the words are text in whatever fonts the reader has.

    Args:
        plot: what is shown.
        words: the language of the labels.
        ground: its colour; None to let what is behind shine through.

    Raises:
        UserError: if matplotlib is not installed, or there is nothing to show.
    """
    _need_matplotlib()
    drawn = _saved(plot, plot.names, words, form="svg", ground=ground).decode("utf-8")
    # matplotlib measures with its own font, and names none that the reader may have beside it.
    style = f'<style type="text/css">text {{ font-family: {FAMILY} !important }}</style>'
    return re.sub(r"<svg\b[^>]*>", lambda found: f"{found[0]}\n {style}", drawn, count=1)


def png(plot: Plot, words: Words) -> tuple[bytes, bool]:
    """The picture as PNG, and whether its labels are the user's: signs that no font here has are not drawn as boxes.

    Without a font the words are English ones, and a run whose name cannot be drawn is called by its number.

    Args:
        plot: what is shown.
        words: the language of the labels.

    Raises:
        UserError: as `svg`.
    """
    _need_matplotlib()
    names = [cleaned(name) for name in plot.names]
    if drawable("".join([*words, *names])):
        return _saved(plot, names, words, form="png", ground="white"), True
    words = words if drawable("".join(words)) else english_words()
    names = [name if drawable(name) else f"run {place}" for place, name in enumerate(names, 1)]
    return _saved(plot, names, words, form="png", ground="white"), False


def cleaned(name: str) -> str:
    """A name without the signs that neither a picture nor a page can hold, its end if it is long."""
    printable = "".join(sign if sign.isprintable() else "·" for sign in name)
    return printable if len(printable) <= LONGEST_NAME else f"…{printable[1 - LONGEST_NAME :]}"


def _need_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401, PLC0415 - an extra that only pictures need
    except ImportError:
        raise UserError(say("plot.no_matplotlib")) from None


def _saved(plot: Plot, names: Sequence[str], words: Words, *, form: str, ground: str | None) -> bytes:
    from matplotlib import rc_context  # noqa: PLC0415

    file = io.BytesIO()
    looks = rc_context(
        {
            "font.family": installed(),
            "font.size": 10,
            "text.parse_math": False,
            "text.color": INK,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "axes.unicode_minus": False,
            # The same numbers give the same file.
            "svg.fonttype": "none",
            "svg.hashsalt": "clearhead",
        }
    )
    with warnings.catch_warnings(), looks:
        # An SVG may hold signs that no font here has: the reader's will. A PNG holds none.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = _figure(plot, [cleaned(name) for name in names], words)
        metadata = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
        figure.savefig(
            file, format=form, dpi=144, metadata=metadata, facecolor=ground or "none", transparent=ground is None
        )
    return file.getvalue()


def _figure(plot: Plot, names: Sequence[str], words: Words) -> Figure:
    """The panels above one another, each with its legend beside it, where it covers no curve."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - figures of its own, not pyplot's: no window, no state

    panels = plot.panels(words, names)
    legends: list[list[Entry]] = []
    for panel in panels:
        # What a legend above has said is not said again.
        said = {entry.label for legend in legends for entry in legend}
        entries = _legend(plot, panel, names, words, first=not legends)
        legends.append([entry for entry in entries if entry.label not in said])
    longest = max(columns_of(entry.label) for legend in legends for entry in legend)
    height = max(HEIGHT if len(panels) == 1 else LOWER, ENTRY * max(map(len, legends)))
    width, whole = LEFT + WIDTH + 0.75 + COLUMN * longest, ABOVE + BELOW + (height + BETWEEN) * len(panels) - BETWEEN
    figure = Figure(figsize=(width, whole))
    figure.subplots_adjust(LEFT / width, BELOW / whole, (LEFT + WIDTH) / width, 1 - ABOVE / whole, 0, BETWEEN / height)
    below = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, panel, legend in zip(below, panels, legends, strict=True):
        _draw(axes, panel, several=len(names) > 1)
        axes.set_title(panel.title, loc="left", fontsize=11)
        axes.tick_params(labelbottom=True)
        if legend:
            handles, labels = [entry.handle for entry in legend], [entry.label for entry in legend]
            axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.02), frameon=False, fontsize=9)
    below[-1].set_xlabel(panels[-1].x_label)
    return figure


def _draw(axes: Axes, panel: Panel, *, several: bool) -> None:
    for line in panel.lines:
        (drawn,) = axes.plot(line.x, line.y, **_look(line, several=several))
        drawn.set_gid(f"{panel.column}-{line.column}-{line.kind}-{line.run}")
    for place, level in enumerate(panel.levels):
        if level.near:
            axes.axhline(level.value, **_dashed(place, level)).set_gid(f"{panel.column}-level-{place}")
    _scale(axes, panel)
    axes.margins(x=0.02)
    axes.grid(visible=True, color=INK, alpha=0.12, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _dashes(run: int) -> Any:
    """A full line; when the colours are used up, a dashed one."""
    rounds = run // len(COLOURS)
    return "-" if rounds == 0 else DASHES[(rounds - 1) % len(DASHES)]


def _dashed(place: int, level: Level) -> dict[str, Any]:
    """How a level is drawn: in the colour of its run, if it is that of one."""
    colour = INK if level.run is None else COLOURS[level.run % len(COLOURS)]
    return {"color": colour, "alpha": 0.7, "linewidth": 1, "linestyle": DASHES[place % len(DASHES)]}


def _look(line: Line, *, several: bool) -> dict[str, Any]:
    """How a line is drawn: by its run and its kind."""
    colour = COLOURS[line.run % len(COLOURS)]
    marker = MARKERS[line.run % len(MARKERS)]
    match line.kind:
        case "thin":
            return {"color": colour, "linewidth": 0.8, "alpha": 0.2 if several else 0.4, "zorder": 2}
        case "strong":
            alone = {"marker": "."} if np.isfinite(line.y).sum() == 1 else {}
            return {"color": colour, "linewidth": 1.8, "linestyle": _dashes(line.run), "zorder": 3, **alone}
        case "points":
            faint = {"markersize": 5, "markeredgecolor": INK, "markeredgewidth": 0.5}
            return {"color": colour, "marker": marker, "linestyle": ":", "linewidth": 0.9, "zorder": 4, **faint}
    edge = {"markeredgecolor": INK, "markeredgewidth": 0.8}
    return {"color": colour, "marker": "*", "markersize": 13, "linestyle": "none", "zorder": 5, **edge}


def _scale(axes: Axes, panel: Panel) -> None:
    """Ticks at round numbers, written out."""
    from matplotlib import ticker  # noqa: PLC0415

    if panel.logarithmic:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        narrow = ticker.MaxNLocator(6, steps=[1, 2, 5, 10])
        wide = ticker.LogLocator(subs=(1.0, 2.0, 5.0) if high < 1e3 * low else (1.0,))
        axes.yaxis.set_major_locator(narrow if high < 10 * low else wide)
        axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: number(value)))
    axes.xaxis.set_major_locator(ticker.MaxNLocator(8, steps=[1, 2, 2.5, 5, 10], integer=True))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: number(value)))


def number(value: float) -> str:
    """A tick: 0.003, 2.5, 1,200, 45k, 1.5M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= (size if size > 1e3 else 1e4):
            return f"{value / size:.4g}{letter}"
    return f"{value:,.0f}" if abs(value) >= 1e3 else f"{value:.4g}"


def _legend(plot: Plot, panel: Panel, names: Sequence[str], words: Words, *, first: bool) -> list[Entry]:
    """The runs by their colours, then what thin, strong and dotted mean, then the levels."""
    from matplotlib.lines import Line2D  # noqa: PLC0415

    several, made = len(names) > 1, []
    kinds = {line.kind: line for line in reversed(panel.lines)}
    for place, (name, run) in enumerate(zip(names, plot.runs, strict=True)):
        best = run.best() if "best" in kinds else None
        label = name if best is None else f"{name}: {words.best_of(f'{best.value:.4g}', best.step)}"
        if first or best is not None:
            look = _look(Line("", place, "points", NOTHING, NOTHING), several=several)
            made.append(Entry(Line2D([], [], **look | {"linestyle": _dashes(place), "linewidth": 1.8}), label))
    meanings = panel.meanings(words, plot.window)
    for kind, meaning in meanings.items():
        look = _look(kinds[kind], several=several) | ({"color": INK} if several else {})
        made.append(Entry(Line2D([], [], **look), meaning))
    for place, level in enumerate(panel.levels):
        made.append(
            Entry(Line2D([], [], **_dashed(place, level) | ({} if level.near else {"linestyle": "none"})), level.label)
        )
    return made
