"""Run directories with lines of metrics that a test has made up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clearhead.formats.run import Run
from tests.training.toy import new_run

LOSSES = (5.5, 5.0, 4.25, 4.0, 3.0, 3.5, 2.75, 2.5, 2.625, 2.0)
VALIDATION = {3: 4.5, 6: 3.25, 10: 3.75}


def lines(losses: Sequence[float | None] = LOSSES, validation: dict[int, float] = VALIDATION) -> list[dict[str, Any]]:
    """A line an update, as a training writes it."""
    return [
        {
            "step": step,
            "loss": loss,
            "lr": 0.01 / step,
            "grad_norm": 1.0 + step % 3,
            "tokens_per_second": 100.0 * step,
            "tokens": 30 + step,
        }
        | ({"val_loss": validation[step]} if step in validation else {})
        for step, loss in enumerate(losses, 1)
    ]


def recorded(path: Path, content: Sequence[dict[str, Any]] | None = None) -> Run:
    """A run whose training has written lines; the ten of `lines` if none are given."""
    path.mkdir(parents=True, exist_ok=True)
    run = new_run(path)
    text = "".join(json.dumps(line) + "\n" for line in (lines() if content is None else content))
    run.metrics.write_text(text, encoding="utf-8")
    return run
