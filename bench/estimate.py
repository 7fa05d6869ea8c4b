"""Estimated and real time and memory of a training, for three sizes, each in a process of its own.

    python -m bench.estimate [--threads 1] [--seconds 20]

Ids are random: neither time nor memory depends on what they are. The estimate is made as `clearhead train` makes it, from the speed of
twelve updates and the formulas of `needed_memory`; the training then has evaluations and checkpoints.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from clearhead.formats.run import create_run
from clearhead.models.config import DecoderConfig
from clearhead.text import ByteTokenizer
from clearhead.training.batches import Windows, whole
from clearhead.training.ceiling import Ceiling, matmul_ceiling, update_flops
from clearhead.training.estimate import Forecast, estimated, percent, size
from clearhead.training.losses import next_token
from clearhead.training.memory import peak_memory, present_memory
from clearhead.training.needed import needed_memory
from clearhead.training.objective import Objective
from clearhead.training.run import Training, measured_speed
from clearhead.training.settings import TrainingSettings
from clearhead.training.sizing import LARGE, SMALL, Size

SIZES = {
    "small, dropout 0.2": SMALL,
    "large": LARGE,
    "6 blocks, width 384": Size(layers=6, heads=6, width=384, context=256, batch=8),
}
CPU = torch.device("cpu")


def objective(config: DecoderConfig, batch: int) -> Objective:
    """The next token of random ids."""
    drawn = np.random.default_rng(0)
    train, validation = ([drawn.integers(0, config.vocab, count)] for count in (200_000, 30_000))
    rows = 16_384 // config.context
    return Objective(
        Windows(train, config.context, batch, 0), lambda: whole(validation, config.context, rows), next_token
    )


def one(name: str, threads: int, seconds: float) -> None:
    """Estimate, train, compare."""
    torch.set_num_threads(threads)
    chosen = SIZES[name]
    config = replace(chosen.config(), vocab=256)
    asked = objective(config, chosen.batch)
    ceiling = Ceiling(matmul_ceiling(CPU), update_flops(config, asked))
    present = present_memory(CPU)
    speed = measured_speed(config, asked, CPU)
    step = chosen.batch * config.context
    steps = max(25, int(seconds * speed / step))
    rhythm = -(-steps // 3)
    settings = TrainingSettings(
        steps=steps,
        batch=chosen.batch,
        lr=1e-3,
        final_lr=0.1,
        warmup=5,
        weight_decay=0.1,
        beta2=0.99,
        clip=1.0,
        seed=0,
        eval_every=rhythm,
        checkpoint_every=rhythm,
    )
    needed = needed_memory(config, chosen.batch)
    plan = estimated(
        config,
        settings,
        asked,
        tokens_per_second=speed,
        tokens_per_step=step,
        needed=needed,
        present=present,
    )
    shares = []
    with tempfile.TemporaryDirectory() as folder:
        run = create_run(Path(folder) / "run", config, ByteTokenizer(), {})
        training = Training(run, settings, asked, CPU)
        forecast = Forecast(plan)
        after_twenty = None
        for event in training.events():
            forecast.take(event)
            if forecast.corrected is not None and after_twenty is None:
                after_twenty = forecast.corrected.seconds
            if hasattr(event, "seconds"):
                shares.append(ceiling.share(event))
        real = forecast.elapsed
    memory = peak_memory(CPU)
    assert memory is not None and plan.memory is not None and after_twenty is not None  # noqa: PT018 - one condition
    print(
        f"{name:<20} {steps:>5} updates  time {real:6.1f} s, estimated {plan.seconds:6.1f} ({percent(plan.seconds, real)}),"
        f" after 20 updates {after_twenty:6.1f} ({percent(after_twenty, real)})  memory {size(memory)},"
        f" estimated {size(plan.memory)} ({percent(plan.memory, memory)}), without the process {size(memory - present)},"
        f" {size(needed.peak)} ({percent(needed.peak, memory - present)})"
        f"  ceiling {ceiling.flops_per_second / 1e9:.0f} GFLOP/s, share {np.median(shares):.0%}",
        flush=True,
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    options.add_argument("--seconds", type=float, default=20.0, help="of each training, about")
    asked = options.parse_args()
    # A new interpreter each: the peak of one size must not be that of another.
    fresh = multiprocessing.get_context("spawn")
    for name in SIZES:
        process = fresh.Process(target=one, args=(name, asked.threads, asked.seconds))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
