"""Where a forward puts what is kept of it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

PIECE = 2**26
"""Bytes that are taken at a time, at least. An allocator asks the system for a piece as large as this by itself and gives it back whole,
and what is not written on takes no memory. What is kept for long between what a forward throws away would leave holes in the heap that
nothing fits: with GPT-2's size and 2,048 tokens 100 MB of them, and more with each prompt."""
ALIGNED = 64
"""Each tensor begins at such a number of bytes, as PyTorch's own do."""


class Shelf:
    """Takes copies of tensors and stands them side by side in few large pieces of memory."""

    def __init__(self) -> None:
        self._free = torch.empty(0, dtype=torch.uint8)

    def put(self, tensor: Tensor) -> Tensor:
        """A copy, contiguous; a tensor of another device than the CPU as it is, for there other rules hold.

        Args:
            tensor: of any shape and dtype.
        """
        if tensor.device.type != "cpu":
            return tensor
        size = tensor.nbytes
        room = math.ceil(size / ALIGNED) * ALIGNED
        if room > len(self._free):
            self._free = torch.empty(max(PIECE, room), dtype=torch.uint8)
        place, self._free = self._free[:size], self._free[room:]
        return place.view(tensor.dtype).view(tensor.shape).copy_(tensor)
