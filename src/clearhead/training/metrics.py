"""The record of a training: one JSON line per update."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import TracebackType
from typing import Any

from clearhead.formats.atomic import clear_failure, write_text
from clearhead.formats.run import Run
from clearhead.training.fit import Update
from clearhead.training.run import Evaluated, Event, Saved


class MetricsFile:
    """Writes `metrics.jsonl`: `step loss lr grad_norm tokens_per_second`, and `val_loss` where it was evaluated.

    What else the evaluation measured stands beside the loss, under its name.

    A line is written when the next update comes or the file is closed, so that an evaluation finds the line of its
    update still open; all of them are on disk when a checkpoint is. Lines of updates that a resumed training does
    again are dropped first.

    Args:
        run: the run directory.
        step: how many updates the weights have had.

    Raises:
        UserError: here and from every method, if the system refuses to write (no space, no permission).
    """

    def __init__(self, run: Run, step: int) -> None:
        self._path = run.metrics
        self._line: dict[str, Any] | None = None
        with clear_failure(self._path):
            kept = [line for line in _complete_lines(self._path) if line["step"] <= step]
            write_text(self._path, "".join(_as_text(line) for line in kept))
            self._file = self._path.open("a", encoding="utf-8", newline="\n")

    def take(self, event: Event) -> None:
        """Record one event."""
        with clear_failure(self._path):
            self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, Update):
            self._flush()
            self._line = {
                "step": event.step,
                "loss": event.loss,
                "lr": event.lr,
                "grad_norm": event.grad_norm,
                "tokens_per_second": event.terms / event.seconds,
            }
        elif isinstance(event, Evaluated) and self._line is not None:
            self._line |= {"val_loss": event.val_loss, **event.measures}
        if isinstance(event, Evaluated | Saved):
            self._flush()
            self._file.flush()

    def __enter__(self) -> MetricsFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with clear_failure(self._path):
            self._flush()
            self._file.close()

    def _flush(self) -> None:
        if self._line is not None:
            self._write(self._line)
            self._line = None

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(_as_text(line))


def _as_text(line: dict[str, Any]) -> str:
    """One line of JSON, which has no NaN: what is not a finite number is null."""
    finite = {name: value if math.isfinite(value) else None for name, value in line.items() if value is not None}
    return json.dumps(finite, allow_nan=False) + "\n"


def _complete_lines(path: Path) -> list[dict[str, Any]]:
    """The lines that a killed process left whole."""
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            break
        if not isinstance(line, dict) or not isinstance(line.get("step"), int):
            break
        lines.append(line)
    return lines
