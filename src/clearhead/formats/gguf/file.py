"""A GGUF file as a model that can be put together."""

from __future__ import annotations

from pathlib import Path

from clearhead.formats.gguf.architectures import UNUSED, describe
from clearhead.formats.gguf.header import GgufHeader, read_header
from clearhead.formats.gguf.tensors import GgufTensors
from clearhead.formats.gguf.words import gguf_words
from clearhead.formats.opened import Opened
from clearhead.messages import UserError, say


def open_gguf(path: Path) -> Opened:
    """What a GGUF file says of its model: the configuration, the tokenizer and its chat template, where the tensors lie.

    Raises:
        UserError: if the file cannot be read, holds no whole model, or holds one that is not known.
    """
    header = read_header(path)
    _must_be_a_model(header)
    architecture, config, rows = describe(header)
    words = gguf_words(header, config.vocab)
    return Opened(
        config,
        words.tokenizer,
        GgufTensors(header),
        rows,
        path,
        f"GGUF {architecture}",
        UNUSED,
        words.chat_template,
        words.opening,
        words.closing,
        words.ends,
    )


def _must_be_a_model(header: GgufHeader) -> None:
    kind, parts = header.take("general.type", str, "model"), header.take("split.count", int, 1)
    if kind != "model":
        raise UserError(say("gguf.kind", path=header.path, kind=repr(kind)[:60]))
    if parts > 1:
        raise UserError(say("gguf.split", path=header.path, count=parts))
