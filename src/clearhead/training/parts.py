"""A batch in parts of so many rows: less memory at once, the same gradients."""

from __future__ import annotations

from typing import TypeVar, cast

from torch import Tensor

from clearhead.messages import UserError, say

Sample = TypeVar("Sample")


def cut(batch: Sample, rows: int) -> list[Sample]:
    """The batch cut along its first axis: parts of `rows` rows, the last perhaps of fewer; itself if it has no more.

    Parts are views. They keep the padding of the whole batch, so that a part computes what its rows would have computed.

    Args:
        batch: a NamedTuple of tensors that share their first axis.
        rows: at least 1.

    Raises:
        UserError: if `rows` is below 1, or the batch is something else, which nobody can cut without knowing what it means.
    """
    if rows < 1:
        raise UserError(say("training.setting", name="micro_batch", value=rows, wanted="≥ 1"))
    if not isinstance(batch, tuple) or not hasattr(batch, "_make"):
        raise UserError(say("updates.not_cut", kind=type(batch).__name__))
    tensors = [each for each in batch if isinstance(each, Tensor) and each.dim() > 0]
    if len(tensors) != len(batch) or len({len(each) for each in tensors}) != 1:
        raise UserError(say("updates.not_cut", kind=type(batch).__name__))
    count = len(tensors[0])
    if count <= rows:
        return [cast(Sample, batch)]
    make = type(batch)._make
    return [make(each[first : first + rows] for each in tensors) for first in range(0, count, rows)]
