"""Token ids, checked once: one row of whole numbers inside the vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from clearhead.messages import UserError, say

__all__ = ["Ids", "checked_ids"]

Ids: TypeAlias = Sequence[int] | NDArray[np.integer]
"""One document's token ids."""


def checked_ids(ids: Ids, size: int) -> NDArray[np.int64]:
    """The ids as one row of int64.

    Args:
        ids: whole numbers, 0 ≤ id < size.
        size: the size of the vocabulary.

    Raises:
        UserError: an id is outside the vocabulary (the message names both numbers), or `ids` is no row of whole
            numbers.
    """
    row = np.asarray(ids)
    if row.shape == (0,):
        return np.zeros(0, dtype=np.int64)
    # An object array holds Python integers too large for any machine type; they can still be compared and named.
    if row.ndim != 1 or row.dtype.kind not in "iuO":
        raise UserError(say("text.ids_not_whole", shape=row.shape, kind=row.dtype))
    outside = row[(row < 0) | (row >= size)]
    if outside.size:
        raise UserError(say("text.id_outside", id=outside[0], size=size, last=size - 1))
    return row.astype(np.int64)
