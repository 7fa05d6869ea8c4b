"""The header of a token file: safetensors' own, with the tokenizer, the digests and the counts as its metadata."""

from __future__ import annotations

import json
import os
import re
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clearhead.messages import UserError, say

__all__ = ["FORMAT", "FORMAT_VERSION", "Header", "header_bytes", "read_header"]

FORMAT = "clearhead-tokens"
FORMAT_VERSION = "2"
"""Version 1 had no digest of the ids."""
_BEGINNING = json.dumps({"__metadata__": {"format": FORMAT}}, separators=(",", ":")).rstrip("}").encode()
"""With what every header begins: enough to know one that was cut short."""

_COUNTS = ("vocab", "tokens", "documents", "characters")

_LARGEST = 100_000_000
"""More bytes no reader of safetensors takes for a header."""


class Header(NamedTuple):
    """What a token file says about itself."""

    tokenizer: str
    """The JSON of the tokenizer that made the ids."""
    tokenizer_sha256: str
    source_sha256: str
    """The digest of the texts."""
    content_sha256: str
    """The digest of all bytes behind the header: the ids as they stand there, then the ends."""
    vocab: int
    """The number of ids that the tokenizer has."""
    tokens: int
    documents: int
    characters: int
    """Of the texts, without what their files put around them."""

    @property
    def width(self) -> np.dtype[np.integer]:
        """The type of the ids on disk."""
        return np.dtype("<u2" if self.vocab <= 1 << 16 else "<u4")

    @property
    def widest(self) -> Header:
        """The same with counts longer than any that will come: room for it is room for all."""
        return self._replace(tokens=10**17, documents=10**17, characters=10**17)

    @property
    def size(self) -> int:
        """How many bytes follow the header."""
        return self.width.itemsize * self.tokens + 8 * self.documents


def header_bytes(header: Header, room: int = 0) -> bytes:
    """The header as it stands in a file: its length (8 bytes, little-endian), then JSON, filled up with spaces.

    Args:
        header: what is written.
        room: how many bytes there are for it; 0 for as many as it takes.
    """
    metadata = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        **{name: str(value) for name, value in header._asdict().items()},
    }
    text = json.dumps(
        {"__metadata__": metadata, **_tensors(header)}, ensure_ascii=False, separators=(",", ":")
    ).encode()
    room = room or 8 + 8 * -(-len(text) // 8)
    return (room - 8).to_bytes(8, "little") + text.ljust(room - 8)


def read_header(path: Path, file: FileIO) -> tuple[Header, int]:
    """The header at the beginning of a file, and at which byte the ids begin.

    Raises:
        UserError: it is no token file, one of another version, or it contradicts itself or the file's length.
    """
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if not len(_BEGINNING) <= length <= _LARGEST:
        raise UserError(say("token_files.foreign", path=path))
    raw = file.read(length)
    data = _parsed(raw)
    begin = 8 + length
    if data is None:
        cut_short = begin > size and raw.startswith(_BEGINNING)
        if cut_short:
            raise UserError(say("token_files.length", path=path, found=size, wanted=begin))
        raise UserError(say("token_files.foreign", path=path))
    header = _header(path, data)
    if begin + header.size != size:
        raise UserError(say("token_files.length", path=path, found=size, wanted=begin + header.size))
    return header, begin


def _tensors(header: Header) -> dict[str, Any]:
    ids = header.width.itemsize * header.tokens
    return {
        "ids": {"dtype": f"U{8 * header.width.itemsize}", "shape": [header.tokens], "data_offsets": [0, ids]},
        "ends": {"dtype": "I64", "shape": [header.documents], "data_offsets": [ids, header.size]},
    }


def _parsed(raw: bytes) -> dict[str, Any] | None:
    """The JSON of a token file's header; None if it is none."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    metadata = data.get("__metadata__") if isinstance(data, dict) else None
    return data if isinstance(metadata, dict) and metadata.get("format") == FORMAT else None


def _header(path: Path, data: dict[str, Any]) -> Header:
    metadata = data.pop("__metadata__")
    version = metadata.get("format_version")
    if version != FORMAT_VERSION:
        raise UserError(say("token_files.version", path=path, found=version, known=FORMAT_VERSION))
    for name in Header._fields:
        value = metadata.get(name)
        if not isinstance(value, str) or (name in _COUNTS and not re.fullmatch("[0-9]{1,18}", value)):
            raise UserError(say("token_files.contradiction", path=path, name=name))
    header = Header._make(int(metadata[name]) if name in _COUNTS else metadata[name] for name in Header._fields)
    for name, tensor in _tensors(header).items():
        if data.pop(name, None) != tensor:
            raise UserError(say("token_files.contradiction", path=path, name=name))
    if data:
        raise UserError(say("token_files.contradiction", path=path, name=min(data)))
    return header
