"""Parts of one projection that two sides take otherwise: q, k and v one behind the other, or head by head."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.checking.diff.formulas_sums import where_of
from clearhead.checking.diff.reading import Placed, Reading, Scene, reason
from clearhead.checking.diff.stages import PARTS
from clearhead.messages import say

SHOWN = 4
"""So many runs of features are written out."""


def parts(scene: Scene) -> Placed | None:
    """A part of the features of something that both have, of which A takes some and B others."""
    for i, j in scene.found.parted.items():
        one, other = _features(scene.a, i, scene.length), _features(scene.b, j, scene.length)
        if one is None or other is None or one[0] != other[0] or one[1] == other[1] or len(one[1]) != len(other[1]):
            continue
        text = say(
            "diff.columns", source=scene.place(one[0]), a=_runs(one[1]), b=_runs(other[1]), where=where_of(scene, i, j)
        )
        return reason("qkv.layout", scene, (i, j), text, 0.0)
    return None


def _features(reading: Reading, place: int, length: int) -> tuple[int, list[int]] | None:
    """The source (B,T,D) of a part, by its place in A, and which of its features the part takes, in order; None if it is no part."""
    if place in reading.known or reading.stage(place).made_by not in PARTS:
        return None
    y = reading.value(place)
    if y.dim() == 4 and y.shape[2] == length != y.shape[1]:
        y = y.transpose(1, 2)
    for at in reading.sources(place):
        x = reading.value(at)
        if x.dim() != 3 or y.dim() < 3 or y.shape[:2] != x.shape[:2] or not 1 < y[0, 0].numel() < x.shape[-1]:
            continue
        found = _which(x.flatten(0, 1), y.flatten(2).flatten(0, 1))
        if found is not None:
            return reading.known[at], found
    return None


def _which(x: Tensor, y: Tensor) -> list[int] | None:
    """For each column of y the column of x that it is; None if one is none, or could be several."""
    same = torch.stack([(x == column[:, None]).all(0) for column in y.T])
    return same.long().argmax(1).tolist() if bool((same.sum(1) == 1).all()) else None


def _runs(columns: list[int]) -> str:
    """Features in the order in which they are taken: "0-7, 24-31"."""
    runs: list[list[int]] = []
    for each in columns:
        if runs and each == runs[-1][1] + 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    told = ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in runs[:SHOWN])
    return told + (" ..." if len(runs) > SHOWN else "")
