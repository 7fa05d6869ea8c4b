"""Masks as somebody's module takes them: which parameter, of which shape, and what its values are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Shape = Literal["BS", "B11S", "B1S", "B1TS", "BTS", "TS"]
Values = Literal["bool", "long", "float", "added"]


@dataclass(frozen=True)
class MaskUse:
    """How a mask is given.

    Args:
        name: of the parameter.
        shape: B rows, T queries, S keys.
        values: True and False, 1 and 0 as whole or real numbers, or 0 and the lowest number, which are added to the scores.
        keeps: whether True or 1 means that a key is kept.
        known: whether `keeps` was found by trial or said by the user; otherwise it is a guess.
        acts: whether some value of it changes the output.
        pairs_too: whether a mask with a row for each query is taken as well, so that the caller may hide the future with it.
        vanishes: whether a key that is dropped has no influence at all on the others.
    """

    name: str
    shape: Shape
    values: Values
    keeps: bool
    known: bool = False
    acts: bool = False
    vanishes: bool = False
    pairs_too: bool = False

    @property
    def of_pairs(self) -> bool:
        """Whether each query has its own row."""
        return self.shape in ("B1TS", "BTS", "TS")

    @property
    def of_rows(self) -> bool:
        """Whether each row of the batch has its own mask."""
        return self.shape != "TS"


def encoded(use: MaskUse, keep: Tensor, length: int, dtype: torch.dtype) -> Tensor:
    """The mask as the module wants it.

    Args:
        use: how.
        keep: (B,S) or (B,T,S), True where a key is kept.
        length: T, the number of queries.
        dtype: of the module's numbers.
    """
    pairs = keep if keep.dim() == 3 else keep[:, None].expand(keep.shape[0], length, keep.shape[1])
    shaped = {
        "BS": lambda: keep if keep.dim() == 2 else keep.any(1),
        "B11S": lambda: pairs.any(1)[:, None, None],
        "B1S": lambda: pairs.any(1)[:, None],
        "B1TS": lambda: pairs[:, None],
        "BTS": lambda: pairs,
        "TS": lambda: pairs[0],
    }[use.shape]()
    if use.values == "added":
        return torch.zeros(shaped.shape, dtype=dtype).masked_fill(~shaped, torch.finfo(dtype).min)
    marks = shaped if use.keeps else ~shaped
    if use.values == "bool":
        # Nothing is converted here: conversions that are watched are the module's own.
        return marks.contiguous()
    return marks.long() if use.values == "long" else marks.to(dtype)
