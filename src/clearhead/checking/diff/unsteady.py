"""A side that does not give the same twice."""

from __future__ import annotations

from dataclasses import replace

import torch

from clearhead.checking.diff.code import CodeSide
from clearhead.checking.diff.forcing import Put
from clearhead.checking.diff.numbers import gap, plain
from clearhead.checking.diff.report import Reason
from clearhead.checking.diff.side import Given, Side, Walk
from clearhead.checking.diff.stages import CodeStage
from clearhead.messages import say

KERNELS = frozenset(("scaled_dot_product_attention", "multi_head_attention_forward"))
"""What draws only if it is told to drop."""

TIMES = 8
"""So many places that draw are put still; what is behind them is then seen as it is."""


def unsteady(which: str, side: Side, given: Given) -> tuple[Reason, Side] | None:
    """That two runs of a side differ, and the side with what it draws left out as far as that can be; None if they do not differ.

    Args:
        which: "A" or "B".
        side: one of the two; only code draws.
        given: what it was given.
    """
    if not isinstance(side, CodeSide):
        return None
    walk = side.run(given)
    at = _first(walk, replace(side, seed=side.seed + 1).run(given))
    if at is None:
        return None
    stage, far = walk.stages[at[0]], at[1]
    drops = "ropout" in stage.made_by or stage.made_by in KERNELS
    text = say("diff.unsteady", side=which, place=stage.name, where=stage.where or "-")
    reason = Reason("dropout.active-in-eval" if drops else "noise.injected", "reproduced", stage.name, text, far, 0.0)
    return reason, _stilled(side, walk, given)


def _first(one: Walk, other: Walk) -> tuple[int, float] | None:
    """The first stage that is not the same in two runs, and how far it is off."""
    for place, (first, second) in enumerate(zip(one.stages, other.stages, strict=False)):
        if first.value.shape != second.value.shape or not torch.equal(first.value, second.value):
            return place, gap(plain(first.value), plain(second.value))
    return None


def _stilled(side: CodeSide, walk: Walk, given: Given) -> CodeSide:
    """The side, with what it drew replaced by what it was drawn from."""
    for _ in range(TIMES):
        at = _first(walk, replace(side, seed=side.seed + 1).run(given))
        if at is None:
            return side
        stage = walk.stages[at[0]]
        if not isinstance(stage, CodeStage) or stage.at < 0:
            return side
        of = next((each for each in stage.inputs if each.shape == stage.value.shape), None)
        if of is None:
            return side
        side = replace(side, puts=(*side.puts, Put(stage.at, stage.part, of)))
        walk = side.run(given)
    return side
