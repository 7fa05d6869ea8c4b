"""What holds tensors, whatever the file."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol

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
