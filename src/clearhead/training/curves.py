"""What trainings recorded, read back as curves: also while they run, and what a killed one left half written.

Imports without torch: looking at numbers need not wait for it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clearhead.formats.run import Run, read_run
from clearhead.messages import UserError, say
from clearhead.training.record import parsed

__all__ = ["AXES", "Curves", "Point", "read_curves", "running_mean"]

AXES = ("step", "tokens", "seconds")
"""What a curve can be laid over: updates, tokens learnt from, seconds that the updates took."""

Row = NDArray[np.float64]

MOST_STEPS = 2**53
"""Steps below it are whole numbers as floats, too."""
LARGEST = sys.float_info.max


@dataclass(frozen=True)
class Point:
    """One number of a curve."""

    step: int
    value: float


@dataclass(frozen=True)
class Curves:
    """The numbers of one training, a place an update."""

    name: str
    """The end of its path, as long as it takes to tell it from the others."""
    path: Path
    steps: tuple[int, ...]
    """How many updates the weights had had; they rise."""
    columns: Mapping[str, Row]
    """Name -> a number an update, NaN where none was recorded or it was not finite."""
    levels: Mapping[str, float]
    """What a loss can be compared with (nats): `uniform` is ln V, the others are those that the run recorded."""
    broken: int
    """Lines that cannot be read, not counting a last one that is still being written."""

    def along(self, axis: str) -> Row:
        """Where each update lies on one of `AXES`.

        Args:
            axis: `step`; `tokens`, the sum of all `tokens` so far; `seconds`, the sum of tokens / tokens_per_second.

        Raises:
            UserError: if the run does not record how many tokens an update has.
        """
        if axis == "step":
            return np.array(self.steps, dtype=np.float64)
        if "tokens" not in self.columns or not np.isfinite(self.columns["tokens"]).all():
            raise UserError(say("plot.no_tokens", path=self.path, axis=axis))
        tokens = self.columns["tokens"]
        if axis == "tokens":
            return np.cumsum(tokens)
        return np.cumsum(np.nan_to_num(tokens / self.columns["tokens_per_second"], nan=0.0, posinf=0.0))

    def best(self) -> Point | None:
        """The lowest validation loss, the first of equals; None if none was recorded."""
        losses = self.columns.get("val_loss")
        if losses is None or not np.isfinite(losses).any():
            return None
        place = int(np.nanargmin(losses))
        return Point(self.steps[place], float(losses[place]))

    def last(self, column: str) -> Point | None:
        """The latest number of a column; None if it has none."""
        row = self.columns.get(column)
        places = [] if row is None else np.flatnonzero(np.isfinite(row)).tolist()
        return None if row is None or not places else Point(self.steps[places[-1]], float(row[places[-1]]))


def read_curves(paths: Sequence[Path]) -> list[Curves]:
    """The curves of the runs at `paths`, each run once, named so that they can be told apart.

    Args:
        paths: run directories.

    Raises:
        UserError: if one is no run, or has recorded no update that can be read.
    """
    different = list({path.resolve(): path for path in paths}.values())
    return [_read(path, name) for path, name in zip(different, _names(different), strict=True)]


def running_mean(values: Row, window: int) -> Row:
    """m_i = mean of the finite among v_(i-window+1) ... v_i; NaN where there is none.

    Args:
        values: (N).
        window: how many are taken together, at least 1.
    """
    finite = np.isfinite(values)
    made = np.full(len(values), np.nan)
    for place in range(len(values)):
        chosen = slice(max(0, place - window + 1), place + 1)
        known = values[chosen][finite[chosen]]
        if known.size:
            made[place] = known.mean()
    return made


def _read(path: Path, name: str) -> Curves:
    run = read_run(path)
    lines, broken = _lines(_content(run))
    if not lines:
        raise UserError(say("plot.no_lines", path=run.metrics, broken=broken))
    names = dict.fromkeys(key for line in lines for key, value in line.items() if _is_number(value))
    columns = {key: np.array([_number(line.get(key)) for line in lines]) for key in names if key != "step"}
    return Curves(name, path, tuple(line["step"] for line in lines), columns, _levels(run), broken)


def _content(run: Run) -> bytes:
    """The file as it is at one moment: a training that goes on meanwhile writes behind what was read, or a new file."""
    try:
        return run.metrics.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UserError(say("plot.cannot_read", path=run.metrics, reason=error.strerror or error)) from error


def _lines(content: bytes) -> tuple[list[dict[str, Any]], int]:
    """The lines that can be read, their steps rising, and how many cannot."""
    kept: list[dict[str, Any]] = []
    broken = 0
    *whole, open_end = content.split(b"\n")
    # The end without its line break is still being written, or was when its process was killed: no fault if it is half.
    for line in [*map(_counted, parsed(whole)), *filter(None, map(_counted, parsed([open_end])))]:
        if line is None:
            broken += 1
            continue
        # A training that goes on from an earlier checkpoint does updates again: what it did last counts.
        while kept and kept[-1]["step"] >= line["step"]:
            kept.pop()
        kept.append(line)
    return kept, broken


def _counted(line: dict[str, Any] | None) -> dict[str, Any] | None:
    """The line if its step is one that a training can have."""
    return line if line is not None and 0 <= line["step"] < MOST_STEPS else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> float:
    """NaN for what is no finite number; JSON can hold integers that no float can."""
    if not _is_number(value) or not -LARGEST <= value <= LARGEST:
        return math.nan
    return float(value)


def _levels(run: Run) -> dict[str, float]:
    recorded = run.details.get("levels")
    others = recorded if isinstance(recorded, dict) else {}
    known = {str(name): _number(value) for name, value in others.items()}
    vocab = getattr(run.model, "vocab", None)
    uniform = {"uniform": math.log(vocab)} if isinstance(vocab, int) and vocab > 0 else {}
    return {name: value for name, value in (uniform | known).items() if math.isfinite(value)}


def _names(paths: Sequence[Path]) -> list[str]:
    """The shortest ends of different paths that differ, each path by itself."""
    parts = [path.resolve().parts for path in paths]
    names = []
    for own in parts:
        count = 1
        while count < len(own) and sum(other[-count:] == own[-count:] for other in parts) > 1:
            count += 1
        names.append(Path(*own[-count:]).as_posix())
    return names
