"""What one tensor is to another: a multiple, a shift, a mixture, heads that are missing or changed places."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.checking.common.trial import apart

NEAR = 1e-3
"""A factor this close to 1 is 1."""


def multiple(ours: Tensor, theirs: Tensor, allowed: float) -> float | None:
    """c with theirs = c · ours; None if there is none but 1.

    Args:
        ours: a tensor.
        theirs: another of the same shape.
        allowed: what rounding explains, beside the largest number.
    """
    square = float((ours * ours).sum())
    factor = float((ours * theirs).sum()) / square if square > 0 else 1.0
    holds = apart(factor * ours, theirs) <= allowed and abs(factor - 1.0) > min(NEAR, 4 * allowed)
    return factor if holds else None


def mixture(first: Tensor, second: Tensor, theirs: Tensor, allowed: float) -> tuple[float, float] | None:
    """(a, b) with theirs = a · first + b · second; None if there are none."""
    columns = torch.stack([first.flatten(), second.flatten()], dim=1)
    found = torch.linalg.lstsq(columns, theirs.flatten()[:, None]).solution[:, 0].tolist()
    return (found[0], found[1]) if apart(found[0] * first + found[1] * second, theirs) <= allowed else None


def shift(ours: Tensor, theirs: Tensor, allowed: float) -> Tensor | None:
    """The vector (D) that is added at every position; None if what is added is not the same everywhere."""
    gap = theirs - ours
    mean = gap.flatten(0, -2).mean(dim=0)
    if gap.flatten(0, -2).shape[0] < 2 or apart(ours + mean, theirs) > allowed:
        return None
    return mean


def head_factors(ours: Tensor, theirs: Tensor, allowed: float) -> list[float] | None:
    """c of each head with theirs = c · ours, (B,H,T,d); None if some head has none, or all have the same."""
    factors = []
    for head in range(ours.shape[1]):
        one, other = ours[:, head], theirs[:, head]
        square = float((one * one).sum())
        factor = float((one * other).sum()) / square if square > 0 else 1.0
        if apart(factor * one, other) > allowed:
            return None
        factors.append(0.0 if abs(factor) < NEAR else 1.0 if abs(factor - 1) < NEAR else factor)
    return factors if len(set(factors)) > 1 else None


def head_order(ours: Tensor, theirs: Tensor, allowed: float) -> list[int] | None:
    """Which head of ours each of theirs is, (B,H,T,d); None if they stand in order, or are others."""
    heads = range(ours.shape[1])
    order = [next((o for o in heads if apart(ours[:, o], theirs[:, t]) <= allowed), None) for t in heads]
    if None in order or order == list(heads):
        return None
    return [each for each in order if each is not None]
