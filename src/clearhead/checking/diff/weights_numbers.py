"""Finding partners by what tensors hold: sums that no order changes, and rows that are found in other tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.checking.diff.relations import row_numbers
from clearhead.checking.diff.relations_views import PIECE, near
from clearhead.checking.diff.weights_recipes import Piece, Recipe
from clearhead.messages import say

CACHED = 1 << 14
"""How many numbers are read at a time where they are read several times: few enough to stay near, and for one thread alone.

Measured on 38.6 million numbers with other work on the machine: 0.2 s so, 1.8 s with 2^20 of them, shared out to two threads.
"""


class Sums:
    """The tensors of a side with the sum of each and that of its squares.

    Args:
        tensors: by name.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = tensors

    @cached_property
    def of(self) -> dict[str, tuple[int, float, float]]:
        """How many numbers, their sum and their norm, by name."""
        return {name: _sums(tensor) for name, tensor in self.tensors.items()}

    def partners(
        self, other: Sums, left: Mapping[str, Tensor], left_there: Mapping[str, Tensor]
    ) -> Iterator[tuple[str, str]]:
        """Names of ours and theirs that hold the same numbers in some order, and no other tensor does.

        Args:
            other: the other side.
            left: of ours those that have no partner.
            left_there: of theirs.
        """
        mine = {name: [each for each in left_there if _alike(self.of[name], other.of[each])] for name in left}
        for name, found in mine.items():
            if len(found) == 1 and sum(found[0] in each for each in mine.values()) == 1 and not flat(left[name]):
                yield name, found[0]

    def holder(self, tensor: Tensor, but: str) -> str | None:
        """The name of the tensor that has exactly these numbers, None if there is none, or they are one number alone.

        Args:
            tensor: what is looked for.
            but: the name that is not meant.
        """
        if flat(tensor):
            return None
        # The first rows tell nearly all others apart.
        fitting = (name for name, each in self.tensors.items() if name != but and each.shape == tensor.shape)
        return next((name for name in fitting if near(self.tensors[name], tensor, 0.0)), None)


def _sums(tensor: Tensor) -> tuple[int, float, float]:
    flat = tensor.detach().reshape(len(tensor) if tensor.dim() and tensor.numel() else 1, -1 if tensor.numel() else 0)
    total, squares = 0.0, 0.0
    for piece in torch.split(flat, _step(flat)):
        wide = piece.double()
        total, squares = total + float(wide.sum()), squares + float(wide.square().sum())
    return tensor.numel(), total, math.sqrt(squares)


def _step(flat: Tensor) -> int:
    """How many rows are looked at together."""
    return max(1, PIECE // max(1, flat.shape[1]))


def _alike(one: tuple[int, float, float], other: tuple[int, float, float]) -> bool:
    """Whether two tensors may hold the same numbers: sums in another order differ by rounding."""
    size = 1e-9 * one[2]
    return one[0] == other[0] and abs(one[2] - other[2]) <= size and abs(one[1] - other[1]) <= size * math.sqrt(one[0])


def flat(tensor: Tensor) -> bool:
    """Whether all numbers are one: such a tensor says nothing of where it comes from."""
    if tensor.numel() < 2:
        return True
    first = tensor[(0,) * tensor.dim()]
    return bool((tensor[-1] == first).all()) and bool((tensor == first).all())


def mask_numbers(tensor: Tensor) -> str:
    """The two numbers that a matrix of a mask holds, "" if it is none."""
    if tensor.dim() < 2 or tensor.shape[-1] < 2 or not tensor.numel():
        return ""
    low, high = float(tensor.min()), float(tensor.max())
    usual = (low, high) == (0.0, 1.0) or (high == 0.0 and low <= -1e3)
    only = usual and bool(((tensor == low) | (tensor == high)).all())
    return f"{low:g}, {high:g}" if only else ""


def joined(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> Iterator[Recipe]:
    """Matrices of B whose rows are those of several of A's, or some rows of one.

    Args:
        a: tensors of A without a partner.
        b: tensors of B without one.
    """
    rows = {name: row_numbers(each) for name, each in a.items() if each.dim() == 2 and each.numel()}
    for theirs, tensor in b.items():
        if tensor.dim() != 2 or not tensor.numel():
            continue
        wanted = row_numbers(tensor)
        same = {name: found for name, found in rows.items() if a[name].shape[1] == tensor.shape[1]}
        pieces = _walked(same, wanted)
        if pieces and (len(pieces) > 1 or len(tensor) < len(a[pieces[0].name])):
            yield Recipe(theirs, tuple(pieces), False, "numbers")


def _walked(rows: Mapping[str, Tensor], wanted: Tensor) -> list[Piece]:
    """The pieces that the wanted rows are, one after the other; none if a row is nowhere."""
    found: list[Piece] = []
    start = 0
    while start < len(wanted):
        longest: Piece | None = None
        for name, numbers in rows.items():
            for first in _near(numbers, wanted[start]).nonzero().flatten().tolist()[:4]:
                count = _run(numbers[first:], wanted[start:])
                if longest is None or count > longest.last - longest.first:
                    longest = Piece(name, first, first + count)
        # A row or two may be alike by chance, as rows of zeros are.
        if longest is None or longest.last - longest.first < min(3, len(wanted)):
            return []
        found.append(longest)
        start += longest.last - longest.first
    return found


def _near(one: Tensor, other: Tensor) -> Tensor:
    return (one - other).abs() <= 1e-9 * other.abs() + 1e-12


def _run(one: Tensor, other: Tensor) -> int:
    """How many numbers from the first on are equal."""
    length = min(len(one), len(other))
    apart = (~_near(one[:length], other[:length])).nonzero()
    return int(apart[0]) if len(apart) else length


class Gap(NamedTuple):
    """How far two tensors are apart.

    Args:
        text: in a sentence.
        part: the size of the difference beside that of A's; infinity if A's is zero, or the shapes differ.
        share: how many of the numbers differ, as a part of all.
        id: what kind of difference.
    """

    text: str
    part: float
    share: float = 1.0
    id: str = "weights.changed"


def gap_of(one: Tensor, other: Tensor) -> Gap:
    """How far two tensors are apart, read a piece at a time."""
    if one.shape != other.shape:
        return Gap(say("weights.shapes", one=tuple(one.shape), other=tuple(other.shape)), math.inf, id="weights.shapes")
    pieces = zip(torch.split(one.reshape(-1), CACHED), torch.split(other.reshape(-1), CACHED), strict=True)
    different, squares, size, largest = 0, 0.0, 0.0, 0.0
    for first, second in pieces:
        wide = first.double()
        gap = wide - second.double()
        different += int(torch.count_nonzero(gap))
        squares, size = squares + float(gap.square().sum()), size + float(wide.square().sum())
        largest = max(largest, float(gap.abs().max()) if gap.numel() else 0.0)
    share = different / max(1, one.numel())
    if math.isnan(squares) or math.isnan(size):
        lost = [int(each.isnan().sum()) for each in (one, other)]
        if any(lost):
            return Gap(say("weights.nan", a=lost[0], b=lost[1], number=one.numel()), math.inf, share, "weights.nan")
    part = math.sqrt(squares / size) if size else math.inf
    return Gap(
        say(
            "weights.changed",
            different=different,
            number=one.numel(),
            largest=f"{largest:.3g}",
            part=f"{part:.1%}" if size else "-",
        ),
        part,
        share,
    )
