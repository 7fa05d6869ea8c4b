"""Scores made so large that a finite constant in place of minus infinity loses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.kinds.causality import watched_with
from clearhead.checking.kinds.cores import constants, cores, range_of
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.masks_found import MaskUse
from clearhead.checking.kinds.seeing import changed, moved, ready, seen_above, size_of
from clearhead.checking.kinds.sequence_case import SequenceCase, run
from clearhead.checking.report import Check, Fault
from clearhead.checking.watch import watched
from clearhead.messages import say

LARGE = 3e4
"""The largest score of a stressed run: many lie near 1e4, where -1e4 loses and -1e9 does not."""
ROWS = 32
"""So many that in some row a query's every visible score is far below zero."""
NAME = "causal.finite-mask"


@dataclass(frozen=True)
class Stressed:
    """A module and an input whose scores are large.

    Args:
        module: the copy, its matrices scaled if need be.
        x: the input, scaled.
        largest: the largest score that was measured; 0 if there was nothing to measure.
    """

    module: Any
    x: Tensor
    largest: float


@torch.no_grad()
def stressed(case: SequenceCase, rows: int, length: int) -> Stressed:
    """The module with scores near 3e4: the input is scaled, and the matrices too if that changes nothing."""
    x, module = case.inputs(rows, length, 5), ready(case)
    seen = torch.ones(length, length, dtype=torch.bool).tril()

    def largest(of: Any, given: Tensor) -> float:
        record = watched(of if isinstance(of, nn.Module) else None, lambda: run(case, of, given))
        return range_of(cores(record, length), seen)

    start = largest(module, x)
    factor = math.sqrt(LARGE / start) if start > 0 else 100.0
    if not case.ids:
        grown = x * factor
        reached = largest(module, grown)
        if start == 0 or reached > LARGE / 10:
            return Stressed(module, grown, reached)
    if isinstance(module, nn.Module):
        for parameter in module.parameters():
            if parameter.dim() >= 2 and parameter.is_floating_point():
                parameter.mul_(factor)
    return Stressed(module, x, largest(module, x))


@torch.no_grad()
def finite_mask(case: SequenceCase, keep: Tensor | None = None, use: MaskUse | None = None) -> Found:
    """Whether what is hidden stays hidden when scores are large.

    Args:
        case: how the module is called; causal where no mask is given.
        keep: (B,S), which keys are kept; None for the future.
        use: how the mask is given.
    """
    rows, length = (ROWS, case.length(7)) if keep is None else (keep.shape[0], keep.shape[1])
    made = stressed(case, rows, length)
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
    if keep is not None:
        hidden = ~keep[0].expand(length, length)
    record = watched_with(case, case.inputs(rows, length, 5), keep, use)
    lows = constants(cores(record, length), hidden)
    if made.largest < LARGE / 10 and made.largest > 0:
        return Found(
            (Check(NAME, "skipped", say("attention.no_stress", largest=f"{made.largest:.2g}")),), notes=_note(lows)
        )
    worst, at = 0.0, (0, 0)
    base = run(case, made.module, made.x, keep, use=use)
    for position in range(length):
        queries = [t for t in range(length) if bool(hidden[t, position]) and t != position]
        # What a hidden position itself gives counts for nothing.
        queries = [t for t in queries if keep is None or bool(keep[0, t])]
        if not queries:
            continue
        other = run(case, made.module, changed(case, made.x, position), keep, use=use)
        apart = moved(base, other)[:, queries]
        # A number that is none under such scores is another matter.
        apart = apart.nan_to_num(posinf=0.0).amax((0, -1)) / size_of(base)
        if float(apart.max()) > max(worst, seen_above(case)):
            worst, at = float(apart.max()), (queries[int(apart.argmax())], position)
    if worst == 0.0 and made.largest == 0.0:
        # No score was seen, as inside PyTorch's own layers: how large they became is not known.
        return Found((Check(NAME, "skipped", say("attention.no_stress", largest="?")),), notes=_note(lows))
    if worst == 0.0:
        passed = say("attention.stress_passed", largest=f"{made.largest:.2g}", length=length)
        return Found((Check(NAME, "pass", passed),), notes=_note(lows))
    evidence = say(
        "attention.finite",
        largest=f"{made.largest:.2g}",
        query=at[0],
        source=at[1],
        change=f"{worst:.2g}",
        constant=f"{lows[0]:.3g}" if lows else "?",
    )
    where = next((core.where for core in cores(record, length)), "")
    fault = Fault(
        NAME,
        "reproduced" if lows else "consistent",
        evidence,
        _masking(record) or where,
        say("attention.finite_fix"),
        worst,
    )
    return Found((Check(NAME, "fail", evidence, worst),), (fault,))


def _masking(record: Any) -> str:
    """The line that masks."""
    ops = [op for op in record.named("masked_fill", "masked_fill_", "where") if op.where]
    return ops[-1].where if ops else ""


def _note(lows: list[float]) -> tuple[str, ...]:
    return (say("attention.finite_note", constant=f"{lows[0]:.3g}"),) if lows else ()


__all__ = ["Stressed", "finite_mask", "stressed"]
