"""What holds tensors, whatever the file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor


class Tensors(Protocol):
    """Named tensors in a file or several, read a piece at a time.

    Whoever makes one has held names, shapes and lengths against the file: reading fails only if the file has changed since.
    """

    @property
    def source(self) -> Path:
        """The file or folder, for messages."""
        ...

    @property
    def names(self) -> Collection[str]:
        """Every tensor that is there."""
        ...

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, its first axis that of `read`'s rows."""
        ...

    def read(self, name: str, first: int = 0, last: int | None = None) -> Tensor:
        """The rows `first` to before `last` of a tensor (all of it if not given), on the CPU; what is quantised comes as float32.

        The tensor is the caller's own: no part of the file stays mapped for it.

        Raises:
            UserError: if the file cannot be read any more.
        """
        ...


PIECE = 1 << 18
"""How many numbers are read at a time, where the whole is not needed at once."""


def equal(tensors: Tensors, first: str, second: str) -> bool:
    """Whether two tensors of a file have one shape and the same numbers; no more than `PIECE` of each are in memory at a time."""
    shape = tensors.shape(first)
    if shape != tensors.shape(second):
        return False
    step = max(1, PIECE // max(1, torch.Size(shape[1:]).numel()))
    return all(
        torch.equal(tensors.read(first, start, start + step), tensors.read(second, start, start + step))
        for start in range(0, shape[0], step)
    )


@dataclass(frozen=True)
class HeldTensors:
    """Tensors that are in memory, or mapped into it.

    Args:
        source: where they come from, for messages.
        held: by name.
    """

    source: Path
    held: Mapping[str, Tensor]

    @property
    def names(self) -> Collection[str]:
        """As `Tensors.names`."""
        return self.held.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        """As `Tensors.shape`."""
        return tuple(self.held[name].shape)

    def read(self, name: str, first: int = 0, last: int | None = None) -> Tensor:
        """As `Tensors.read`."""
        return self.held[name][first:last]


@dataclass(frozen=True)
class RenamedTensors:
    """The same tensors under other names.

    Args:
        inner: the tensors.
        inner_names: the name of each in `inner`, by its name here.
    """

    inner: Tensors
    inner_names: Mapping[str, str]

    @property
    def source(self) -> Path:
        """As `Tensors.source`."""
        return self.inner.source

    @property
    def names(self) -> Collection[str]:
        """As `Tensors.names`."""
        return self.inner_names.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        """As `Tensors.shape`."""
        return self.inner.shape(self.inner_names[name])

    def read(self, name: str, first: int = 0, last: int | None = None) -> Tensor:
        """As `Tensors.read`."""
        return self.inner.read(self.inner_names[name], first, last)
