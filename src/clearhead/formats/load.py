"""Loading a model, wherever it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from clearhead.formats.assemble import Watch, assemble
from clearhead.formats.find import find_model
from clearhead.formats.opened import Config, Opened, Report
from clearhead.formats.rows import row
from clearhead.formats.run import Run
from clearhead.formats.safetensors_files import SafetensorsFiles
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
    """The folder or file that the weights came from."""
    chat_template: str | None = None
    """How conversations are written down for the model, in Jinja; None for a base model."""
    opening: tuple[int, ...] = ()
    """Ids that a text begins with, as the model was trained: `<bos>`, `[CLS]`."""
    closing: tuple[int, ...] = ()
    """Ids that a text ends with where it is read whole, by an encoder: `[SEP]`."""
    ends: tuple[int, ...] = ()
    """All ids at which what the model writes ends, where they are not the tokenizer's end alone: `<eos>`, `<end_of_turn>`."""
    origin: str = "clearhead"
    """What the model was: `Hugging Face llama`, `GGUF qwen2`, `nanoGPT`; `clearhead` for a run."""
    report: Report | None = None
    """What became of the tensors of its file."""

    def read(self, text: str) -> list[int]:
        """The ids of a text as the model was trained to be given them: what opens a text, the text, what closes it."""
        return [*self.opening, *self.tokenizer.encode(text), *self.closing]


def load(model: str | Path, *, dtype: str = "float32", device: str = "auto", watch: Watch | None = None) -> Loaded:
    """The model called `model`, wherever it comes from.

    A run directory gives its best checkpoint, a checkpoint folder that one; a run that trained changes of low rank gives the
    plain model, with the changes in its weights. A Hugging Face folder, a `.gguf` file, a `.pt` of nanoGPT or the course, and the
    name of a model that an installed package carries give the same as `clearhead import` would.

    Args:
        model: a path, or a name that `clearhead models` lists.
        dtype: the number type that the weights are turned into: float32, float64, bfloat16 or float16.
        device: auto, cpu, cuda or mps.
        watch: who is told how many numbers have been read, and of how many.

    Raises:
        UserError: if there is no such model, its files are damaged or do not fit each other, or they hold what clearhead does
            not understand.
    """
    place, number_type = pick_device(device), pick_dtype(dtype)
    found = find_model(model)
    if not isinstance(found, Opened):
        run, checkpoint = found
        opened = open_run(run, checkpoint)
        if run.lora is not None:
            return _with_low_rank(opened, run, place, number_type)
    else:
        opened = found
    _must_fit(opened.tokenizer, opened.config, opened.source)
    return _loaded(opened, *assemble(opened, number_type, place, watch))


def open_run(run: Run, checkpoint: Path | None) -> Opened:
    """A run at one of its checkpoints, the best if none is named; its weights unread.

    Raises:
        UserError: if its description is damaged, or there is no checkpoint.
    """
    source = checkpoint or run.best().path
    config = run.model
    assert isinstance(config, Config)  # as every kind of model is
    names = own_tensors(build(config, device="meta"))
    return Opened(
        config=config,
        tokenizer=run.tokenizer,
        tensors=SafetensorsFiles.of_file(source / "model.safetensors"),
        rows=tuple(row(name, name) for name in names),
        source=source,
        origin="clearhead",
        chat_template=run.chat_template(),
        opening=run.opening,
        closing=run.closing,
        ends=run.ends,
        finite=False,
    )


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


def _loaded(opened: Opened, model: nn.Module, report: Report | None = None) -> Loaded:
    assert isinstance(model, Decoder | Encoder | EncoderDecoder)
    return Loaded(
        model,
        opened.tokenizer,
        opened.config,
        opened.source,
        opened.chat_template,
        opened.opening,
        opened.closing,
        opened.ends,
        opened.origin,
        report,
    )


def _with_low_rank(opened: Opened, run: Run, place: torch.device, number_type: torch.dtype) -> Loaded:
    """The run's base with the changes of low rank that a checkpoint holds."""
    assert run.lora is not None
    model, trained = build(opened.config, seed=0), opened.source / "model.safetensors"
    fill(model, read_base(run.base, run.begins_with), run.base)
    adapt(model, run.lora, seed=0)
    fill_tensors(changing_tensors(model), read_tensors(trained), trained)
    fold(model)
    return _loaded(opened, model.to(place, number_type).eval())


def _must_fit(tokenizer: Tokenizer, config: DecoderConfig | EncoderConfig | EncoderDecoderConfig, path: Path) -> None:
    """Raise a UserError unless the tokenizer has the model's ids, and marks where the model needs them."""
    if tokenizer.size != config.vocab:
        raise UserError(say("formats.vocab", path=path, tokenizer=tokenizer.size, model=config.vocab))
    if isinstance(config, EncoderDecoderConfig) and None in (tokenizer.begin, tokenizer.end):
        raise UserError(say("formats.no_marks", path=path, name=type(tokenizer).__name__))
