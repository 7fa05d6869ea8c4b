"""What a sampler gives: ids, or a distribution as logits or probabilities; and whether that is the one that it should be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

CHANCE = 1e-10
"""How improbable draws must be before they are called wrong, for each look at them."""
NEAR = 2e-4
"""How far probabilities may be apart where they are given as numbers."""


class Result(NamedTuple):
    """What was returned, in one form.

    Args:
        ids: (N) if ids were.
        values: (N,V) if logits or probabilities were.
        shape: as it was.
    """

    ids: Tensor | None
    values: Tensor | None
    shape: tuple[int, ...]

    @property
    def sums_to_one(self) -> bool:
        """Whether the values are probabilities."""
        values = self.values
        return values is not None and bool((values >= 0).all()) and bool(((values.sum(-1) - 1).abs() < 1e-3).all())


def read(result: Any, rows: int, vocab: int) -> Result:
    """What was returned for logits (N,V).

    Raises:
        TypeError: if it is neither ids nor a distribution.
    """
    if isinstance(result, int) and not isinstance(result, bool):
        return Result(torch.tensor([result]), None, ())
    if isinstance(result, list) and all(isinstance(each, int) for each in result):
        result = torch.tensor(result)
    if isinstance(result, dict):
        result = tuple(result.values())
    if isinstance(result, tuple | list):
        return _of_several([each for each in result if isinstance(each, Tensor)], rows, vocab)
    if isinstance(result, Tensor) and not result.is_floating_point() and result.numel() == rows:
        return Result(result.reshape(-1).long(), None, tuple(result.shape))
    if isinstance(result, Tensor) and result.is_floating_point() and result.numel() == rows * vocab:
        return Result(None, result.detach().reshape(rows, vocab).double(), tuple(result.shape))
    raise TypeError(f"{type(result).__name__} {tuple(getattr(result, 'shape', ()))} is neither ids nor a distribution")


def _of_several(found: list[Tensor], rows: int, vocab: int) -> Result:
    """Ids if there are any, one a row; otherwise values with the ids to which they belong, or values alone."""
    whole = [each for each in found if not each.is_floating_point()]
    real = [each for each in found if each.is_floating_point()]
    if whole and whole[0].numel() == rows:
        return read(whole[0], rows, vocab)
    if whole and real and whole[0].shape == real[0].shape and whole[0].dim() and whole[0].shape[-1] <= vocab:
        places, values = whole[0].reshape(rows, -1), real[0].detach().reshape(rows, -1).double()
        empty = 0.0 if bool((values >= 0).all()) and bool((values <= 1).all()) else -torch.inf
        spread = torch.full((rows, vocab), empty, dtype=torch.float64).scatter(-1, places, values)
        return Result(None, spread, tuple(real[0].shape))
    if real:
        return read(real[0], rows, vocab)
    raise TypeError("neither ids nor a distribution")


@dataclass(frozen=True)
class Drawn:
    """A distribution as it was seen.

    Args:
        chances: (V), counted or given.
        number: how many were drawn; 0 if it was given as numbers.
        failed: what went wrong, "" if nothing did: an error, NaN, or nothing left.
        error: what was raised.
    """

    chances: Tensor
    number: int = 0
    failed: str = ""
    error: Exception | None = None

    def is_like(self, wanted: Tensor) -> bool:
        """Whether it is the distribution `wanted` (V): to rounding, or so that draws do not contradict it."""
        if self.failed:
            return False
        if not self.number:
            return bool(((self.chances - wanted).abs() < NEAR).all())
        # Hoeffding's bound: a frequency f of n draws has at most the chance 2 exp(-n KL(f, w)), whatever w.
        pairs = zip(self.chances.tolist(), wanted.tolist(), strict=True)
        return all(2 * math.exp(-self.number * _apart(f, min(max(w, 0.0), 1.0))) > CHANCE for f, w in pairs)

    def tells(self, other: Tensor, wanted: Tensor) -> bool:
        """Whether draws of `other` would have been told from `wanted`."""
        return not Drawn(other, self.number).is_like(wanted)

    @property
    def seen(self) -> int:
        """How many tokens have a chance."""
        return int((self.chances > 1e-12).sum())


def _apart(f: float, w: float) -> float:
    """KL of two coins."""
    total = 0.0
    for mine, theirs in ((f, w), (1 - f, 1 - w)):
        if mine > 0:
            total += mine * math.log(mine / theirs) if theirs > 0 else math.inf
    return max(total, 0.0)


def given(values: Tensor, kind: str) -> Drawn:
    """The distribution of one row of what was returned.

    Args:
        values: (V) logits or probabilities.
        kind: "logits" or "chances".
    """
    if bool(values.isnan().any()):
        return Drawn(values, failed="NaN")
    if kind == "chances":
        total = values.sum()
        return Drawn(values, failed="0") if float(total) <= 0 or not bool(total.isfinite()) else Drawn(values / total)
    if bool((values == torch.inf).any()):
        return Drawn(values, failed="inf")
    return Drawn(values, failed="-inf") if bool((values == -torch.inf).all()) else Drawn(values.softmax(-1))


def counted(ids: Tensor, vocab: int) -> Drawn:
    """The distribution of ids that were drawn (N)."""
    if bool((ids < 0).any()) or bool((ids >= vocab).any()):
        return Drawn(torch.zeros(vocab), failed=f"id {int(ids.max())}")
    return Drawn(torch.bincount(ids, minlength=vocab).double() / len(ids), len(ids))
