"""A whole training in a run directory: updates, evaluations and checkpoints, as one stream of events."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import nn

from clearhead.formats.run import Run
from clearhead.messages import UserError, say
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.models.device import pick_dtype
from clearhead.training.batches import Batch, Ids, Windows, whole
from clearhead.training.checkpoint import restore_checkpoint, save_checkpoint
from clearhead.training.fit import Update, evaluate, fit
from clearhead.training.losses import next_token
from clearhead.training.optimizer import adamw, warmup_cosine
from clearhead.training.settings import TrainingSettings

EVALUATION_TOKENS = 16_384
"""How many tokens go through the model together in an evaluation; bounds its memory, not its result."""


@dataclass(frozen=True)
class Evaluated:
    """The validation text was scored after `step` updates."""

    step: int
    val_loss: float
    """Mean over all its tokens (nats per token)."""


@dataclass(frozen=True)
class Saved:
    """A checkpoint was written after `step` updates."""

    step: int


Event = Update | Evaluated | Saved


class Training:
    """A training that can be stopped between any two events and gone on with.

    Args:
        run: where it lives; its latest checkpoint, if any, is where it goes on.
        settings: how it goes.
        train: token ids of the training documents.
        validation: token ids of the validation documents.
        device: where the model runs.

    Attributes:
        step: how many updates the weights have had.
        saved_step: the step of the last checkpoint, None before the first.
        best: the lowest validation loss so far; val_loss: the last one, None before the first.
    """

    def __init__(
        self,
        run: Run,
        settings: TrainingSettings,
        train: Sequence[Ids],
        validation: Sequence[Ids],
        device: torch.device,
    ) -> None:
        assert isinstance(run.model, DecoderConfig)
        self.config = run.model
        self.run, self.settings, self.validation = run, settings, validation
        self.batches = Windows(train, run.model.context, settings.batch, settings.seed)
        self.model: Decoder = build(run.model, seed=settings.seed, device=device)
        self.optimizer = adamw(
            self.model, lr=settings.lr, weight_decay=settings.weight_decay, betas=(0.9, settings.beta2)
        )
        torch.manual_seed(settings.seed)
        checkpoints = run.checkpoints()
        self.step = checkpoints[-1].step if checkpoints else 0
        self.saved_step = self.step if checkpoints else None
        self.val_loss: float | None = None
        self._evaluated_step: int | None = None
        self.best = min((each.val_loss for each in checkpoints if each.val_loss is not None), default=float("inf"))
        if checkpoints:
            restore_checkpoint(checkpoints[-1], self.model, self.optimizer)

    def events(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Event]:
        """Train to the last step; an evaluation and a checkpoint follow the update that they belong to.

        Args:
            stop: asked when an update and all that follows it are done; True ends the training there.

        Raises:
            UserError: if the loss of an update is not a finite number; the checkpoints stay as they are.
        """
        settings = self.settings
        schedule = partial(
            warmup_cosine, lr=settings.lr, steps=settings.steps, warmup=settings.warmup, final=settings.final_lr
        )
        updates = fit(
            self.model,
            self.batches,
            next_token,
            optimizer=self.optimizer,
            schedule=schedule,
            steps=settings.steps,
            first=self.step,
            clip=settings.clip,
            autocast=self._autocast(),
        )
        for update in updates:
            self.step = update.step
            yield update
            if not math.isfinite(update.loss):
                raise UserError(say("training.not_finite", step=update.step, lr=f"{update.lr:.2g}"))
            yield from self._after(update.step)
            if stop():
                return

    def evaluate(self) -> float:
        """Mean loss over the whole validation text (nats per token)."""
        context = self.model.context
        batches = whole(self.validation, context, max(1, EVALUATION_TOKENS // context))
        return evaluate(self.model, batches, next_token, autocast=self._autocast())

    def save(self, val_loss: float | None = None) -> None:
        """Write a checkpoint of the present step."""
        save_checkpoint(self.run, self.model, self.optimizer, step=self.step, val_loss=val_loss)
        self.saved_step = self.step

    def save_if_new(self) -> None:
        """Write a checkpoint of the present step unless there is one."""
        if self.saved_step != self.step:
            self.save(self.val_loss if self._evaluated_step == self.step else None)

    def _after(self, step: int) -> Iterator[Event]:
        last = step == self.settings.steps
        val_loss, improved = None, False
        if last or step % self.settings.eval_every == 0:
            val_loss = self.evaluate()
            improved = val_loss < self.best
            self.best, self.val_loss, self._evaluated_step = min(self.best, val_loss), val_loss, step
            yield Evaluated(step, val_loss)
        if last or improved or step % self.settings.checkpoint_every == 0:
            self.save(val_loss)
            yield Saved(step)

    def _autocast(self) -> torch.dtype | None:
        return None if self.settings.dtype == "float32" else pick_dtype(self.settings.dtype)


def measured_speed(config: DecoderConfig, batch: int, device: torch.device, *, updates: int = 12) -> float:
    """Tokens per second of a real update of this model on this machine, from a few updates on random ids.

    The fastest update counts: the first ones allocate memory and choose kernels, and others may have been disturbed.
    The random state of the process is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        model = build(replace(config, dropout=0.0), seed=0, device=device)
        ids = torch.randint(config.vocab, (batch, config.context + 1))
        timed = _updates(model, Batch(ids[:, :-1], ids[:, 1:]), updates)
        return batch * config.context / min(update.seconds for update in timed)


def _updates(model: nn.Module, sample: Batch, count: int) -> list[Update]:
    return list(
        fit(model, lambda _: sample, next_token, optimizer=adamw(model, lr=1e-3), schedule=lambda _: 1e-3, steps=count)
    )
