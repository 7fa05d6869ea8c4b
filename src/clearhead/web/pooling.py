"""Pictures of weights: fields that keep their largest weight, and roots as bytes."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

FULL = 255
"""The byte of the largest weight."""


def field_of(length: int, most: int) -> int:
    """The smallest whole number of places in a field with which `length` places become at most `most` fields.

    Args:
        length: at least 1.
        most: at least 1.
    """
    return math.ceil(length / most)


def pooled(weights: Tensor, field: tuple[int, int]) -> Tensor:
    """The largest weight of each field: (h,t,s) -> (h,⌈t/f⌉,⌈s/g⌉). So a diagonal of single weights stays as bright as it is.

    Args:
        weights: 0 or more.
        field: f queries by g keys; the last ones hold what is left.
    """
    if field == (1, 1):
        return weights
    # First of the rows that belong together, each a run of neighbours in memory; of the columns only what that leaves.
    (heads, rows, columns), (high, wide) = weights.shape, field
    whole = rows // high * high
    parts = [weights[:, :whole].reshape(heads, -1, high, columns).amax(2)] if whole else []
    parts += [weights[:, whole:].amax(1, keepdim=True)] if whole < rows else []
    lines = F.pad(torch.cat(parts, 1) if len(parts) > 1 else parts[0], (0, -columns % wide))
    return lines.reshape(heads, lines.shape[1], -1, wide).amax(3)


def roots(weights: Tensor, most: float = 1.0) -> Tensor:
    """Bytes 255 √(w/most): a root, for most weights of a long row are small and would all be nothing; any shape -> uint8.

    Back: w = most · (byte / 255)². A weight that is no number is drawn as nothing.

    Args:
        weights: from 0 to `most`.
        most: what 255 stands for.
    """
    shares = weights.nan_to_num(0.0) / (most or 1.0)
    return shares.clamp(0, 1).sqrt().mul(FULL).round().to(torch.uint8)
