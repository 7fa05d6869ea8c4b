"""Small things to train on: pairs that are no text, and a tiny run on ids."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from clearhead.formats.run import Run, create_run, read_run
from clearhead.models.config import DecoderConfig
from clearhead.text import ByteTokenizer
from clearhead.training.batches import Batch, Ids, Windows, whole
from clearhead.training.losses import next_token
from clearhead.training.objective import Objective
from clearhead.training.run import Training
from clearhead.training.settings import TrainingSettings

CPU = torch.device("cpu")


class Points(NamedTuple):
    """A batch that `fit` cannot know: inputs (N,5) and what a line makes of them (N,3)."""

    x: Tensor
    y: Tensor

    def to(self, device: torch.device) -> Points:
        return Points(self.x.to(device), self.y.to(device))


LINE = torch.arange(15, dtype=torch.float64).reshape(3, 5) / 10


def points(step: int, count: int = 7) -> Points:
    """Points on a line, other ones for each step."""
    x = torch.randn(count, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(step))
    return Points(x, x @ LINE.T)


def squared(model: nn.Module, batch: Points) -> tuple[Tensor, Tensor]:
    """Σ of squared errors, and how many there are."""
    errors = (model(batch.x) - batch.y).square()
    return errors.sum(), torch.tensor(errors.numel())


def line() -> nn.Linear:
    """A model that can learn the points."""
    torch.manual_seed(3)
    return nn.Linear(5, 3, bias=False, dtype=torch.float64)


def ids(length: int, seed: int = 0) -> Ids:
    """Token ids that have something to learn: a walk over 11 of the bytes."""
    steps = np.random.default_rng(seed).choice([1, 2, 5], length, p=[0.7, 0.2, 0.1])
    return (steps.cumsum() % 11).astype(np.int64)


SETTINGS = TrainingSettings(
    steps=14,
    batch=5,
    lr=1e-2,
    final_lr=0.1,
    warmup=3,
    weight_decay=0.1,
    beta2=0.99,
    clip=1.0,
    seed=0,
    eval_every=4,
    checkpoint_every=3,
)
# 300 ids make an epoch of 48 windows, so its border lies inside the tenth update.
TRAIN, VALIDATION = [ids(300), ids(20, seed=1)], [ids(50, seed=2)]
TINY = DecoderConfig(layers=1, heads=2, width=8, context=6, vocab=256, dropout=0.2)


def new_run(path: Path, config: DecoderConfig = TINY) -> Run:
    """A run directory that has not begun."""
    return create_run(path, config, ByteTokenizer(), {})


def training(path: Path, settings: TrainingSettings = SETTINGS) -> Training:
    """The training in `path`, where it was left; a new one if there is none."""
    run = read_run(path) if (path / "config.json").exists() else new_run(path)
    return Training(run, settings, objective(settings), CPU)


def objective(settings: TrainingSettings = SETTINGS) -> Objective[Batch]:
    """The next token of the toy's ids."""
    windows = Windows(TRAIN, TINY.context, settings.batch, settings.seed)
    return Objective(windows, lambda: whole(VALIDATION, TINY.context, 4), next_token)


def finish(path: Path, *stops: int, settings: TrainingSettings = SETTINGS) -> Training:
    """Train to the end, in a new `Training` after each of `stops` (numbers of events, counted from its beginning).

    Between two of them somebody else draws random numbers.
    """
    for stop in stops:
        stopped = training(path, settings)
        for number, _ in enumerate(stopped.events(), start=1):
            if number == stop:
                break
        stopped.save_if_new()
        torch.manual_seed(stop)
    last = training(path, settings)
    for _ in last.events():
        pass
    return last


def state(trained: Training) -> dict[str, Tensor]:
    """Every number that a training has: weights, the optimisers' means, masters."""
    weights, stepper = dict(trained.model.named_parameters()), trained.recipe.stepper
    means = {
        f"{number}.{index}.{name}": torch.as_tensor(value)
        for number, optimizer in enumerate(stepper.optimizers)
        for index, each in optimizer.state_dict()["state"].items()
        for name, value in each.items()
    }
    return {name: tensor.detach() for name, tensor in weights.items()} | means | stepper.extra_state()


def differing(first: dict[str, Tensor], second: dict[str, Tensor]) -> list[str]:
    """The names of tensors that are not equal bit for bit."""
    assert first.keys() == second.keys()
    return [name for name in first if not torch.equal(first[name], second[name])]


Check = Callable[[], None]
