"""A model whose description has been read, and whose weights have not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from clearhead.formats.rows import Row
from clearhead.formats.tensors import Tensors
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.text import Tokenizer

Config = DecoderConfig | EncoderConfig | EncoderDecoderConfig


class Words(NamedTuple):
    """What comes with a model to read and write text; the fields are those of `Opened`."""

    tokenizer: Tokenizer
    chat_template: str | None = None
    opening: tuple[int, ...] = ()
    closing: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()


@dataclass(frozen=True)
class Opened:
    """What a reader of foreign files found.

    Args:
        config: what the model is.
        tokenizer: text to ids; its size is the model's vocabulary.
        tensors: the weights, still in their file.
        rows: for each tensor of the model, which of them it is made of.
        source: the file or folder.
        origin: what it is, for people: "Hugging Face llama", "GGUF qwen2", "nanoGPT".
        unused: patterns (`fnmatch`) of tensors that compute nothing here: saved masks, a pooler that is not asked.
        chat_template: how conversations are written down, in Jinja; None for a base model.
        opening: ids that a text begins with, as the model was trained.
        closing: ids that it ends with, where it is read whole: an encoder's.
        ends: all ids at which what the model writes ends, where they are not the tokenizer's end alone: `<eos>`, `<end_of_turn>`.
        finite: whether a number that is none (NaN, infinity) is refused; a training here that went wrong can be looked at.
    """

    config: Config
    tokenizer: Tokenizer
    tensors: Tensors
    rows: tuple[Row, ...]
    source: Path
    origin: str
    unused: tuple[str, ...] = ()
    chat_template: str | None = None
    opening: tuple[int, ...] = ()
    closing: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    finite: bool = True


def further_ends(end: int | None, named: Iterable[int], vocab: int) -> tuple[int, ...]:
    """All ids that end a text, that of the tokenizer first; none where they are that one alone, which need not be told twice.

    Args:
        end: the tokenizer's.
        named: those that a file names.
        vocab: how many ids there are; files name ids that their model does not have.
    """
    first = () if end is None else (end,)
    ends = tuple(dict.fromkeys((*first, *(id for id in named if 0 <= id < vocab))))
    return () if ends == first else ends


@dataclass(frozen=True)
class Report:
    """What became of the tensors of a file. Missing and unexpected ones are errors, so that none remain to be told of.

    Args:
        loaded: how many tensors of the model were filled.
        retied: tensors of the model that share the storage of another, by the other's name.
        unused: tensors of the file that compute nothing here.
    """

    loaded: int
    retied: dict[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
