"""Where the tensors of a GGUF file lie: held against the file before one is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from clearhead.formats.gguf.package import BlockFormat, block_format, readable
from clearhead.messages import UserError, say

MOST_AXES = 4
"""The most axes that a tensor of such a file has."""


class Claimed(NamedTuple):
    """What a header says of a tensor."""

    name: str
    sizes: tuple[int, ...]
    """Of its axes, the one whose neighbours lie side by side first."""
    kind: int
    """The number of its format."""
    offset: int
    """Where it begins, counted from the first byte behind the header."""


class TensorInfo(NamedTuple):
    """A tensor that lies whole inside the file."""

    shape: tuple[int, ...]
    """As PyTorch writes it: rows first."""
    kind: BlockFormat
    begin: int
    """Its first byte in the file."""

    @property
    def row_size(self) -> int:
        """The bytes of a row, all that lies behind the first axis; of the whole, if there is one axis."""
        numbers = math.prod(self.shape[1:]) if len(self.shape) > 1 else self.shape[0]
        return numbers // self.kind.numbers * self.kind.size

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        return math.prod(self.shape) // self.kind.numbers * self.kind.size


def lay_out(
    path: Path, claimed: Sequence[Claimed], *, data: int, alignment: int, size: int
) -> Mapping[str, TensorInfo]:
    """The tensors of a file by name.

    Args:
        path: the file, for messages.
        claimed: what its header says of them.
        data: where the offsets count from.
        alignment: what every offset is a multiple of.
        size: the bytes of the file.

    Raises:
        UserError: if one has a name that is there already, an impossible shape, an unknown format, or lies outside the file, askew or
            across another.
    """
    found: dict[str, TensorInfo] = {}
    for each in claimed:
        if each.name in found:
            raise UserError(say("gguf.twice", path=path, name=each.name))
        found[each.name] = _checked(path, each, data, alignment, size)
    _must_not_overlap(path, found)
    return found


def _checked(path: Path, claimed: Claimed, data: int, alignment: int, size: int) -> TensorInfo:
    name, shape = claimed.name, claimed.sizes[::-1]
    if not 1 <= len(shape) <= MOST_AXES or 0 in shape:
        raise UserError(say("gguf.shape", path=path, name=name, shape=shape))
    kind = block_format(claimed.kind)
    if kind is None or not readable(kind):
        raise UserError(say("gguf.format", path=path, name=name, kind=claimed.kind if kind is None else kind.name))
    if shape[-1] % kind.numbers:
        raise UserError(say("gguf.block", path=path, name=name, kind=kind.name, numbers=kind.numbers, width=shape[-1]))
    if claimed.offset % alignment:
        raise UserError(say("gguf.askew", path=path, name=name, offset=claimed.offset, alignment=alignment))
    info = TensorInfo(shape, kind, data + claimed.offset)
    if info.begin + info.size > size:
        raise UserError(say("gguf.outside", path=path, name=name, end=info.begin + info.size, size=size))
    return info


def _must_not_overlap(path: Path, found: Mapping[str, TensorInfo]) -> None:
    end, before = 0, ""
    for name, info in sorted(found.items(), key=lambda item: item[1].begin):
        if info.begin < end:
            raise UserError(say("gguf.overlap", path=path, name=name, before=before))
        end, before = info.begin + info.size, name
