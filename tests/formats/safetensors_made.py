"""safetensors written by hand: headers that say what no library would write, and folders of a small model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from clearhead.formats.safetensors_files import SafetensorsFiles, open_safetensors
from clearhead.messages import UserError

INDEX = "model.safetensors.index.json"


def entry(shape: list[int], begin: int, end: int, dtype: str = "F32") -> dict[str, Any]:
    """What a header says of one tensor."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def write_raw(path: Path, header: bytes | Mapping[str, Any], data: bytes = b"", length: int | None = None) -> Path:
    """A file with this header, whatever it says, and these bytes behind it."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def shard_of(number: int) -> str:
    return f"model-{number:05d}-of-00003.safetensors"


def write_shards(folder: Path, tensors: Mapping[str, Tensor], changes: Mapping[str, Any] | None = None) -> Path:
    """Three files and their index, the `changes` made to its map: another file for a tensor, or none."""
    files = {}
    for number in (1, 2, 3):
        own = dict(list(tensors.items())[number - 1 :: 3])
        save_file(own, folder / shard_of(number))
        files |= dict.fromkeys(own, shard_of(number))
    files = {name: file for name, file in (files | dict(changes or {})).items() if file is not None}
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 7}, "weight_map": files}), encoding="utf-8")
    return folder


def tensors(dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """Distinct sizes, one tensor large enough for memory of its own, one number alone, and one of no numbers."""
    shapes = {"a": (5, 3, 2), "large": (311, 127), "b.weight": (7,), "alone": (), "none": (0, 3), "c": (2, 4)}
    return {name: torch.randn(shape).to(dtype) for name, shape in shapes.items()}


def refusal(folder: Path, ask: Callable[[Path], object] = open_safetensors) -> str:
    """The one line with which a folder is refused."""
    with pytest.raises(UserError) as error:
        ask(folder)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 1000
    return str(error.value)


def check_reads(found: SafetensorsFiles, wanted: dict[str, Tensor]) -> None:
    """Every tensor, whole and in pieces."""
    assert set(found.names) == wanted.keys()
    for name, tensor in wanted.items():
        assert found.shape(name) == tuple(tensor.shape)
        for first, last in [(0, None), (0, 2), (1, 3), (2, 2), (1, None), (3, 99)]:
            piece = found.read(name, first, last)
            expected = tensor[first:last] if tensor.dim() else tensor
            assert piece.dtype == tensor.dtype
            assert torch.equal(piece, expected)
            piece.fill_(7)  # The caller's own, and nobody else's.
