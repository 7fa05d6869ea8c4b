"""The course of a training in numbers: what its lines of metrics say of noise, jumps and what is still to come."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float64]

TAIL, SHORTEST_TAIL = 0.05, 10
"""The end of a training: this part of its updates, and so many at least. One update's loss is mostly its batch."""
BEFORE = 20
"""A loss is compared with so many before it: enough for a median, too few for the loss to fall much in them."""
DEVIATIONS = 8.0
"""How many deviations make a jump: even losses with long tails stay below that."""
NORMAL = 1.4826
"""Standard deviations of a normal distribution in one median absolute deviation."""


@dataclass(frozen=True)
class Course:
    """The updates of a training in their order."""

    steps: Row
    losses: Row
    """Of each update's batch; NaN where it was no finite number."""
    norms: Row
    """Of each gradient before clipping; NaN likewise."""
    rates: Row
    """The learning rates."""
    evaluations: Sequence[tuple[int, float]]
    """(step, validation loss), where it was a finite number."""

    @property
    def lost(self) -> int:
        """How many updates had a loss or a gradient that was no finite number."""
        return int((np.isnan(self.losses) | np.isnan(self.norms)).sum())

    @property
    def lowest(self) -> tuple[int, float] | None:
        """The best evaluation, the first of equals."""
        return min(self.evaluations, key=lambda each: each[1], default=None)

    @property
    def highest_rate(self) -> float:
        """The highest learning rate; NaN if none is known."""
        known = self.rates[~np.isnan(self.rates)]
        return float(known.max()) if known.size else math.nan

    @property
    def smooth(self) -> Row:
        """Means of so many losses in a row as the tail has, each as of its last update; one mean if there are fewer."""
        finite = self.losses[~np.isnan(self.losses)]
        if not finite.size:
            return finite
        size = min(finite.size, max(SHORTEST_TAIL, round(TAIL * finite.size)))
        sums = np.concatenate([[0.0], np.cumsum(finite)])
        return np.asarray((sums[size:] - sums[:-size]) / size)

    @property
    def tail(self) -> float:
        """The mean loss of the last updates; NaN if there are none."""
        smooth = self.smooth
        return float(smooth[-1]) if smooth.size else math.nan

    def until(self, step: int) -> Course:
        """The course as it was after `step` updates."""
        seen = self.steps <= step
        evaluations = [each for each in self.evaluations if each[0] <= step]
        return Course(self.steps[seen], self.losses[seen], self.norms[seen], self.rates[seen], evaluations)

    def jumps(self, least: float) -> list[int]:
        """The steps at which the loss leapt up, those in a row as one.

        A jump is a loss that is above the median m of the `BEFORE` losses before it by more than `DEVIATIONS` times their
        median absolute deviation (scaled as for a normal distribution), and by more than `least`.
        """
        known = ~np.isnan(self.losses)
        losses, steps = self.losses[known], self.steps[known]
        if losses.size <= BEFORE:
            return []
        before = np.lib.stride_tricks.sliding_window_view(losses, BEFORE)[:-1]
        median = np.median(before, axis=1)
        deviation = NORMAL * np.median(np.abs(before - median[:, None]), axis=1)
        high = losses[BEFORE:] - median > np.maximum(DEVIATIONS * deviation, least)
        first = high & ~np.concatenate([[False], high[:-1]])
        return [int(step) for step in steps[BEFORE:][first]]

    def gain_of_doubling(self) -> tuple[float, float]:
        """How much lower the loss would be after twice the updates, and the standard error of that.

        Over the last half of the updates the loss is fitted by a - k ln(step), least squares; k ln 2 is what the next
        doubling brings if it goes on so. A rough number: losses flatten, but a learning rate that falls later gives more.
        """
        half = (self.steps > self.steps[-1] / 2) & ~np.isnan(self.losses) if self.steps.size else np.zeros(0, bool)
        if half.sum() < 3:
            return 0.0, math.inf
        x, y = np.log(self.steps[half]), self.losses[half]
        x = x - x.mean()
        slope = float((x * y).sum() / (x * x).sum())
        rest = y - y.mean() - slope * x
        error = math.sqrt(float((rest * rest).sum()) / (len(x) - 2) / float((x * x).sum()))
        return -slope * math.log(2), error * math.log(2)


def course_of(lines: Iterable[Mapping[str, Any]]) -> Course:
    """The course that lines of `metrics.jsonl` tell: `step`, and where they are there `loss`, `grad_norm`, `lr`, `val_loss`.

    A number that is missing, null or not finite is no number.
    """
    kept = [line for line in lines if isinstance(line.get("step"), int)]
    steps, losses, norms, rates = (
        np.array([_number(line.get(name)) for line in kept]) for name in ("step", "loss", "grad_norm", "lr")
    )
    scored = [(int(line["step"]), _number(line.get("val_loss"))) for line in kept]
    return Course(steps, losses, norms, rates, [each for each in scored if not math.isnan(each[1])])


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else math.nan
