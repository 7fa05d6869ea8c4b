"""Why a hidden key keeps its influence, told from the scores and weights of two watched forwards."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from clearhead.checking.kinds.cores import Core, cores, masked_later, renormalised
from clearhead.checking.watch import Record

Name = tuple[str, Literal["reproduced", "consistent"], str, str]
"""The id, how certain, the line, and the amount by which scores move."""
HIDDEN = 1
"""The key that is hidden in the second forward, in every row."""


def named(plain: Record, masked: Record, length: int, moves: list[bool]) -> Name:
    """The name of the mistake.

    Args:
        plain: a forward in which every key is kept.
        masked: the same with key 1 hidden.
        length: T.
        moves: which queries' outputs differ between the two.
    """
    pairs = list(zip(cores(plain, length), cores(masked, length), strict=False))
    hidden = torch.zeros(length, length, dtype=torch.bool)
    hidden[:, HIDDEN] = True
    late = masked_later(masked, [core for _, core in pairs], hidden)
    if late is not None and not renormalised(masked, late):
        return "causal.after-softmax", "reproduced", late.where, ""
    for one, other in pairs:
        found = _of_scores(one, other)
        if found is not None:
            return found
    if moves == [index == HIDDEN for index in range(length)]:
        return "mask.query-axis", "consistent", pairs[0][1].where if pairs else "", ""
    return "mask.ignored", "consistent", pairs[0][1].where if pairs else "", ""


def _of_scores(plain: Core, masked: Core) -> Name | None:
    """The mistake as it shows in scores."""
    apart = masked.scores - plain.scores
    if not bool(apart.nan_to_num(posinf=1.0, neginf=1.0).abs().max() > 0):
        return None
    columns, rest = apart[..., HIDDEN], torch.cat([apart[..., :HIDDEN], apart[..., HIDDEN + 1 :]], -1)
    queries = torch.cat([apart[..., :HIDDEN, :], apart[..., HIDDEN + 1 :, :]], -2)
    if not bool((queries.nan_to_num(posinf=1.0, neginf=1.0) != 0).any()):
        return "mask.query-axis", "reproduced", masked.where, ""
    usual = columns[columns.isfinite() & (plain.scores[..., HIDDEN] > -1e4)]
    shift = _constant(usual)
    other = _constant(rest[rest.isfinite() & (rest.abs() < 1e3)])
    if shift is not None and other is not None and abs(shift - other) < 1e3:
        return "mask.added-as-number", "reproduced", masked.where, f"{shift - other:.3g}"
    if bool((masked.scores[..., HIDDEN] == 0).all()):
        return "mask.added-as-number", "consistent", masked.where, "0"
    return None


def _constant(values: Tensor) -> float | None:
    """The one number that all values are; None if they differ or there are none."""
    if not values.numel():
        return None
    middle = float(values.double().mean())
    return middle if bool((values - middle).abs().max() < 1e-5) else None
