"""What the readers of PyTorch's files share: what is known of a model whose weights are all there is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from clearhead.formats.fields import Fields, Kind
from clearhead.formats.rows import Row, row
from clearhead.messages import UserError, say
from clearhead.models.choices import LayerNorm
from clearhead.models.config import DecoderConfig


@dataclass(frozen=True)
class Found:
    """The names and shapes of a file, and what it says of itself.

    Sizes are taken from the shapes, so that no number that a file merely says is ever built.

    Args:
        source: the file.
        shapes: of its tensors, by name.
        said: nanoGPT's `model_args`, or what of them is known.
        tied: whether the head may be the embedding: they are equal, or only one is there.
    """

    source: Path
    shapes: Mapping[str, tuple[int, ...]]
    said: Fields
    tied: bool

    def __contains__(self, name: str) -> bool:
        return name in self.shapes

    def matrix(self, name: str) -> tuple[int, int]:
        """The shape of a matrix.

        Raises:
            UserError: if it is not there, or is no matrix.
        """
        if name not in self:
            raise UserError(say("formats.missing", path=self.source, name=name, count=1))
        match self.shapes[name]:
            case (rows, columns):
                return rows, columns
            case other:
                raise UserError(
                    say("formats.shape", path=self.source, name=name, found=other, wanted="(rows, columns)")
                )

    def count(self, before: str) -> int:
        """How many numbers follow `before` in the names: blocks, or heads.

        Raises:
            UserError: if there is none.
        """
        form = re.compile(rf"{re.escape(before)}(\d{{1,9}})\.")
        found = {int(match[1]) for name in self.shapes if (match := form.match(name))}
        if not found:
            raise UserError(say("formats.missing", path=self.source, name=f"{before}0", count=1))
        return len(found)

    def agreed(self, field: str, kind: type[Kind], seen: Kind) -> Kind:
        """What the tensors show, which the file may say as well.

        Raises:
            UserError: if it says otherwise.
        """
        said = self.said.take(field, kind, seen)
        if said != seen:
            raise UserError(say("exchange.pickle_disagrees", path=self.source, field=field, said=said, seen=seen))
        return seen

    def heads(self) -> int:
        """How many heads a fused projection holds, which no shape tells.

        Raises:
            UserError: if the file does not say.
        """
        heads = self.said.take("n_head", int, None)
        if heads is None:
            raise UserError(say("exchange.pickle_heads", path=self.source))
        return heads


class Layout(NamedTuple):
    """How one kind of file names what."""

    origin: str
    """What such a model is, for people."""
    mark: str
    """A tensor that no other kind has."""
    head: str
    """The tensor that may be tied to it."""
    unused: tuple[str, ...]
    """Patterns of tensors that compute nothing: saved masks."""
    config: Callable[[Found], DecoderConfig]
    rows: Callable[[Found, DecoderConfig], list[Row]]


def rows_of_layers(names: Mapping[str, str], config: DecoderConfig) -> list[Row]:
    """A row for the weight, and one for the bias if the configuration has it, of each layer of ours by its name in the file."""
    return [
        row(f"{ours}.{kind}", f"{theirs}.{kind}")
        for ours, theirs in names.items()
        for kind in ("weight", "bias")
        if kind == "weight" or _is_biased(ours, config)
    ]


def _is_biased(ours: str, config: DecoderConfig) -> bool:
    match ours.rpartition(".")[2]:
        case "norm" | "attention_norm" | "feedforward_norm":
            return isinstance(config.norm, LayerNorm) and config.norm.bias
        case "qkv":
            return config.qkv_bias
        case "head":
            return config.head_bias
    return config.bias
