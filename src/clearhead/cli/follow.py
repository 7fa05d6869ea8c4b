"""Everything that looks at a training while it runs: the line that moves, the record, the forecast, dashboards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch

from clearhead.cli.progress import Progress
from clearhead.models.config import StackConfig
from clearhead.training.ceiling import Ceiling, matmul_ceiling, update_flops
from clearhead.training.dashboard import Dashboards
from clearhead.training.environment import environment, recorded_environment, resume_warning
from clearhead.training.estimate import Estimate, Forecast, estimated
from clearhead.training.memory import available_memory, peak_memory, present_memory
from clearhead.training.metrics import MetricsFile
from clearhead.training.needed import Needed, Thrift, needed_memory
from clearhead.training.plan import Plan
from clearhead.training.precision import precision_of
from clearhead.training.run import Evaluated, Training, measured_speed
from clearhead.training.tensorboard import TensorBoard

PROBED = 4
"""Updates that are timed where the steps were given, so that nothing else needed the speed."""


def warned(plan: Plan, training: Training) -> Iterator[str]:
    """What is to be known before a training goes on elsewhere than it was begun."""
    if training.saved_step:
        line = resume_warning(recorded_environment(plan.run), environment(_device(training)))
        if line is not None:
            yield line


def follow(training: Training, plan: Plan, stopped: Sequence[int], *, tensorboard: str | None) -> list[str]:
    """Hand every event to all who look, until the training ends or the user stops it.

    Args:
        training: goes on from where it is.
        plan: what it set out to do.
        stopped: not empty once the user wants it to stop.
        tensorboard: a folder for TensorBoard; None for none.

    Returns:
        What is to be said at the end: how far off the forecast was.
    """
    device = _device(training)
    ceiling, memory = _ceiling(training, plan), partial(peak_memory, device)
    forecast = Forecast(_estimate(training, plan), memory)
    boards = [] if tensorboard is None else [TensorBoard(Path(tensorboard))]
    settings = asdict(plan.settings)
    with (
        MetricsFile(plan.run, training.step, share=ceiling.share, memory=memory) as metrics,
        Progress(training, plan, ceiling.share) as progress,
        Dashboards(boards, settings, training.step, progress.write, share=ceiling.share, memory=memory) as dashboards,
    ):
        progress.write(forecast.estimate.words())
        warning = forecast.estimate.warning(_available(device))
        if warning is not None:
            progress.write(warning)
        for event in training.events(stop=lambda: bool(stopped)):
            metrics.take(event)
            dashboards.take(event)
            sample = progress.take(event)
            if isinstance(event, Evaluated) and sample is not None:
                metrics.sampled(sample)
                dashboards.write(event.step, {"sample": sample})
            correction = forecast.take(event)
            if correction is not None:
                progress.write(correction)
    return forecast.closing()


def _device(training: Training) -> torch.device:
    return next(training.model.parameters()).device


def _ceiling(training: Training, plan: Plan) -> Ceiling:
    precision = precision_of(plan.settings.dtype)
    number_type = precision.autocast or precision.weights or torch.float32
    flops = update_flops(plan.run.model, training.objective, low_rank=training.frozen is not None)
    return Ceiling(matmul_ceiling(_device(training), number_type), flops)


def _estimate(training: Training, plan: Plan) -> Estimate:
    settings, config, device = plan.settings, plan.run.model, _device(training)
    assert isinstance(config, StackConfig)
    speed = plan.speed
    if speed is None:
        speed = measured_speed(
            config, training.objective, device, settings=settings, lora=plan.run.lora, updates=PROBED
        )
    return estimated(
        config,
        settings,
        training.objective,
        tokens_per_second=speed,
        tokens_per_step=plan.data.tokens_a_step(config, settings.batch),
        done=training.step,
        needed=_needed(training, plan, config),
        present=present_memory(device),
    )


def _needed(training: Training, plan: Plan, config: StackConfig) -> Needed:
    settings = plan.settings
    trained = sum(each.numel() for each in training.model.parameters() if each.requires_grad)
    return needed_memory(
        config,
        settings.batch,
        window=training.objective.batches(training.step).inputs.shape[1],
        dtype=settings.dtype,
        optimizer=settings.optimizer,
        thrift=Thrift(settings.micro_batch, settings.recompute, settings.logits_at_once),
        trained=None if training.frozen is None else trained,
        on_cpu=_device(training).type == "cpu",
    )


def _available(device: torch.device) -> int | None:
    """What the process may have in all: what it has and what is free."""
    present, free = present_memory(device), available_memory(device)
    return None if present is None or free is None else present + free
