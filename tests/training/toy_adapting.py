"""A small trained model, and runs that begin with its weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clearhead.formats.load import Loaded, load, weights_of
from clearhead.formats.run import create_run, read_run
from clearhead.formats.weights import own_tensors
from clearhead.models.low_rank import LowRank
from clearhead.text import ByteTokenizer
from clearhead.training.adapting import begun_with
from clearhead.training.run import Training
from clearhead.training.settings import TrainingSettings
from tests.training.toy import CPU, SETTINGS, TINY, finish, objective

CONFIG = replace(TINY, layers=2)
LOW_RANK = LowRank(3, 6.0, dropout=0.1)
KINDS: dict[str, LowRank | None] = {"whole": None, "low rank": LOW_RANK}


def trained(path: Path) -> Loaded:
    """A model that somebody has trained."""
    create_run(path, CONFIG, ByteTokenizer(), {})
    finish(path, settings=replace(SETTINGS, steps=3, seed=5))
    return load(path)


def begin(path: Path, source: Loaded, lora: LowRank | None, settings: TrainingSettings = SETTINGS) -> Training:
    """A new run that begins with the source's weights."""
    details: dict[str, Any] = {"init": begun_with("source", source)} | ({"lora": lora.to_plain()} if lora else {})
    run = create_run(path, CONFIG, ByteTokenizer(), details)
    return Training(run, settings, objective(settings), CPU, init=weights_of(source))


def go_on(path: Path, settings: TrainingSettings = SETTINGS) -> Training:
    """The run where it was left: nothing but its directory is needed."""
    return Training(read_run(path), settings, objective(settings), CPU)


def after(training: Training, events: int = 10_000) -> Training:
    """The training after so many events."""
    for number, _ in enumerate(training.events(), start=1):
        if number == events:
            break
    training.save_if_new()
    return training


def logits(model: torch.nn.Module) -> Tensor:
    ids = torch.arange(12).view(2, 6)
    made: Tensor = model.eval()(ids).detach()
    return made


def own(model: torch.nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in own_tensors(model).items()}
