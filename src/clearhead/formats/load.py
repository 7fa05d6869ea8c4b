"""Loading a model, wherever it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clearhead.formats.run import find_run
from clearhead.formats.weights import fill, read_tensors
from clearhead.messages import UserError, say
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.models.device import pick_device, pick_dtype
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text import MarkedTokenizer, Tokenizer


@dataclass(frozen=True)
class Loaded:
    """A model that is ready to run, and what it needs to read and write text."""

    model: Decoder | EncoderDecoder
    """ids (B,T), or source and target ids, -> logits (B,T,V); in evaluation mode."""
    tokenizer: Tokenizer
    config: DecoderConfig | EncoderDecoderConfig
    source: Path
    """The folder that the weights came from."""
    chat_template: str | None = None
    """How conversations are written down for the model, in Jinja; None for a base model."""


def load(model: str | Path, *, dtype: str = "float32", device: str = "auto") -> Loaded:
    """The model called `model`: a run directory, at its best checkpoint, or one of its checkpoint folders.

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
    if not isinstance(run.model, DecoderConfig | EncoderDecoderConfig):
        raise UserError(say("formats.not_a_decoder", path=path))
    source = checkpoint or run.best().path
    _must_fit(run.tokenizer, run.model, path)
    built: Decoder | EncoderDecoder = build(run.model, seed=0)
    fill(built, read_tensors(source / "model.safetensors"), source / "model.safetensors")
    return Loaded(built.to(place, number_type).eval(), run.tokenizer, run.model, source, run.chat_template())


def _must_fit(tokenizer: Tokenizer, config: DecoderConfig | EncoderDecoderConfig, path: Path) -> None:
    """Raise a UserError unless the tokenizer has the model's ids, and marks where the model needs them."""
    if tokenizer.size != config.vocab:
        raise UserError(say("formats.vocab", path=path, tokenizer=tokenizer.size, model=config.vocab))
    if isinstance(config, EncoderDecoderConfig) and not isinstance(tokenizer, MarkedTokenizer):
        raise UserError(say("formats.no_marks", path=path, name=type(tokenizer).__name__))
