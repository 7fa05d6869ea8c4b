"""A whole training in a run directory: updates, evaluations and checkpoints, as one stream of events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from clearhead.formats.run import Run
from clearhead.formats.weights import write_tensors
from clearhead.models.adapt import adapt, frozen_tensors
from clearhead.models.build import build
from clearhead.models.config import ModelConfig
from clearhead.models.low_rank import LowRank
from clearhead.training.adapting import frozen_digest, must_have_begun, prepared
from clearhead.training.checkpoint import restore_checkpoint, save_checkpoint
from clearhead.training.fit import Update, evaluate, fit
from clearhead.training.objective import Objective
from clearhead.training.recipe import recipe
from clearhead.training.settings import PLAIN, TrainingSettings


@dataclass(frozen=True)
class Evaluated:
    """The validation data was scored after `step` updates."""

    step: int
    val_loss: float
    """Mean over all its tokens (nats per token)."""
    measures: Mapping[str, float] = field(default_factory=dict)
    """What else the objective measures, each the mean over all the validation data."""


@dataclass(frozen=True)
class Saved:
    """A checkpoint was written after `step` updates."""

    step: int


Event = Update | Evaluated | Saved


class Training:
    """A training that can be stopped between any two events and gone on with.

    Args:
        run: where it lives; its latest checkpoint, if any, is where it goes on. Its details say what it began with and whether
            changes of low rank alone are trained.
        settings: how it goes.
        objective: what it learns from.
        device: where the model runs.
        init: the weights that a run begins with whose details have `init`; not needed once it has a checkpoint.

    Attributes:
        step: how many updates the weights have had.
        saved_step: the step of the last checkpoint, None before the first.
        best: the lowest validation loss so far; evaluated: the last evaluation, None before the first.
        frozen: the digest of what is not trained, taken before anything was; None if all is trained.

    Raises:
        UserError: if the run was to begin with other weights, has no checkpoint yet and none are given, or a file is damaged.
    """

    def __init__(
        self,
        run: Run,
        settings: TrainingSettings,
        objective: Objective[Any],
        device: torch.device,
        *,
        init: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.run, self.settings, self.objective = run, settings, objective
        checkpoints = run.checkpoints()
        if init is None and not checkpoints:
            must_have_begun(run)
        self.model = prepared(run, None if checkpoints else init, seed=settings.seed).to(device)
        self.frozen = frozen_digest(self.model)
        self.recipe = recipe(self.model, settings, objective)
        torch.manual_seed(settings.seed)
        self.step = checkpoints[-1].step if checkpoints else 0
        self.saved_step = self.step if checkpoints else None
        self.evaluated: Evaluated | None = None
        self.best = min((each.val_loss for each in checkpoints if each.val_loss is not None), default=float("inf"))
        if checkpoints:
            restore_checkpoint(checkpoints[-1], self.model, self.recipe.stepper)

    def events(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Event]:
        """Train to the last step; an evaluation and a checkpoint follow the update that they belong to.

        A run that begins with other weights saves them first, as step 0: from then on it needs nobody else's files.

        Args:
            stop: asked when an update and all that follows it are done; True ends the training there.

        Raises:
            UserError: if an update is not finite and none is to be left out; the checkpoints stay as they are.
        """
        settings, made = self.settings, self.recipe
        if self.run.begins_with is not None and self.saved_step is None:
            self.save()
            yield Saved(0)
        updates = fit(
            self.model,
            self.objective.batches,
            made.loss,
            optimizer=made.stepper,
            schedule=made.schedule,
            steps=settings.steps,
            first=self.step,
            clip=settings.clip,
            autocast=made.autocast,
            micro_batch=settings.micro_batch,
            skip_nonfinite=settings.skip_nonfinite,
        )
        for update in updates:
            self.step = update.step
            yield update
            yield from self._after(update.step)
            if stop():
                return

    def evaluate(self) -> Evaluated:
        """Mean loss over all validation data, and what else the objective measures."""
        objective, mean = self.objective, partial(evaluate, self.model, autocast=self.recipe.autocast)
        measures = {name: mean(objective.validation(), measure) for name, measure in objective.measures.items()}
        return Evaluated(self.step, mean(objective.validation(), self.recipe.judged_by), measures)

    @property
    def val_loss(self) -> float | None:
        """The last validation loss, None before the first."""
        return None if self.evaluated is None else self.evaluated.val_loss

    def save(self, val_loss: float | None = None) -> None:
        """Write a checkpoint of the present step; what is frozen is written once, before the first."""
        if self.frozen is not None and self.saved_step is None:
            write_tensors(frozen_tensors(self.model), self.run.base)
        save_checkpoint(
            self.run, self.model, self.recipe.stepper, step=self.step, val_loss=val_loss, keep=self.settings.keep
        )
        self.saved_step = self.step

    def save_if_new(self) -> None:
        """Write a checkpoint of the present step unless there is one."""
        if self.saved_step != self.step:
            fresh = self.evaluated is not None and self.evaluated.step == self.step
            self.save(self.val_loss if fresh else None)

    def _after(self, step: int) -> Iterator[Event]:
        last = step == self.settings.steps
        val_loss, improved = None, False
        if last or step % self.settings.eval_every == 0:
            self.evaluated = self.evaluate()
            val_loss = self.evaluated.val_loss
            improved = val_loss < self.best
            self.best = min(self.best, val_loss)
            yield self.evaluated
        if last or improved or step % self.settings.checkpoint_every == 0:
            self.save(val_loss)
            yield Saved(step)


def measured_speed(
    config: ModelConfig,
    objective: Objective[Any],
    device: torch.device,
    *,
    settings: TrainingSettings = PLAIN,
    lora: LowRank | None = None,
    updates: int = 12,
) -> float:
    """Tokens per second of a real update of this model on this machine, from a few updates on its first batch.

    The fastest update counts: the first ones allocate memory and choose kernels, and others may have been disturbed.
    The random state of the process is left as it was.

    Args:
        config: of the model.
        objective: what it learns from.
        device: where it runs.
        settings: what an update is made of.
        lora: what alone is trained; everything if None.
        updates: how many are timed.
    """
    with torch.random.fork_rng(devices=[]):
        model = build(config, seed=0)
        if lora is not None:
            adapt(model, lora, seed=0)
        made = recipe(model.to(device), settings, objective)
        sample = objective.batches(0)
        timed = fit(
            model,
            lambda _: sample,
            made.loss,
            optimizer=made.stepper,
            schedule=lambda _: 1e-3,
            steps=updates,
            autocast=made.autocast,
            micro_batch=settings.micro_batch,
        )
        return max(update.terms / update.seconds for update in timed)
