"""Whether two tensors hold the same numbers: as they lie, up to a view, or arranged otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.checking.common.trial import apart

HIDDEN = 1e8
"""Numbers beyond stand for "hidden", however large the author made them."""

NEAR = 1e-4
"""How near sums must be before the tensors themselves are compared."""

FIRST = 64
"""How many numbers usually tell that not all are the same."""

FEW = 4
"""The most axes whose orders are all tried on both sides."""


class Mark(NamedTuple):
    """Sums that do not change with the order of the numbers.

    Args:
        numbers: how many there are.
        mean: their mean.
        size: the root of the mean of their squares.
        skew: the mean of their cubes, its third root.
    """

    numbers: int
    mean: float
    size: float
    skew: float


def plain(x: Tensor) -> Tensor:
    """The tensor in float64, complex numbers as pairs, everything hidden as one number."""
    x = torch.view_as_real(x) if x.is_complex() else x
    x = x.detach().double()
    if not x.numel() or bool(x.abs().max() < HIDDEN):
        return x
    return torch.where(x.abs() >= HIDDEN, HIDDEN * x.sign(), x)


def mark(x: Tensor) -> Mark:
    """The mark of a tensor; what is hidden does not count."""
    x = x.flatten()
    if x.numel() and not bool(x.abs().max() < HIDDEN):
        x = torch.where(x.abs() >= HIDDEN, torch.zeros_like(x), x)
    count = max(x.numel(), 1)
    cubes = float((x * x * x).sum()) / count
    return Mark(x.numel(), float(x.sum()) / count, float((x**2).sum() / count) ** 0.5, _root(cubes))


def unsized(x: Tensor) -> Mark:
    """The mark of a tensor but for its size: the same for all its multiples."""
    size = float(x.square().mean().sqrt())
    return mark(x / size if size else x)


def _root(x: float) -> float:
    return math.copysign(abs(x) ** (1 / 3), x)


def alike(one: Mark, other: Mark) -> bool:
    """Whether two tensors can hold the same numbers."""
    near = NEAR * max(one.size, other.size)
    # The third root makes much of little: a sum of cubes of nothing but rounding.
    third = max(one.size, other.size) ** 3 * NEAR
    return (
        one.numbers == other.numbers
        and abs(one.size - other.size) <= near
        and abs(one.mean - other.mean) <= near
        and abs(one.skew**3 - other.skew**3) <= third
    )


def gap(x: Tensor, y: Tensor) -> float:
    """The largest difference beside the largest number that is not hidden; 1 where one hides what the other does not."""
    if x.shape != y.shape:
        return float("inf")
    if not x.numel():
        return 0.0
    far, size = float((x - y).abs().max()), max(float(x.abs().max()), float(y.abs().max()))
    if math.isfinite(far) and size < HIDDEN:
        return far / size if size else far
    hidden = x.abs() >= HIDDEN
    if not bool(hidden.any()) and not bool((y.abs() >= HIDDEN).any()):
        return apart(x, y)
    if not torch.equal(hidden, y.abs() >= HIDDEN):
        return 1.0
    return apart(x.masked_fill(hidden, 0.0), y.masked_fill(hidden, 0.0))


def constant(x: Tensor) -> bool:
    """Whether all numbers are the same, or what is not hidden is: no evidence of anything."""
    some = x.flatten()[:FIRST]
    if bool(((some != some[:1]) & (some.abs() < HIDDEN)).any()) and bool(some[:1].abs() < HIDDEN):
        return False
    seen = x[x.abs() < HIDDEN] if x.dim() else x[None]
    return seen.numel() < 2 or bool((seen == seen.flatten()[0]).all())


def laid(x: Tensor, like: Tensor, near: float) -> Tensor | None:
    """The tensor as it lies in the other's axes, if some order of its axes makes the two equal; None if none does.

    Args:
        x: to be laid out; any shape of as many numbers.
        like: the other.
        near: the largest difference beside the largest number.
    """
    if x.shape == like.shape and gap(x, like) <= near:
        return x
    for each in views(x, like):
        if each.data_ptr() == x.data_ptr() and each.shape == x.shape and each.stride() == x.stride():
            # As it lies it has been looked at.
            continue
        if gap(each, like) <= near:
            return each
    return None


def views(x: Tensor, like: Tensor) -> Iterator[Tensor]:
    """The tensor in all orders of its axes, merged and split into the shape of the other in all orders of its own."""
    if x.numel() != like.numel():
        return
    short, wanted = x.squeeze(), like.squeeze()
    if short.dim() > FEW + 1 or wanted.dim() > FEW + 1:
        return
    if sorted(short.shape) == sorted(wanted.shape):
        for order in permutations(range(short.dim())):
            turned = short.permute(order)
            if turned.shape == wanted.shape:
                yield turned.reshape(like.shape)
        return
    flat, whole = short.dim() <= FEW, wanted.dim() <= FEW
    orders = list(permutations(range(short.dim()))) if flat else [tuple(range(short.dim()))]
    for back in permutations(range(wanted.dim())) if whole else [tuple(range(wanted.dim()))]:
        inverse = [back.index(n) for n in range(wanted.dim())]
        shape = [wanted.shape[n] for n in back]
        for order in orders:
            yield short.permute(order).reshape(shape).permute(inverse).reshape(like.shape)


def rearranged(x: Tensor, y: Tensor, near: float) -> bool:
    """Whether two tensors hold the same numbers in any order at all."""
    if x.numel() != y.numel():
        return False
    return gap(x.flatten().sort().values, y.flatten().sort().values) <= near
