"""A file of `torch.save`, read without executing anything in it: looked at first, then read by PyTorch with `weights_only`."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import IO

import torch
from torch import Tensor
from torch.serialization import MAGIC_NUMBER

from clearhead.formats.pickles.look import DAMAGE, MOST_BYTES, Looked, check_steps, look
from clearhead.formats.tensors import HeldTensors, Tensors
from clearhead.messages import UserError, say
from clearhead.text.lines import reason_of, shown

MAPPED = 1 << 23
"""How many bytes are read before the pages of the file that have been read are given back."""


def read_torch(path: Path) -> object:
    """What `torch.save` put into a file, its tensors mapped into memory where the format allows it.

    Raises:
        UserError: if it is no such file, is damaged, claims what it does not hold, or wants code to be run.
    """
    try:
        is_zip = _is_zip(path)
        looked = _look_into_zip(path) if is_zip else _look_into_stream(path)
        if looked.code is None:
            return _loaded(path, mapped=is_zip)
    except UserError:
        raise
    except DAMAGE as error:
        raise damaged(path, error) from None
    raise UserError(say("exchange.pickle_code", path=path, name=shown(looked.code)))


def damaged(path: Path, error: BaseException) -> UserError:
    """One line that says what a reader of pickles met."""
    return UserError(say("exchange.pickle_damaged", path=path, reason=reason_of(error)))


def torch_tensors(path: Path, held: Mapping[str, Tensor], weights: Callable[[object], Mapping[str, Tensor]]) -> Tensors:
    """The tensors of a file that has been read.

    Args:
        path: the file.
        held: its tensors by name.
        weights: finds them, by the same names, in what the file holds.
    """
    return MappedTensors(path, held, weights) if _is_zip(path) else HeldTensors(path, held)


class MappedTensors:
    """The tensors of a zip file of `torch.save`, of which only so much is in memory as has just been read.

    PyTorch maps the file as a whole, and what has been read of it stays in memory until the map is gone. So the file is mapped
    anew after every `MAPPED` bytes.
    """

    def __init__(
        self, source: Path, held: Mapping[str, Tensor], weights: Callable[[object], Mapping[str, Tensor]]
    ) -> None:
        self._source, self._weights = source, weights
        self._shapes = {name: tuple(tensor.shape) for name, tensor in held.items()}
        self._held: Mapping[str, Tensor] | None = None
        self._read = 0

    @property
    def source(self) -> Path:
        """As `Tensors.source`."""
        return self._source

    @property
    def names(self) -> Collection[str]:
        """As `Tensors.names`."""
        return self._shapes.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        """As `Tensors.shape`."""
        return self._shapes[name]

    def read(self, name: str, first: int = 0, last: int | None = None) -> Tensor:
        """As `Tensors.read`."""
        try:
            return self._copied(name, *slice(first, last).indices(self._shapes[name][0])[:2])
        except UserError:
            raise
        except DAMAGE as error:
            raise damaged(self._source, error) from None

    def _copied(self, name: str, first: int, last: int) -> Tensor:
        rows = self._map(name)[first:last]
        copied, step = torch.empty_like(rows), max(1, MAPPED * len(rows) // max(1, rows.nbytes))
        del rows
        for start in range(0, last - first, step):
            piece = self._map(name)[first + start : min(first + start + step, last)]
            copied[start : start + len(piece)] = piece
            self._read += piece.nbytes
            if self._read >= MAPPED:
                self._held, self._read = None, 0
        return copied

    def _map(self, name: str) -> Tensor:
        if self._held is None:
            self._held = self._weights(_loaded(self._source, mapped=True))
        if tuple(self._held[name].shape) != self._shapes[name]:
            raise ValueError("it has been changed since it was opened")
        return self._held[name]


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _loaded(path: Path, *, mapped: bool) -> object:
    with warnings.catch_warnings():
        # Of protocols other than the usual one; what cannot be read is an error all the same.
        warnings.simplefilter("ignore")
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)


def _look_into_zip(path: Path) -> Looked:
    """The description in a zip file, every claim held against the records.

    Raises:
        BadZipFile: if a record is packed, is there twice, or is not as long as the description says.
    """
    length = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        records: dict[str, int] = {}
        for each in archive.infolist():
            # A packed record is not what PyTorch maps, and may be a thousand times as long as the file.
            if each.compress_type != zipfile.ZIP_STORED or each.file_size != each.compress_size:
                raise zipfile.BadZipFile(f"{each.filename} is packed")
            if each.filename in records or each.header_offset + each.file_size > length:
                raise zipfile.BadZipFile(f"{each.filename} is not where it should be")
            records[each.filename] = each.file_size
        folder = next(iter(records), "").partition("/")[0]
        if f"{folder}/constants.pkl" in records:
            raise UserError(say("exchange.pickle_code", path=path, name="TorchScript"))
        if records.get(f"{folder}/data.pkl", 0) > MOST_BYTES:
            raise zipfile.BadZipFile("its description is longer than that of any model")
        looked = look(archive.read(f"{folder}/data.pkl"))
    for key, claimed in looked.storages.items():
        found = records.get(f"{folder}/data/{key}", 0)
        if claimed != found and looked.code is None:
            raise zipfile.BadZipFile(f"data/{key} has {found:,} bytes and should have {claimed:,}")
    return looked


def _look_into_stream(path: Path) -> Looked:
    """The description in a file of PyTorch before 1.6: five pickles, then the numbers.

    Raises:
        ValueError: if it is none, or claims more than the file holds.
    """
    with path.open("rb") as file:
        first = _next(file)
        if first.value != MAGIC_NUMBER:
            if first.code is not None:
                return first
            raise ValueError("it was not written by torch.save")
        _, _, looked, keys = (_next(file) for _ in range(4))
        if looked.code is not None:
            return looked
        if not isinstance(keys.value, list) or not looked.storages.keys() <= set(keys.value):
            raise ValueError("numbers are missing")
        if sum(looked.storages.values()) > path.stat().st_size - file.tell():
            raise ValueError("it is cut short")
    return looked


def _next(file: IO[bytes]) -> Looked:
    start = file.tell()
    check_steps(file)
    end = file.tell()
    file.seek(start)
    return look(file.read(end - start))
