"""A MODEL as one of two that are compared: our own model in float64, every traced tensor a stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor, nn

from clearhead.checking.common.trial import apart
from clearhead.checking.diff.numbers import alike, mark, plain
from clearhead.checking.diff.side import Given, Stage, Walk
from clearhead.checking.diff.variation import Change, Variation, with_weights
from clearhead.checking.strangers import Attempt
from clearhead.formats.find import find_model
from clearhead.formats.load import Loaded, load
from clearhead.formats.opened import Config, Opened
from clearhead.formats.rows import Row
from clearhead.formats.weights import own_tensors
from clearhead.messages import UserError, say
from clearhead.models.build import build
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.tracing.record import Recorder


@dataclass(frozen=True, eq=False)
class ModelSide:
    """A model of ours.

    Args:
        name: as the user called it.
        config: what it is.
        tensors: its weights by name, float64 on the CPU; with them, what parts a variation adds may need.
        changes: what was done to the built model, in order.
        loaded: where it came from, with its tokenizer; None for one that was made in memory.
    """

    name: str
    config: Config
    tensors: Mapping[str, Tensor]
    changes: tuple[Change, ...] = ()
    loaded: Loaded | None = field(default=None, repr=False)

    @cached_property
    def model(self) -> nn.Module:
        """The model, in evaluation mode; its weights are `tensors` themselves."""
        model = with_weights(build(self.config, device="meta"), self.tensors)
        for change in self.changes:
            change(model)
        return model.eval()

    @cached_property
    def weights(self) -> Mapping[str, Tensor]:
        """Its tensors by name, tied ones once."""
        own = own_tensors(build(self.config, device="meta"))
        return {name: self.tensors[name] for name in own if name in self.tensors}

    @property
    def vocab(self) -> int:
        """V; of an encoder-decoder with two vocabularies the smaller."""
        if isinstance(self.config, EncoderDecoderConfig):
            return min(self.config.vocab, self.config.source_vocab or self.config.vocab)
        return self.config.vocab

    @property
    def limit(self) -> int:
        """The most positions that it takes."""
        if isinstance(self.config, EncoderDecoderConfig):
            return min(self.config.context, self.config.encoder.context)
        return self.config.context

    @property
    def architecture(self) -> Literal["decoder", "encoder", "encoder-decoder"]:
        """What it is; an encoder-decoder takes two inputs."""
        match self.config:
            case EncoderDecoderConfig():
                return "encoder-decoder"
            case EncoderConfig():
                return "encoder"
        return "decoder"

    @property
    def encode(self) -> Callable[[str], list[int]] | None:
        """From a text to ids, as it was trained to be given them; None if it has no tokenizer."""
        return None if self.loaded is None else self.loaded.read

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Which tensors of its file each of its own was made of; none if it is a run's."""
        if self.loaded is None:
            return ()
        with Attempt():
            found = find_model(self.loaded.source)
            return found.rows if isinstance(found, Opened) else ()
        return ()

    def run(self, given: Given, *, until: str | None = None, expected: Mapping[str, Tensor] | None = None) -> Walk:
        """A forward in float64.

        Args:
            given: ids (B,T), or those of a source and of a target.
            until: the stage behind which to stop; the result if None.
            expected: stages that must be what they are here; behind one that is not, stop, too.

        Raises:
            UserError: if it takes other inputs.
        """
        wanted = 2 if self.architecture == "encoder-decoder" else 1
        if len(given.inputs) != wanted or any(each.is_floating_point() for each in given.inputs):
            raise UserError(say("diff_ours.takes_ids", name=self.name, count=wanted))
        recorder = Stopping(until, expected or {})
        result: Tensor | None = None
        with torch.no_grad(), suppress(Reached):
            result = self.model(*given.inputs, tap=recorder)
        stages = [Stage(name, tensor) for name, tensor in recorder.tensors.items()]
        if result is not None and (not stages or stages[-1].value.data_ptr() != result.data_ptr()):
            stages.append(Stage("result", result))
        return Walk(tuple(stages))

    def varied(self, variation: Variation) -> ModelSide:
        """The same weights in a model that is changed."""
        changes = self.changes if variation.change is None else (*self.changes, variation.change)
        config = variation.config
        assert isinstance(config, Config)
        return replace(self, config=config, changes=changes)

    def with_tensors(self, tensors: Mapping[str, Tensor]) -> ModelSide:
        """The same model with other weights, some or all."""
        return replace(self, tensors={**self.tensors, **tensors})


class Reached(Exception):  # noqa: N818 - it is no error
    """What was wanted has been seen."""


class Stopping(Recorder):
    """A recorder that ends the forward behind a stage.

    Args:
        until: its name; None for none.
        expected: stages by name; behind one that is another, the forward ends, too.
    """

    def __init__(self, until: str | None, expected: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.until, self.expected = until, expected

    def _keep(self, name: str, tensor: Tensor) -> None:
        super()._keep(name, tensor)
        other = self.expected.get(name)
        if name == self.until or (other is not None and moved(tensor, other)):
            raise Reached


MOVED = 2.0**-38
"""Differences between float64 tensors above this are no rounding, whatever the order in which it was computed."""


def moved(x: Tensor, other: Tensor) -> bool:
    """Whether a stage holds other numbers than before; other heads of the same features are none."""
    if x.shape != other.shape:
        return not alike(mark(plain(x)), mark(plain(other)))
    return apart(x, other) > MOVED


def model_side(model: str | Loaded) -> ModelSide:
    """The side of a MODEL.

    Args:
        model: a path or a name, which is read in float64; or what `load` gave, of which a copy is made.

    Raises:
        UserError: if there is no such model, or it cannot be read.
    """
    loaded = load(model, dtype="float64", device="cpu") if isinstance(model, str) else model
    name = model if isinstance(model, str) else str(model.source)
    tensors = {key: tensor.detach().to("cpu", torch.float64) for key, tensor in own_tensors(loaded.model).items()}
    return ModelSide(name, loaded.config, tensors, loaded=loaded)
