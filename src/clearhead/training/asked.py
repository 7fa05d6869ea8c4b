"""What a user asks a training to work with, and what is made of it: data, and a model of a size that suits it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TypeVar

import torch

from clearhead.formats.load import Loaded
from clearhead.messages import UserError, say
from clearhead.models.config import DecoderConfig, ModelConfig, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.training.conversation_data import ConversationData
from clearhead.training.data_choice import DataChoice, Watch, unwatched
from clearhead.training.pair_data import PairData
from clearhead.training.settings import PLAIN, TrainingSettings
from clearhead.training.text_data import TextData

Data = TextData | PairData | ConversationData
"""What was read, as ids."""

Kind = TypeVar("Kind", bound=StackConfig)


@dataclass(frozen=True)
class Dial:
    """How long a whole training may take.

    Args:
        minutes: above 0.
        device: where it will run; its speed decides the sizes.
        settings: what an update is made of, which takes its time.

    Raises:
        UserError: if the time is not above 0.
    """

    minutes: float
    device: torch.device
    settings: TrainingSettings = PLAIN

    def __post_init__(self) -> None:
        if not 0 < self.minutes < float("inf"):
            raise UserError(say("training.setting", name="minutes", value=self.minutes, wanted="> 0"))


@dataclass(frozen=True)
class Asked:
    """What a user asks for.

    Args:
        files: texts; pairs for an encoder-decoder; conversations; none for the built-in corpus.
        choice: what was said about them.
        folder: where token files go.
        model: the kind of model, its sizes and parts; a decoder picked for the data if None.
        typed: the fields of `model` that the user has named, the others are picked; all of them if None.
        init: the model that is continued; a new one is made if None.
        watch: who is told how far reading is.
        dial: the time that a decoder is to be sized for; sizes follow from the data if None.
    """

    files: Sequence[str]
    choice: DataChoice
    folder: Path
    model: ModelConfig | None = None
    typed: frozenset[str] | None = None
    init: Loaded | None = None
    watch: Watch = unwatched
    dial: Dial | None = None

    @property
    def picks(self) -> bool:
        """Whether sizes are left to be picked."""
        return self.init is None and (self.model is None or self.typed is not None)


@dataclass(frozen=True)
class Material:
    """Data, and the model that will learn from it."""

    config: DecoderConfig | EncoderConfig | EncoderDecoderConfig
    data: Data
    batch: int
    """How many samples an update takes, unless the user says otherwise."""
    sizes: str | None
    """The sizes in words, where they were picked."""
    few: str | None = None
    """Why `batch` is smaller than it is for others; None if it is not."""
    steps: int | None = None
    """How many updates fit the time that was given; None if none was."""
    speed: float | None = None
    """Tokens per second of an update, if that was measured to decide."""


def laid_over(picked: Kind, model: Kind | None, typed: frozenset[str] | None) -> Kind:
    """The picked configuration with the fields of `model` that the user has named."""
    if model is None:
        return picked
    if typed is None:
        return model
    return type(picked)(
        **{field.name: getattr(model if field.name in typed else picked, field.name) for field in fields(picked)}
    )


def config_of(asked: Asked, picked: Kind) -> Kind:
    """The model's configuration: picked, as typed, or that of the model that is continued.

    Raises:
        UserError: if a field is named that a model which is there already cannot change.
    """
    if asked.init is None:
        assert isinstance(asked.model, type(picked) | None)
        return laid_over(picked, asked.model, asked.typed)
    typed = asked.typed or frozenset()
    fixed = sorted(typed - {"dropout"})
    if fixed:
        raise UserError(say("training.init_fixes", fields=" ".join(f"--model.{field}" for field in fixed)))
    config = asked.init.config
    assert isinstance(config, type(picked))
    if isinstance(asked.model, StackConfig) and "dropout" in typed:
        return replace(config, dropout=asked.model.dropout)
    return config


def sizes_of(asked: Asked, config: StackConfig, characters: int) -> str | None:
    """The sizes in words, where they were picked."""
    if not asked.picks:
        return None
    return say(
        "training.sizes",
        characters=f"{characters:,}",
        layers=config.layers,
        heads=config.heads,
        width=config.width,
        context=config.context,
        dropout=config.dropout,
    )
