"""The tensors of a GGUF file, dequantised a piece at a time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from clearhead.formats.gguf.header import GgufHeader
from clearhead.formats.gguf.package import dequantised
from clearhead.messages import UserError, say

STEP = 1 << 18
"""About how many numbers are dequantised at a time: the formulas take several times the memory of what they make."""


@dataclass(frozen=True)
class GgufTensors:
    """The tensors of a file, which is opened for each reading: nothing of it stays in memory.

    Args:
        header: what the file says of them.
    """

    header: GgufHeader

    @property
    def source(self) -> Path:
        """As `Tensors.source`."""
        return self.header.path

    @property
    def names(self) -> Collection[str]:
        """As `Tensors.names`."""
        return self.header.tensors.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        """As `Tensors.shape`."""
        return self.header.tensors[name].shape

    def read(self, name: str, first: int = 0, last: int | None = None) -> Tensor:
        """As `Tensors.read`; always float32."""
        shape = self.shape(name)
        if len(shape) == 1:
            # One axis is one row of blocks, which rows of one number would cut.
            return self._rows(name, 0, 1).reshape(shape)[first:last]
        begin, end, _ = slice(first, last).indices(shape[0])
        return self._rows(name, begin, end).reshape(-1, *shape[1:])

    def _rows(self, name: str, begin: int, end: int) -> Tensor:
        """Rows of a tensor seen as a matrix."""
        info = self.header.tensors[name]
        width = info.row_size // info.kind.size * info.kind.numbers
        made = torch.empty(max(0, end - begin), width)
        step = max(1, STEP // width)
        try:
            with self.source.open("rb", buffering=0) as file:
                file.seek(info.begin + begin * info.row_size)
                for row in range(0, len(made), step):
                    rows = min(step, len(made) - row)
                    # Blocks know nothing of rows, and one long row takes a third of the time.
                    numbers = dequantised(self._bytes(file, name, rows * info.row_size), info.kind)
                    made[row : row + rows] = torch.from_numpy(numbers).view(rows, width)
        except OSError as error:
            raise UserError(say("gguf.unreadable", path=self.source, reason=error.strerror or error)) from error
        return made

    def _bytes(self, file: FileIO, name: str, count: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        raw = np.empty(count, np.uint8)
        got = 0
        # One call reads at most 2 GB.
        while got < count:
            more = file.readinto(raw[got:].data)
            if not more:
                raise UserError(say("gguf.cut", path=self.source, what=name, wanted=count, left=got))
            got += more
        return raw
