"""Two tensors seen as matrices of one shape: as they lie, transposed, or with three axes in another order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

import torch
from torch import Tensor

PIECE = 1 << 20
"""How many numbers are compared at a time: copies of a large matrix are not made."""


class View(NamedTuple):
    """A way to see a tensor.

    Args:
        split: the shape that it is given first.
        axes: the order in which its axes are then taken.
        matrix: the shape (rows, columns) of what comes out.
    """

    split: tuple[int, ...]
    axes: tuple[int, ...]
    matrix: tuple[int, int]

    @property
    def turned(self) -> bool:
        """Whether axes change their places."""
        return self.axes != tuple(range(len(self.axes)))

    @property
    def transposed(self) -> bool:
        """Whether it is a matrix whose rows are columns."""
        return self.axes == (1, 0)

    def of(self, x: Tensor) -> Tensor:
        """The tensor, seen so."""
        return x.reshape(self.split).permute(self.axes).reshape(self.matrix)


def matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """The shape of a tensor as a matrix: the last axis is kept, a vector is a column."""
    full = _full(shape)
    if len(full) <= 1:
        return (full[0] if full else 1), 1
    return torch.Size(full[:-1]).numel(), full[-1]


def views(a: tuple[int, ...], b: tuple[int, ...]) -> Iterator[View]:
    """Every way to see a tensor of shape `a` as the matrix that one of shape `b` is; as it lies comes first.

    Args:
        a: the shape of A's.
        b: the shape of B's, as many numbers.
    """
    one, other, wanted = _full(a), _full(b), matrix(b)
    if matrix(a) == wanted:
        yield View(wanted, (0, 1), wanted)
    if len(one) == 2 and len(other) == 2 and one[::-1] == other:
        yield View((one[0], one[1]), (1, 0), wanted)
    for split, axes in _three(one, other):
        if axes != (0, 1, 2) or matrix(a) != wanted:
            yield View(split, axes, wanted)


def _three(one: tuple[int, ...], other: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Three axes in every order: those of A's, or those that become B's."""
    for axes in permutations(range(3)):
        if len(one) == 3:
            if len(other) != 3 or tuple(one[axis] for axis in axes) == other:
                yield one, axes
        elif len(other) == 3:
            yield tuple(other[axis] for axis in axes), tuple(axes.index(axis) for axis in range(3))


def _full(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without the axes that hold one entry."""
    return tuple(size for size in shape if size != 1)


class Turn(NamedTuple):
    """What turns A's tensor into B's: rounded, seen otherwise, rows and columns picked, times a factor, plus a number.

    Args:
        view: how it is seen.
        shape: of B's.
        rows: which row of A's is each of B's; None if in order.
        columns: which column.
        factor: what it is multiplied by.
        shift: what is added.
        kind: the type that it is rounded to first.
    """

    view: View
    shape: tuple[int, ...]
    rows: Tensor | None = None
    columns: Tensor | None = None
    factor: float = 1.0
    shift: float = 0.0
    kind: torch.dtype | None = None

    def apply(self, x: Tensor) -> Tensor:
        """A's tensor turned into B's."""
        seen = self.view.of(x if self.kind is None else x.to(self.kind).to(x.dtype))
        return self._done(seen, self.rows).reshape(self.shape)

    def agrees(self, a: Tensor, b: Tensor, tolerance: float) -> bool:
        """Whether it does, a piece at a time; what is rounded must have been.

        Args:
            a: A's, not yet seen otherwise.
            b: B's, as a matrix.
            tolerance: the largest difference beside the largest number of the piece.
        """
        seen, step = self.view.of(a), max(1, PIECE // max(1, b.shape[1]))
        every = torch.arange(len(b)) if self.rows is None else self.rows
        for first in range(0, len(b), step):
            piece = b[first : first + step]
            rows = every[first : first + step] if self.rows is not None else slice(first, first + step)
            if not near(self._done(seen, rows), piece, tolerance):
                return False
        return True

    def _done(self, seen: Tensor, rows: Tensor | slice | None) -> Tensor:
        made = seen if rows is None else seen[rows]
        made = made if self.columns is None else made[:, self.columns]
        made = made if self.factor == 1.0 else made * self.factor
        return made if self.shift == 0.0 else made + self.shift


def near(one: Tensor, other: Tensor, tolerance: float) -> bool:
    """Whether two tensors of a shape are equal, up to a part of the largest number of a piece; what is no number is no equal."""
    if one.dim() == 0:
        return near(one[None], other[None], tolerance)
    # The first piece that differs ends it; a short one comes first.
    rows = max(1, PIECE // max(1, one[:1].numel()))
    pieces = [(0, 16), *((first, first + rows) for first in range(0, len(one), rows))]
    return all(_near(one[first:last], other[first:last], tolerance) for first, last in pieces)


def _near(one: Tensor, other: Tensor, tolerance: float) -> bool:
    if one.dtype == other.dtype and tolerance == 0.0:
        return torch.equal(one, other)
    first, second = one.to(torch.float64), other.to(torch.float64)
    if not second.numel() or tolerance == 0.0:
        return torch.equal(first, second)
    return bool((first - second).abs().max() <= tolerance * second.abs().max())


def sampled(shape: tuple[int, int], count: int = 4096) -> tuple[Tensor, Tensor]:
    """Places of a matrix, spread over it."""
    number = shape[0] * shape[1]
    # A step that no width is a multiple of, or a whole column would be all that is seen.
    flat = torch.arange(min(count, number)) * (number / min(count, number)) if number else torch.zeros(0)
    flat = flat.to(torch.int64)
    return flat // shape[1], flat % shape[1]
