"""From settings to what an update is made of: the one place of a training that chooses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from clearhead.training.compiling import compiled
from clearhead.training.fit import Loss
from clearhead.training.losses import training_loss
from clearhead.training.objective import Objective
from clearhead.training.optimizer import optimizers, roles
from clearhead.training.precision import precision_of, stepper_of
from clearhead.training.recompute import recompute
from clearhead.training.schedules import schedule
from clearhead.training.settings import TrainingSettings
from clearhead.training.stepper import Stepper


@dataclass(frozen=True)
class Recipe:
    """What an update is made of."""

    stepper: Stepper
    """What moves the weights."""
    schedule: Callable[[int], float]
    """From the number of an update to its learning rate."""
    loss: Loss[Any]
    """What is made small."""
    judged_by: Loss[Any]
    """The loss that the validation data has, without what is for training alone."""
    autocast: torch.dtype | None
    """In what the forward runs where that is safe; None for the type of the weights."""


def recipe(model: nn.Module, settings: TrainingSettings, objective: Objective[Any]) -> Recipe:
    """What the settings say, for this model, which is changed in place: its numbers' type, and how its blocks run.

    Args:
        model: on the device where it will be trained; what is frozen is so already.
        settings: how the training goes.
        objective: what it learns from.

    Raises:
        UserError: if a choice does not suit the model or the machine.
    """
    role_of = roles(model)
    precision = precision_of(settings.dtype)
    stepper = stepper_of(
        model,
        precision,
        lambda named: optimizers(
            named.items(),
            role_of,
            kind=settings.optimizer,
            lr=settings.lr,
            weight_decay=settings.weight_decay,
            betas=(0.9, settings.beta2),
        ),
    )
    if settings.recompute:
        recompute(model)
    at_once = settings.logits_at_once
    loss = training_loss(objective.loss, label_smoothing=settings.label_smoothing, at_once=at_once)
    if settings.compile:
        loss = compiled(loss, next(model.parameters()).device, sizes_vary=objective.sizes_vary)
    rates = schedule(
        settings.schedule, lr=settings.lr, steps=settings.steps, warmup=settings.warmup, final=settings.final_lr
    )
    return Recipe(stepper, rates, loss, training_loss(objective.loss, at_once=at_once), precision.autocast)
