"""Loading a model, wherever it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from clearhead.formats.run import Run, find_run
from clearhead.formats.weights import changing_tensors, fill, fill_tensors, own_tensors, read_base, read_tensors
from clearhead.messages import UserError, say
from clearhead.models.adapt import adapt, fold
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.models.device import pick_device, pick_dtype
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text import Tokenizer


@dataclass(frozen=True)
class Loaded:
    """A model that is ready to run, and what it needs to read and write text."""

    model: Decoder | Encoder | EncoderDecoder
    """ids (B,T), or source and target ids, -> logits (B,T,V), or whatever an encoder's head makes; in evaluation mode."""
    tokenizer: Tokenizer
    config: DecoderConfig | EncoderConfig | EncoderDecoderConfig
    source: Path
    """The folder that the weights came from."""
    chat_template: str | None = None
    """How conversations are written down for the model, in Jinja; None for a base model."""


def load(model: str | Path, *, dtype: str = "float32", device: str = "auto") -> Loaded:
    """The model called `model`: a run directory, at its best checkpoint, or one of its checkpoint folders.

    A run that trained changes of low rank gives the plain model, with the changes in its weights.

    Args:
        model: a path.
        dtype: the number type that the weights are turned into: float32, float64, bfloat16 or float16.
        device: auto, cpu, cuda or mps.

    Raises:
        UserError: if there is no such model, or its files are damaged or do not fit each other.
    """
    place, number_type = pick_device(device), pick_dtype(dtype)
    path = Path(model)
    run, checkpoint = find_run(path)
    config, source = run.model, checkpoint or run.best().path
    assert isinstance(config, DecoderConfig | EncoderConfig | EncoderDecoderConfig)  # as every kind of model is
    _must_fit(run.tokenizer, config, path)
    built = build(run.model, seed=0)
    _fill(built, run, source / "model.safetensors")
    assert isinstance(built, Decoder | Encoder | EncoderDecoder)
    return Loaded(built.to(place, number_type).eval(), run.tokenizer, config, source, run.chat_template())


def writer_of(loaded: Loaded) -> Decoder | EncoderDecoder:
    """The model, which writes text.

    Raises:
        UserError: if it is an encoder, which reads alone.
    """
    if isinstance(loaded.model, Encoder):
        raise UserError(say("formats.not_a_decoder", path=loaded.source))
    return loaded.model


def weights_of(loaded: Loaded) -> dict[str, Tensor]:
    """Copies of all weights, in float32 on the CPU, as a training takes them to begin with."""
    return {name: tensor.float().cpu().clone() for name, tensor in own_tensors(loaded.model).items()}


def _fill(model: nn.Module, run: Run, trained: Path) -> None:
    """Give the model the weights of a checkpoint; the changes of low rank, if it holds those, on the run's base."""
    if run.lora is None:
        fill(model, read_tensors(trained), trained)
        return
    fill(model, read_base(run.base, run.begins_with), run.base)
    adapt(model, run.lora, seed=0)
    fill_tensors(changing_tensors(model), read_tensors(trained), trained)
    fold(model)


def _must_fit(tokenizer: Tokenizer, config: DecoderConfig | EncoderConfig | EncoderDecoderConfig, path: Path) -> None:
    """Raise a UserError unless the tokenizer has the model's ids, and marks where the model needs them."""
    if tokenizer.size != config.vocab:
        raise UserError(say("formats.vocab", path=path, tokenizer=tokenizer.size, model=config.vocab))
    if isinstance(config, EncoderDecoderConfig) and None in (tokenizer.begin, tokenizer.end):
        raise UserError(say("formats.no_marks", path=path, name=type(tokenizer).__name__))
