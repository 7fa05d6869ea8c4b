"""Everything that looks at a training while it runs: the line that moves, the record, the forecast, dashboards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial

import torch

from clearhead.cli.progress import Progress
from clearhead.models.config import StackConfig
from clearhead.training.ceiling import Ceiling, matmul_ceiling, update_flops
from clearhead.training.dashboard import Dashboard, Dashboards
from clearhead.training.environment import environment, recorded_environment, resume_warning
from clearhead.training.estimate import Estimate, Forecast, estimated
from clearhead.training.memory import available_memory, peak_memory, present_memory
from clearhead.training.metrics import MetricsFile
from clearhead.training.needed import Thrift, needed_memory
from clearhead.training.pair_data import PairData
from clearhead.training.pairs import PairBatch
from clearhead.training.plan import Plan
from clearhead.training.precision import precision_of
from clearhead.training.run import Evaluated, Training, measured_speed
from clearhead.training.tasks import EVALUATION_TOKENS
from clearhead.training.text_data import TextData

PROBED = 4
"""Updates that are timed where the steps were given, so that nothing else needed the speed."""


def warned(plan: Plan, device: torch.device) -> Iterator[str]:
    """What is to be known before a training goes on elsewhere than it was begun."""
    if plan.run.checkpoints():
        line = resume_warning(recorded_environment(plan.run), environment(device))
        if line is not None:
            yield line


def follow(
    training: Training, plan: Plan, estimate: Estimate, stopped: Sequence[int], boards: Sequence[Dashboard] = ()
) -> list[str]:
    """Hand every event to all who look, until the training ends or the user stops it.

    Args:
        training: goes on from where it is.
        plan: what it set out to do.
        estimate: what it will take.
        stopped: not empty once the user wants it to stop.
        boards: who else is told.

    Returns:
        What is to be said at the end: how far off the estimate was.
    """
    device = _device(training)
    ceiling, memory = _ceiling(training, plan), partial(peak_memory, device)
    forecast = Forecast(estimate, memory)
    settings = asdict(plan.settings)
    with (
        MetricsFile(plan.run, training.step, share=ceiling.share, memory=memory) as metrics,
        Progress(training, plan, ceiling.share) as progress,
        Dashboards(boards, settings, training.step, progress.write, share=ceiling.share, memory=memory) as dashboards,
    ):
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


def estimate_of(plan: Plan, device: torch.device) -> Estimate:
    """What the training will take; asked before there is a model, whose memory would count twice.

    Args:
        plan: what it sets out to do.
        device: where.
    """
    settings, config, present = plan.settings, plan.run.model, present_memory(device)
    assert isinstance(config, StackConfig)
    source, window = _lengths(plan, config)
    needed = needed_memory(
        config,
        settings.batch,
        window=window,
        source=source,
        evaluated=_evaluated(plan),
        dtype=settings.dtype,
        optimizer=settings.optimizer,
        thrift=Thrift(settings.micro_batch, settings.recompute, settings.logits_at_once),
        on_cpu=device.type == "cpu",
    )
    speed = plan.speed
    if speed is None:
        speed = measured_speed(config, plan.objective, device, settings=settings, lora=plan.run.lora, updates=PROBED)
    checkpoints = plan.run.checkpoints()
    return estimated(
        config,
        settings,
        plan.objective,
        tokens_per_second=speed,
        tokens_per_step=plan.data.tokens_a_step(config, settings.batch),
        done=checkpoints[-1].step if checkpoints else 0,
        needed=needed,
        present=present,
    )


def available(device: torch.device) -> int | None:
    """What the process may have in all: what it has and what is free."""
    present, free = present_memory(device), available_memory(device)
    return None if present is None or free is None else present + free


def _lengths(plan: Plan, config: StackConfig) -> tuple[int | None, int]:
    """How many tokens the longest source has, if there are sources, and the longest row that is predicted."""
    if isinstance(plan.data, PairData):
        return plan.data.longest
    return None, plan.data.window(config) if isinstance(plan.data, TextData) else plan.data.longest


def _evaluated(plan: Plan) -> int:
    """How many tokens go through the model together in an evaluation: of little data, little."""
    batches = plan.objective.validation()
    sides = ((batch.inputs, batch.source) if isinstance(batch, PairBatch) else (batch.inputs,) for batch in batches)
    return min(EVALUATION_TOKENS, max((side.numel() for both in sides for side in both), default=0))


def _device(training: Training) -> torch.device:
    return next(training.model.parameters()).device


def _ceiling(training: Training, plan: Plan) -> Ceiling:
    precision = precision_of(plan.settings.dtype)
    number_type = precision.autocast or precision.weights or torch.float32
    flops = update_flops(plan.run.model, training.objective, low_rank=training.frozen is not None)
    return Ceiling(matmul_ceiling(_device(training), number_type), flops)
