"""The record of a training: one JSON line per update."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from clearhead.formats.atomic import clear_failure, write_text
from clearhead.formats.run import Run
from clearhead.training.fit import Update
from clearhead.training.record import read_record
from clearhead.training.run import Evaluated, Event


class MetricsFile:
    """Writes `metrics.jsonl`: a line an update, with what an evaluation adds to it.

    `step loss lr grad_norm tokens tokens_per_second`, then `ceiling_share` and `memory` where they are known, `skipped` where the
    weights stayed as they were. Where it was evaluated also `val_loss`, what else the evaluation measured under its name, and the
    `sample` that was written then.

    A line goes to the system at once, and is written anew, in its place, when something is added: so a process that is killed,
    also while it writes a checkpoint, has the lines of all its updates on disk. Lines of updates that a resumed training does
    again are dropped first.

    Args:
        run: the run directory.
        step: how many updates the weights have had.
        share: from an update to its part of what the machine can do at best, as `Ceiling.share`; left out if None.
        memory: tells how many bytes were held at most so far, as `peak_memory`; left out if None, or where it tells None.

    Raises:
        UserError: here and from every method, if the system refuses to write (no space, no permission).
    """

    def __init__(
        self,
        run: Run,
        step: int,
        *,
        share: Callable[[Update], float] | None = None,
        memory: Callable[[], int | None] | None = None,
    ) -> None:
        self._path, self._share, self._memory = run.metrics, share, memory
        self._line: dict[str, Any] = {}
        with clear_failure(self._path):
            kept = [line for line in read_record(self._path) if line["step"] <= step]
            write_text(self._path, "".join(map(_as_text, kept)))
            self._file = self._path.open("r+b")
            # Where the line of the last update begins.
            self._place = self._file.seek(0, 2)

    def take(self, event: Event) -> None:
        """Record one event."""
        if isinstance(event, Update):
            self._next(self._of(event))
        elif isinstance(event, Evaluated):
            self._add({"val_loss": event.val_loss, **event.measures})

    def sampled(self, text: str) -> None:
        """Record what the model wrote at the last evaluation."""
        self._add({"sample": text})

    def __enter__(self) -> MetricsFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with clear_failure(self._path):
            self._file.close()

    def _of(self, update: Update) -> dict[str, Any]:
        memory = None if self._memory is None else self._memory()
        return {
            "step": update.step,
            "loss": update.loss,
            "lr": update.lr,
            "grad_norm": update.grad_norm,
            "tokens": update.terms,
            "tokens_per_second": update.terms / update.seconds,
            **({} if self._share is None else {"ceiling_share": self._share(update)}),
            **({} if memory is None else {"memory": memory}),
            **({"skipped": True} if update.skipped else {}),
        }

    def _next(self, line: dict[str, Any]) -> None:
        self._place, self._line = self._file.tell(), line
        self._write()

    def _add(self, more: Mapping[str, Any]) -> None:
        # An evaluation before the first update belongs to no line.
        if self._line:
            self._line |= more
            self._write()

    def _write(self) -> None:
        with clear_failure(self._path):
            self._file.seek(self._place)
            self._file.write(_as_text(self._line).encode("utf-8"))
            self._file.truncate()
            self._file.flush()


@dataclass(frozen=True)
class Line:
    """A line of `metrics.jsonl`; None where a run does not say, or where what it had was no finite number."""

    step: int
    """How many updates the weights had had."""
    loss: float | None = None
    """Mean loss of the batch, before the update."""
    lr: float | None = None
    """The learning rate."""
    grad_norm: float | None = None
    """Before clipping."""
    tokens: int | None = None
    """How many terms the loss had."""
    tokens_per_second: float | None = None
    """Of them."""
    ceiling_share: float | None = None
    """The update's arithmetic over what the machine can do at best."""
    memory: int | None = None
    """The most bytes held so far."""
    skipped: bool = False
    """Whether the weights stayed as they were."""
    val_loss: float | None = None
    """Mean loss over all validation data, where it was evaluated."""
    sample: str | None = None
    """What the model wrote then."""
    measures: Mapping[str, float | None] = field(default_factory=dict)
    """What else the evaluation measured."""


def read_metrics(path: Path) -> list[Line]:
    """What a training has recorded, also while it runs, and by versions that recorded less.

    Args:
        path: the `metrics.jsonl`. Lines that are not whole are passed over, as a killed process may leave the last; there are none if there
            is no file.
    """
    return [_line(line) for line in read_record(path)]


def _line(record: Mapping[str, Any]) -> Line:
    number = {name: value for name, value in record.items() if _is_number(value)}
    named = {
        name: number.get(name)
        for name in ("loss", "lr", "grad_norm", "tokens_per_second", "ceiling_share", "val_loss", "tokens", "memory")
    }
    text = record.get("sample")
    others = set(record) - set(named) - {"step", "skipped", "sample"}
    return Line(
        step=record["step"],
        **named,
        skipped=record.get("skipped") is True,
        sample=text if isinstance(text, str) else None,
        measures={name: number.get(name) for name in record if name in others},
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


BREAKS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
"""What some readers of lines take for the end of one; JSON itself escapes the others."""


def _as_text(line: Mapping[str, Any]) -> str:
    """One line of JSON, which has no NaN: what is not a finite number is null."""
    finite = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in line.items()
    }
    return json.dumps(finite, allow_nan=False, ensure_ascii=False).translate(BREAKS) + "\n"
