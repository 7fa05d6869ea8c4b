"""Other people's dashboards: a protocol of three methods, and who feeds them the events of a training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

from clearhead.messages import say
from clearhead.training.fit import Update
from clearhead.training.run import Evaluated, Event

REFUSALS = (OSError, RuntimeError, ValueError)
"""What a dashboard may raise: it is told in a line and left out, and the training goes on.

Anything else (a TypeError, a KeyError) is a mistake in the dashboard's own code, which no training should hide.
"""


class Dashboard(Protocol):
    """Something that shows trainings: a service, a file, a window.

    Any object with these methods is one. A library's own errors become one of `REFUSALS`; for Weights & Biases:

        class WandB:
            def start(self, settings, step):
                self.run = wandb.init(project="mine", config=dict(settings))

            def log(self, step, values, texts):
                try:
                    self.run.log({**values, **texts}, step=step)
                except wandb.Error as error:
                    raise RuntimeError(str(error)) from error

            def finish(self):
                self.run.finish()

    and for MLflow `mlflow.start_run()` and `mlflow.log_params(settings)`, then `mlflow.log_metrics(values, step=step)` and
    `mlflow.log_text(text, f"{name}-{step}.txt")`, then `mlflow.end_run()`.
    """

    def start(self, settings: Mapping[str, Any], step: int) -> None:
        """A training begins, or goes on.

        Args:
            settings: how it goes, by name; plain values.
            step: how many updates its weights have had. What was shown of later ones is done again.

        Raises:
            OSError, RuntimeError, ValueError: if it cannot be shown.
        """
        ...

    def log(self, step: int, values: Mapping[str, float], texts: Mapping[str, str]) -> None:
        """Something was measured or written after `step` updates; there may be several calls a step.

        Args:
            step: how many updates the weights have had; it never falls.
            values: numbers under the names of metrics.jsonl; one that is not finite comes as it is.
            texts: what the model wrote, by name.

        Raises:
            OSError, RuntimeError, ValueError: if it cannot be shown.
        """
        ...

    def finish(self) -> None:
        """The training ends: at its last step, stopped, or by an error.

        Raises:
            OSError, RuntimeError, ValueError: if what was logged cannot be kept.
        """
        ...


class Dashboards:
    """Feeds the events of a training to dashboards, from the `with` on.

    A dashboard that raises one of `REFUSALS` is told in one line and hears no more; the training does not notice.

    Args:
        dashboards: who is fed.
        settings: how the training goes, by name.
        step: how many updates the weights have had.
        tell: where a dashboard's refusal goes, one line.
        share: from an update to its part of what the machine can do at best, as in `MetricsFile`; left out if None.
        memory: tells how many bytes were held at most so far; left out if None, or where it tells None.
    """

    def __init__(
        self,
        dashboards: Sequence[Dashboard],
        settings: Mapping[str, Any],
        step: int,
        tell: Callable[[str], None],
        *,
        share: Callable[[Update], float] | None = None,
        memory: Callable[[], int | None] | None = None,
    ) -> None:
        self._left = list(dashboards)
        self._settings, self._step, self._tell = dict(settings), step, tell
        self._share, self._memory = share, memory

    def take(self, event: Event) -> None:
        """Show one event; a checkpoint has no numbers."""
        values = values_of(event)
        if isinstance(event, Update) and self._share is not None:
            values["ceiling_share"] = self._share(event)
        if isinstance(event, Update) and self._memory is not None and (held := self._memory()) is not None:
            values["memory"] = held
        if values:
            self._each(lambda dashboard: dashboard.log(event.step, values, {}))

    def write(self, step: int, texts: Mapping[str, str]) -> None:
        """Show what the model wrote after `step` updates, by name."""
        self._each(lambda dashboard: dashboard.log(step, {}, texts))

    def __enter__(self) -> Dashboards:
        self._each(lambda dashboard: dashboard.start(self._settings, self._step))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._each(lambda dashboard: dashboard.finish())

    def _each(self, act: Callable[[Dashboard], None]) -> None:
        for dashboard in tuple(self._left):
            try:
                act(dashboard)
            except REFUSALS as error:
                self._left.remove(dashboard)
                reason = " ".join(str(error).split()) or type(error).__name__
                self._tell(say("plot.dashboard_left_out", name=type(dashboard).__name__, reason=reason))


def values_of(event: Event) -> dict[str, float]:
    """The numbers of an event under the names that they have in metrics.jsonl; none for a checkpoint."""
    if isinstance(event, Update):
        return {
            "loss": event.loss,
            "lr": event.lr,
            "grad_norm": event.grad_norm,
            "tokens": event.terms,
            "tokens_per_second": event.terms / event.seconds,
        }
    return {"val_loss": event.val_loss, **event.measures} if isinstance(event, Evaluated) else {}
