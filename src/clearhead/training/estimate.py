"""How long a training will take and what it needs: before it begins, after its first updates, and how far off that was."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clearhead.messages import say
from clearhead.models.config import ModelConfig
from clearhead.models.cost import parameters
from clearhead.training.ceiling import forward_flops, update_flops
from clearhead.training.fit import Update
from clearhead.training.needed import Needed
from clearhead.training.objective import Objective
from clearhead.training.run import Evaluated, Event, Saved
from clearhead.training.settings import TrainingSettings

LOOKED_AT = 20
"""After so many updates the estimate is corrected."""
SETTLED = LOOKED_AT // 4
"""So many of them do not count: they allocate memory and choose kernels."""
DISK = 300e6
"""Bytes per second of a checkpoint, until one was written."""


@dataclass(frozen=True)
class Estimate:
    """What is left to do of a training, and what it takes.

    Args:
        updates: of the weights.
        tokens: terms of the loss of all of them.
        update_seconds: of one update.
        evaluations: of the validation data.
        evaluation_seconds: of one.
        checkpoints: that are written.
        checkpoint_seconds: of one.
        memory: bytes of the whole process at its highest, on an accelerator those of its tensors; None if unknown.
    """

    updates: int
    tokens: int
    update_seconds: float
    evaluations: int
    evaluation_seconds: float
    checkpoints: int
    checkpoint_seconds: float
    memory: int | None = None

    @property
    def seconds(self) -> float:
        """Updates, evaluations and checkpoints; samples that are shown are not in it."""
        return (
            self.updates * self.update_seconds
            + self.evaluations * self.evaluation_seconds
            + self.checkpoints * self.checkpoint_seconds
        )

    def words(self) -> str:
        """In one line."""
        return say(
            "estimate.before",
            updates=f"{self.updates:,}",
            tokens=f"{self.tokens:,}",
            time=duration(self.seconds),
            evaluations=self.evaluations,
            memory=say("estimate.unknown") if self.memory is None else size(self.memory),
        )

    def warning(self, available: int | None) -> str | None:
        """The line that says that memory will not do; None if it will, or nobody knows.

        Args:
            available: bytes that this process may have in all: what it has already and what is free.
        """
        if self.memory is None or available is None or self.memory <= available:
            return None
        return say("estimate.too_much_memory", needed=size(self.memory), available=size(available))


def estimated(
    config: ModelConfig,
    settings: TrainingSettings,
    objective: Objective[Any],
    *,
    tokens_per_second: float,
    tokens_per_step: float,
    done: int = 0,
    needed: Needed | None = None,
    present: int | None = None,
) -> Estimate:
    """What a training takes, from a measured speed and its configuration.

    An update takes tokens_per_step / tokens_per_second. An evaluation is forward alone: its time is that of an update
    times (FLOPs of its forwards) / (FLOPs of the update), and again for each measure. A checkpoint has the weights and AdamW's means,
    12 bytes a parameter, at 300 MB/s; one is written in its rhythm and at each evaluation that finds the lowest loss, so each is
    counted.

    Args:
        config: of the model.
        settings: how it goes.
        objective: what it learns from.
        tokens_per_second: as `measured_speed` finds it.
        tokens_per_step: terms of the loss in an update, on average.
        done: updates that the weights have had.
        needed: the memory of an update.
        present: bytes that are held beside it, before there is a model.
    """
    updates = settings.steps - done
    each = tokens_per_step / tokens_per_second
    forwards = sum(forward_flops(config, batch) for batch in objective.validation()) * (1 + len(objective.measures))
    evaluated = set(range(settings.eval_every, settings.steps + 1, settings.eval_every)) | {settings.steps}
    saved = evaluated | set(range(settings.checkpoint_every, settings.steps + 1, settings.checkpoint_every))
    return Estimate(
        updates=updates,
        tokens=round(updates * tokens_per_step),
        update_seconds=each,
        evaluations=sum(step > done for step in evaluated),
        evaluation_seconds=each * forwards / update_flops(config, objective),
        checkpoints=sum(step > done for step in saved),
        checkpoint_seconds=12 * sum(parameters(config).values()) / DISK,
        memory=None if needed is None or present is None else present + needed.peak,
    )


def corrected(estimate: Estimate, updates: Sequence[Update]) -> Estimate:
    """The same with the time that real updates took: the mean of all but the first quarter.

    Evaluations were counted in updates and are so still.

    Args:
        estimate: before the training.
        updates: its first.
    """
    each = statistics.fmean(update.seconds for update in updates[len(updates) // 4 :])
    return replace(
        estimate,
        update_seconds=each,
        evaluation_seconds=estimate.evaluation_seconds * each / estimate.update_seconds,
    )


class Forecast:
    """Follows a training: corrects the estimate after 20 updates, and says at the end how far off both were.

    It takes events last, when the other consumers have had them, so that what they did counts.

    Args:
        estimate: from before the training.
        memory: tells how many bytes were held at most so far.
        clock: seconds.

    Attributes:
        estimate: from before the training.
        corrected: after 20 updates, None before; from then on with the time that evaluations and checkpoints took.
    """

    def __init__(
        self,
        estimate: Estimate,
        memory: Callable[[], int | None] = lambda: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.estimate, self._memory, self._clock = estimate, memory, clock
        self.corrected: Estimate | None = None
        self._updates = list[Update]()
        self._done = 0
        self._began = self._last = clock()

    def take(self, event: Event) -> str | None:
        """Follow one event.

        Returns:
            The line that corrects the estimate, after the twentieth update of a training that has more.
        """
        now, taken = self._clock(), self._clock() - self._last
        self._last = now
        if isinstance(event, Update):
            self._done += 1
            if self._done <= LOOKED_AT:
                self._updates.append(event)
            if self._done == LOOKED_AT < self.estimate.updates:
                self.corrected = corrected(self.estimate, self._updates)
                return say(
                    "estimate.corrected",
                    updates=LOOKED_AT,
                    time=duration(self.corrected.seconds),
                    off=percent(self.estimate.seconds, self.corrected.seconds),
                )
        elif self.corrected is not None and isinstance(event, Evaluated):
            self.corrected = replace(self.corrected, evaluation_seconds=taken)
        elif self.corrected is not None and isinstance(event, Saved):
            self.corrected = replace(self.corrected, checkpoint_seconds=taken)
        return None

    @property
    def elapsed(self) -> float:
        """Seconds from the beginning to the last event."""
        return self._last - self._began

    def closing(self) -> list[str]:
        """How far off the estimates were; nothing if the training was stopped before its end."""
        if self._done < self.estimate.updates or not self._done:
            return []
        real, first = self.elapsed, self.estimate
        lines = [
            say(
                "estimate.after",
                time=duration(real),
                planned=duration(first.seconds),
                off=percent(first.seconds, real),
            )
        ]
        memory = self._memory()
        if memory is not None and first.memory is not None:
            off = percent(first.memory, memory)
            lines.append(say("estimate.after_memory", memory=size(memory), planned=size(first.memory), off=off))
        return lines


def percent(planned: float, real: float) -> str:
    """How far `planned` is above (+) or below (-) `real`, in per cent of `real`."""
    return f"{planned / real - 1:+.0%}"


def duration(seconds: float) -> str:
    """In the units in which people say it, to two of them."""
    whole = round(seconds)
    if whole < 60:
        return say("estimate.seconds", seconds=f"{seconds:.1f}" if seconds < 10 else whole)
    if whole < 3600:
        return say("estimate.minutes", minutes=whole // 60, seconds=whole % 60)
    return say("estimate.hours", hours=whole // 3600, minutes=whole % 3600 // 60)


def size(count: int) -> str:
    """Bytes in MB or GB, of 10⁶ and 10⁹."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"
