"""What a training shows while it runs: how far it is, evaluations, samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from clearhead.cli.bar import bar_of
from clearhead.cli.samples import sampled
from clearhead.messages import say
from clearhead.training.asked import Data
from clearhead.training.data_choice import Told
from clearhead.training.fit import Update
from clearhead.training.plan import Plan
from clearhead.training.run import Evaluated, Event, Training
from clearhead.training.tasks import HiddenTokens
from clearhead.training.text_data import TextData

KEPT = 0.9
"""How much of the smoothed loss and speed each update keeps: about the last ten count."""


class Progress:
    """Shows events as they come: loss, tokens/s and time left on a line; validation losses and samples above it.

    Loss and speed are smoothed, m ← 0.9 m + 0.1 x, and divided by 1 - 0.9^n, so that the first ones count in full.

    Args:
        training: the training shown.
        plan: what it set out to do.
        share: from an update to its part of what the machine can do at best; not shown if None.
    """

    def __init__(self, training: Training, plan: Plan, share: Callable[[Update], float | None] | None = None) -> None:
        self._training, self._plan, self._share = training, plan, share
        self._loss, self._speed = Smoothed(), Smoothed()
        self._bar = bar_of(say("cli.train.step"), plan.settings.steps, done=training.step)

    def take(self, event: Event) -> str | None:
        """Show one event.

        Returns:
            The sample that an evaluation shows; None with other events, and where the model makes no numbers.
        """
        if isinstance(event, Update):
            self._bar.move(1, self._note(event))
            if event.step % self._plan.settings.eval_every == 0 or event.step == self._plan.settings.steps:
                # The whole validation text is read now, which may take seconds.
                self._bar.busy(say("cli.train.evaluating"))
        elif isinstance(event, Evaluated):
            self._bar.write(_evaluated(event, self._plan.data))
            # A model whose training went wrong writes nothing.
            text = sampled(self._training, self._plan) if math.isfinite(event.val_loss) else None
            if text is not None:
                self._bar.write(_indented(text))
            self._bar.busy(None)
            return text
        return None

    def write(self, text: str) -> None:
        """Print lines that stay, without harm to the line that moves."""
        self._bar.write(text)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def _note(self, update: Update) -> str:
        loss, speed = self._loss.take(update.loss), self._speed.take(update.terms / update.seconds)
        note = say("cli.train.postfix", loss=f"{loss:.3f}", speed=f"{speed:,.0f}")
        share = None if self._share is None else self._share(update)
        return note if share is None else note + say("cli.train.ceiling", share=f"{share:.0%}")


class Smoothed:
    """The exponential mean of numbers as they come; those that are not finite are left out."""

    def __init__(self) -> None:
        self._sum = self._weight = 0.0

    def take(self, value: float) -> float:
        """The mean with this number; NaN before the first that is finite."""
        if math.isfinite(value):
            self._sum = KEPT * self._sum + (1 - KEPT) * value
            self._weight = KEPT * self._weight + (1 - KEPT)
        return self._sum / self._weight if self._weight else math.nan


@contextmanager
def reading_bar(what: str, size: int) -> Iterator[Told]:
    """A bar for what takes longer than two seconds: bytes of files."""
    with bar_of(what, size, size=True, delay=2, leave=False) as bar:
        yield bar.move


def _evaluated(event: Evaluated, data: Data) -> str:
    loss = f"{event.val_loss:.4f}"
    if isinstance(data, TextData) and isinstance(data.task, HiddenTokens):
        return say("cli.train.evaluated_hidden", step=event.step, loss=loss)
    for share in event.measures.values():
        return say("cli.train.evaluated_pairs", step=event.step, loss=loss, share=f"{share:.2%}")
    return say("cli.train.evaluated", step=event.step, loss=loss)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.strip().splitlines())
