"""safetensors files, one or several with an index, read a piece at a time.

Numbers are read at the places that the header gives, straight into the tensor that the caller gets. Nothing is mapped, so that
nothing of the file counts as memory of ours, and a header is read once.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import torch
from torch import Tensor

from clearhead.formats.safetensors_header import LONGEST, Place, is_name, is_regular, places_in
from clearhead.messages import UserError, say
from clearhead.text.lines import reason_of, shown

__all__ = ["INDEX", "SINGLE", "TYPES", "SafetensorsFiles", "open_safetensors", "read_object", "refuse_adapters"]

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
"""Where the format's library writes the weights, or says which file has which of them."""

TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
"""What weights may be held in, by the format's names."""

_LARGE = 1 << 16


@dataclass(frozen=True)
class SafetensorsFiles:
    """The tensors of a safetensors file or of several.

    Args:
        source: the file, or the folder of several, for messages.
        places: where each tensor lies.
    """

    source: Path
    places: Mapping[str, Place]

    @classmethod
    def of_file(cls, path: Path) -> SafetensorsFiles:
        """The tensors of one file.

        Raises:
            UserError: if it is missing, cut short, damaged or not safetensors.
        """
        return cls(path, places_in(path))

    @property
    def names(self) -> Collection[str]:
        """As `Tensors.names`."""
        return self.places.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        """As `Tensors.shape`."""
        return self.places[name].shape

    def read(self, name: str, first: int = 0, last: int | None = None) -> Tensor:
        """As `Tensors.read`.

        Raises:
            UserError: if the tensor is of a type that weights do not have, or the file cannot be read any more.
        """
        place = self.places[name]
        if place.type not in TYPES:
            raise UserError(
                say("exchange.safetensors_type", path=place.file, name=name, found=place.type, known=", ".join(TYPES))
            )
        shape, begin = place.shape, place.begin
        if shape:
            rows = range(shape[0])[first:last]
            begin += rows.start * ((place.end - place.begin) // max(1, shape[0]))
            shape = (len(rows), *shape[1:])
        tensor = _empty(shape, TYPES[place.type])
        _read_into(tensor, place.file, begin)
        return tensor


def open_safetensors(folder: Path) -> SafetensorsFiles:
    """The weights of a folder: `model.safetensors`, or the files that `model.safetensors.index.json` names.

    Args:
        folder: as Hugging Face writes it; its files may be links, as in the cache of a hub.

    Raises:
        UserError: if there are none, they are pickles or adapters, a file is missing or damaged, a tensor is missing or there
            twice, or the index names a file outside the folder.
    """
    refuse_adapters(folder)
    # A link to nothing is a file that is missing, not a folder without weights.
    if os.path.lexists(folder / SINGLE):
        return SafetensorsFiles.of_file(folder / SINGLE)
    if os.path.lexists(folder / INDEX):
        return SafetensorsFiles(folder, _sharded(folder))
    pickles = sorted(path.name for path in folder.glob("pytorch_model*.bin"))
    if pickles:
        raise UserError(say("exchange.pickles_alone", path=folder, name=pickles[0]))
    raise UserError(say("exchange.no_weights", path=folder, single=SINGLE, index=INDEX))


def refuse_adapters(folder: Path) -> None:
    """Raise a UserError if a folder holds peft's adapters: changes to a model that lies elsewhere."""
    if os.path.lexists(folder / "adapter_config.json"):
        raise UserError(say("exchange.adapters", path=folder))


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file of at most `LONGEST` bytes, in UTF-8; numbers that are not finite are no JSON.

    Raises:
        UserError: if there is none.
    """
    if not is_regular(path):
        raise UserError(say("exchange.file_missing", path=path))
    try:
        with path.open("rb") as file:
            raw = file.read(LONGEST + 1)
    except OSError as error:
        raise UserError(say("exchange.unreadable", path=path, reason=error.strerror)) from error
    if len(raw) > LONGEST:
        raise UserError(say("exchange.too_long", path=path, most=LONGEST))
    try:
        data = json.loads(raw.decode("utf-8-sig"), parse_constant=_not_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise UserError(say("exchange.folder_json", path=path, reason=reason_of(error))) from error
    if not isinstance(data, dict):
        raise UserError(say("exchange.folder_json", path=path, reason=f"JSON {type(data).__name__}"))
    return data


def _not_finite(word: str) -> float:
    raise ValueError(word[:20])


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _not_finite(digits)


def _empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Room for a tensor; if it is large, memory that the system has back as soon as the tensor is gone.

    The allocator would keep some of it for itself, between the weights that it gives room to meanwhile: a fifth of a model more.
    """
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(mmap.mmap(-1, size), dtype=dtype).view(shape)


def _read_into(tensor: Tensor, path: Path, begin: int) -> None:
    """Fill a tensor with the bytes of a file from `begin` on.

    Raises:
        UserError: if the file is no longer what it was when its header was read.
    """
    wanted = tensor.reshape(-1).view(torch.uint8).numpy().data
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(begin)
            # The system may give less than it is asked for, 2 GB at most.
            while wanted and (count := file.readinto(wanted)):
                wanted = wanted[count:]
    except OSError as error:
        raise UserError(say("exchange.unreadable", path=path, reason=error.strerror)) from error
    if wanted:
        raise UserError(say("exchange.changed", path=path))


def _sharded(folder: Path) -> dict[str, Place]:
    """Where each tensor of several files lies.

    Raises:
        UserError: as `open_safetensors`.
    """
    files = _index(folder / INDEX)
    # Before any is read: the missing one may be the last of many.
    for file in sorted(set(files.values())):
        if not is_regular(folder / file):
            raise UserError(say("exchange.shard_missing", path=folder / file, index=INDEX))
    places: dict[str, Place] = {}
    for file in sorted(set(files.values())):
        for name, place in places_in(folder / file).items():
            if name in places:
                raise UserError(say("exchange.safetensors_twice", path=folder, name=name))
            places[name] = place
    for name, file in files.items():
        if name not in places or places[name].file.name != file:
            raise UserError(say("exchange.shard_lacks", path=folder / file, index=INDEX, name=shown(name)))
    return places


def _index(path: Path) -> dict[str, str]:
    """The file of each tensor.

    Raises:
        UserError: if the index is damaged, or names a file that is not one of its folder.
    """
    files = read_object(path).get("weight_map")
    if not isinstance(files, dict) or not files or not all(isinstance(file, str) for file in files.values()):
        raise UserError(say("exchange.index_map", path=path))
    for file in sorted(set(files.values())):
        if not _stays(file):
            raise UserError(say("exchange.index_leaves", path=path, name=shown(file)))
    return files


def _stays(name: str) -> bool:
    """Whether a name is that of a file in the folder itself, on every system."""
    alone = name == PurePosixPath(name).name == PureWindowsPath(name).name
    return alone and name not in ("", "..") and is_name(name)
