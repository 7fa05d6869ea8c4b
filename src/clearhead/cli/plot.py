"""`clearhead plot`: the curves of one training or of several."""

from __future__ import annotations

import difflib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser, Namespace

from clearhead.cli.options import parse, parser
from clearhead.messages import UserError, say

if TYPE_CHECKING:
    from clearhead.cli.plot_panels import Plot
    from clearhead.training.curves import Curves

SUFFIXES = (".svg", ".png", ".html")


def options() -> ArgumentParser:
    """The flags of `clearhead plot`."""
    made = parser("plot")
    made.add_argument("runs", nargs="*", default=[], help="run directories; they may still be training")
    made.add_argument("--out", type=str, default=None, help="write a .svg, .png or .html file; shown here if not given")
    made.add_argument("--force", action="store_true", help="write over --out if it exists")
    made.add_argument(
        "--what",
        type=str,
        default="loss",
        help="columns of metrics.jsonl with commas between: loss, lr, grad_norm, tokens_per_second, val_loss ...",
    )
    made.add_argument(
        "--smooth", type=int, default=None, help="updates of the running mean (a fiftieth of them); 1 for none"
    )
    made.add_argument("--log", action="store_true", help="a logarithmic axis for the values")
    made.add_argument("--x", type=str, default="step", help="what they are laid over: step, tokens or seconds")
    return made


def run(arguments: Sequence[str]) -> int:
    """Show the curves, or write them to a file."""
    asked = parse(options(), arguments)
    if not asked.runs:
        raise UserError(say("plot.no_run"))
    if asked.smooth is not None and asked.smooth < 1:
        raise UserError(say("training.setting", name="smooth", value=asked.smooth, wanted="≥ 1"))
    if asked.out is not None:
        _must_be_writable(Path(asked.out), force=asked.force)
    plot = _plot(asked)
    made = _shown(plot) if asked.out is None else _written(plot, Path(asked.out))
    for note in _notes(plot):
        print(note, file=sys.stderr)
    print(made)
    return 0


def _plot(asked: Namespace) -> Plot:
    """What was asked for, held against what the runs have recorded."""
    from clearhead.cli.plot_panels import Plot, window_of  # noqa: PLC0415 - numpy comes after the flags are right
    from clearhead.training.curves import AXES, read_curves  # noqa: PLC0415

    if asked.x not in AXES:
        raise UserError(say("plot.unknown_axis", name=asked.x, known=", ".join(AXES)))
    runs = read_curves([Path(path) for path in asked.runs])
    columns = list(dict.fromkeys(name.strip() for name in asked.what.split(",")))
    known = list(dict.fromkeys(name for run in runs for name in run.columns))
    for name in columns:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, cutoff=0) or known
            raise UserError(say("plot.unknown_column", name=name, near=near[0], known=", ".join(known)))
    return Plot(runs, columns, asked.x, window_of(runs, asked.smooth), asked.log)


def _must_be_writable(path: Path, *, force: bool) -> None:
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(say("plot.suffix", path=path))
    if not path.parent.is_dir():
        raise UserError(say("plot.no_folder", path=path, folder=path.parent))
    if path.exists() and not force:
        raise UserError(say("plot.exists", path=path))


def _shown(plot: Plot) -> str:
    """Charts in plain characters, and a line a run."""
    from clearhead.cli.plot_text import chart  # noqa: PLC0415
    from clearhead.cli.plot_words import words  # noqa: PLC0415

    spoken, width = words(), shutil.get_terminal_size().columns
    charts = [
        chart(panel, plot.names, spoken, window=plot.window, width=width) for panel in plot.panels(spoken, plot.names)
    ]
    return "\n\n".join([*charts, "\n".join(_summary(run) for run in plot.runs)])


def _written(plot: Plot, path: Path) -> str:
    """Write the picture or the page, whole or not at all."""
    from clearhead.cli.plot_figure import png, svg  # noqa: PLC0415
    from clearhead.cli.plot_page import page  # noqa: PLC0415
    from clearhead.cli.plot_words import words  # noqa: PLC0415
    from clearhead.formats.atomic import new_file  # noqa: PLC0415

    match path.suffix.lower():
        case ".svg":
            data, spoken = svg(plot, words()).encode("utf-8"), True
        case ".html":
            data, spoken = page(plot, words()).encode("utf-8"), True
        case _:
            data, spoken = png(plot, words())
    with new_file(path) as file:
        file.write(data)
    if not spoken:
        print(say("plot.no_font"), file=sys.stderr)
    return say("plot.written", path=path)


def _summary(run: Curves) -> str:
    last, best = run.last("loss"), run.best()
    parts = [say("plot.updates", name=run.name, updates=f"{run.steps[-1]:,}")]
    parts += [] if last is None else [say("plot.last", column="loss", value=f"{last.value:.4g}")]
    parts += [] if best is None else [say("plot.best", value=f"{best.value:.4g}", step=f"{best.step:,}")]
    return " · ".join(parts)


def _notes(plot: Plot) -> list[str]:
    """What a picture of several runs would leave unsaid."""
    broken = [say("plot.broken", path=run.path, count=run.broken) for run in plot.runs if run.broken]
    missing = [(run.name, column) for run in plot.runs for column in plot.columns if column not in run.columns]
    return [*broken, *(say("plot.not_recorded", name=name, column=column) for name, column in missing)]
