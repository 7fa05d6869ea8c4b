"""What the user has not said of a training: rates, rhythms, and as many steps as fit the time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from clearhead.messages import UserError, say
from clearhead.models.low_rank import LowRank
from clearhead.training.asked import Material
from clearhead.training.run import measured_speed
from clearhead.training.settings import TrainingSettings
from clearhead.training.sizing import (
    CORPUS_FEWEST_STEPS,
    CORPUS_SECONDS,
    FEWEST_STEPS,
    MOST_EPOCHS,
    TEXT_SECONDS,
    pick_lr,
    pick_steps,
)
from clearhead.training.text_data import TextData

Given = Mapping[str, int | float | str | bool]
"""The training settings that the user has named, by their names in `TrainingSettings`."""

FEWEST_STEPS_TO_EVALUATION = 100
"""A short training is evaluated at its end alone: an evaluation reads the whole validation text."""


def chosen_settings(
    given: Given, material: Material, lora: LowRank | None, device: torch.device
) -> tuple[TrainingSettings, tuple[str, ...], float | None]:
    """The settings as given, the rest filled in; why so many steps; and the speed that was measured for that, if it was.

    Args:
        given: what the user has named.
        material: what is learnt from, and by what.
        lora: what alone is trained; everything if None.
        device: where; its speed decides how many steps fit.

    Raises:
        UserError: if a value is out of range.
    """
    chosen: dict[str, Any] = {
        "batch": material.batch,
        "lr": pick_lr(material.config.width, str(given.get("optimizer", "adamw"))),
        "final_lr": 0.1,
        "weight_decay": 0.1,
        "beta2": 0.99,
        "clip": 1.0,
        "seed": 0,
    } | dict(given)
    reasons: tuple[str, ...] = ()
    speed = material.speed
    if "steps" not in chosen and material.steps is not None:
        chosen["steps"] = material.steps
    if "steps" not in chosen:
        probe = TrainingSettings(**chosen, steps=1, warmup=0, eval_every=1, checkpoint_every=1)
        chosen["steps"], reason, speed = _picked_steps(material, probe, lora, device)
        reasons = (reason,)
    steps = chosen["steps"]
    rhythm = max(FEWEST_STEPS_TO_EVALUATION, -(-steps // 5)) if isinstance(steps, int) else 1
    warmup = min(100, steps // 10) if isinstance(steps, int) else 0
    chosen = {"warmup": warmup, "eval_every": rhythm} | chosen
    chosen = {"checkpoint_every": chosen["eval_every"]} | chosen
    settings = TrainingSettings(**chosen)
    if lora is not None and settings.dtype == "bfloat16-weights":
        # Frozen weights would be rounded, and are to stay as they are.
        raise UserError(say("training.lora_rounds"))
    return settings, reasons, speed


def _picked_steps(
    material: Material, probe: TrainingSettings, lora: LowRank | None, device: torch.device
) -> tuple[int, str, float]:
    """As many steps as fit the time on this machine, why, and the speed."""
    config, data = material.config, material.data
    built_in = isinstance(data, TextData) and data.texts.built_in
    seconds, fewest = (CORPUS_SECONDS, CORPUS_FEWEST_STEPS) if built_in else (TEXT_SECONDS, FEWEST_STEPS)
    objective = data.objective(config, batch=probe.batch, seed=0)
    speed = measured_speed(config, objective, device, settings=probe, lora=lora)
    per_step = data.tokens_a_step(config, probe.batch)
    steps = pick_steps(
        tokens_per_second=speed,
        seconds=seconds,
        tokens_per_step=per_step,
        train_tokens=data.tokens,
        fewest=fewest,
    )
    shown = f"{speed:,.0f}"
    if steps == fewest:
        needed = f"{steps * per_step / speed:.0f}"
        return steps, say("training.fewest_steps", steps=steps, speed=shown, device=device, seconds=needed), speed
    planned = f"{seconds:.0f}"
    reason = say("training.steps", steps=steps, speed=shown, device=device, epochs=MOST_EPOCHS, seconds=planned)
    return steps, reason, speed
