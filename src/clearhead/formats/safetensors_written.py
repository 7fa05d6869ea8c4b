"""Writing safetensors, one tensor after the other, into one file or several with an index.

Only the tensor that is being written need exist: whoever rearranges tensors for others does so one at a time, and can say how far it is.

A file is the length of its header (8 bytes, little-endian), the header (JSON: of each tensor type, shape and place) and the numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import torch
from torch import Tensor

from clearhead.formats.safetensors_files import INDEX, SINGLE, TYPES

__all__ = ["Entry", "write_safetensors"]

NAMES = {dtype: name for name, dtype in TYPES.items()}
"""What the format calls the types that weights are held in."""

ALIGNED = 8
"""The numbers begin at a multiple of so many bytes."""
PIECE = 1 << 24
"""How many bytes are written at a time."""


class Entry(NamedTuple):
    """A tensor that is to be written."""

    name: str
    shape: tuple[int, ...]
    type: torch.dtype

    @property
    def size(self) -> int:
        """Its bytes."""
        return torch.Size(self.shape).numel() * self.type.itemsize


def write_safetensors(
    folder: Path,
    entries: Sequence[Entry],
    tensors: Iterable[Tensor],
    *,
    limit: int | None = None,
    written: Callable[[int], object] | None = None,
) -> None:
    """Write `model.safetensors`; where it would be larger than `limit`, several files and `model.safetensors.index.json`.

    Args:
        folder: where; nothing is there under these names.
        entries: what is written, in this order.
        tensors: the tensors of the entries, asked for one at a time; on any device.
        limit: the most bytes of numbers in a file; a tensor that is larger has a file of its own. One file for all if None.
        written: is told how many bytes have been written more.

    Raises:
        OSError: if the system refuses (no space, no permission).
    """
    shards, coming = _shards(entries, limit), iter(tensors)
    for number, shard in enumerate(shards, start=1):
        with (folder / _file(number, len(shards))).open("xb") as file:
            file.write(_header(shard))
            for entry in shard:
                _write(file, entry, next(coming), written)
    if len(shards) > 1:
        places = {entry.name: _file(n, len(shards)) for n, shard in enumerate(shards, start=1) for entry in shard}
        total = {"total_size": sum(entry.size for entry in entries)}
        index = {"metadata": total, "weight_map": dict(sorted(places.items()))}
        (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def _file(number: int, count: int) -> str:
    return SINGLE if count == 1 else f"model-{number:05d}-of-{count:05d}.safetensors"


def _shards(entries: Sequence[Entry], limit: int | None) -> list[list[Entry]]:
    """The entries of each file."""
    shards: list[list[Entry]] = [[]]
    room = limit
    for entry in entries:
        if room is not None and limit is not None:
            if shards[-1] and entry.size > room:
                shards.append([])
                room = limit
            room -= entry.size
        shards[-1].append(entry)
    return shards


def _header(entries: Sequence[Entry]) -> bytes:
    """The length of the header and the header, filled up with spaces."""
    described: dict[str, object] = {"__metadata__": {"format": "pt"}}
    begin = 0
    for entry in entries:
        place = [begin, begin + entry.size]
        described[entry.name] = {"dtype": NAMES[entry.type], "shape": list(entry.shape), "data_offsets": place}
        begin += entry.size
    header = json.dumps(described, ensure_ascii=False, separators=(",", ":")).encode()
    header += b" " * (-len(header) % ALIGNED)
    return len(header).to_bytes(8, "little") + header


def _write(file: BinaryIO, entry: Entry, tensor: Tensor, written: Callable[[int], object] | None) -> None:
    assert (tuple(tensor.shape), tensor.dtype) == (entry.shape, entry.type), (entry, tensor.shape, tensor.dtype)
    for piece in _pieces(tensor.detach().contiguous().cpu()):
        file.write(piece)
        if written is not None:
            written(piece.nbytes)


def _pieces(tensor: Tensor) -> Iterator[memoryview]:
    data = tensor.reshape(-1).view(torch.uint8).numpy().data
    for begin in range(0, data.nbytes, PIECE):
        yield data[begin : begin + PIECE]
