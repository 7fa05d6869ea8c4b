"""Who sees whom, by changing one position at a time and looking at what moves."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.kinds.masks_found import MaskUse
from clearhead.checking.kinds.sequence_case import SequenceCase, real_ids, run
from clearhead.checking.report import Sight
from clearhead.checking.strangers import Seeded

SEEN = 1e-10
"""A movement beside the size of the output above which an influence counts in float64; rounding stays near 1e-15."""


def seen_above(case: SequenceCase) -> float:
    """The least movement that is no rounding."""
    return SEEN if case.case.dtype == torch.float64 else 2e-5


def ready(case: SequenceCase) -> Any:
    """A copy of the target in evaluation mode whose zero matrices and gates are filled, so that influence can pass."""
    made = case.case.ready()
    if isinstance(made, nn.Module):
        with Seeded(3), torch.no_grad():
            for name, parameter in made.named_parameters():
                if not parameter.is_floating_point() or bool((parameter != 0).any()) or "bias" in name.lower():
                    continue
                parameter.normal_(0.0, 0.3)
    return Forgetful(made) if case.remembers else made


class Forgetful:
    """A module that keeps something between calls, run on a fresh copy each time."""

    def __init__(self, module: Any) -> None:
        self.module = module

    @property
    def __call__(self) -> Any:
        """A fresh copy of the module: what is called, with whatever arguments, is that."""
        return copy.deepcopy(self.module)


def moved(one: Tensor, other: Tensor) -> Tensor:
    """The distance of two outputs at each element: 0 where both are not a number, infinite where one is."""
    same = (one == other) | (one.isnan() & other.isnan())
    apart = (one - other).abs().nan_to_num(nan=torch.inf, posinf=torch.inf)
    return torch.where(same, torch.zeros_like(apart), apart)


def size_of(out: Tensor) -> float:
    """The size of an output, for comparison."""
    finite = out[out.isfinite()]
    return float(finite.abs().max()) + 1e-30 if finite.numel() else 1.0


def changed(case: SequenceCase, x: Tensor, position: int) -> Tensor:
    """The input with one position of every row replaced."""
    other = x.clone()
    if case.ids:
        other[:, position] = real_ids((x[:, position] + 7) % case.vocab, case.vocab, case.pad)
    else:
        # Another token of the same size, so that stressed inputs stay stressed.
        other[:, position] = x[:, position].flip(-1) * 0.9 - x[:, position].roll(1, -1) * 0.5
    return other


@torch.no_grad()
def influence(
    case: SequenceCase, module: Any, x: Tensor, keep: Tensor | None = None, use: MaskUse | None = None
) -> Tensor:
    """(B,T,S): how far the output at t of a row moves when position s of every row is replaced, beside the output's size."""
    base = run(case, module, x, keep, use=use)
    columns = []
    for position in range(x.shape[1]):
        out = run(case, module, changed(case, x, position), keep, use=use)
        columns.append(moved(base, out).amax(-1))
    return torch.stack(columns, -1) / size_of(base)


@torch.no_grad()
def memory_influence(case: SequenceCase, module: Any, x: Tensor, memory: Tensor) -> Tensor:
    """(T,S): how far the output at t moves when position s of the memory is replaced."""
    base = run(case, module, x, memory=memory)
    columns = []
    for position in range(memory.shape[1]):
        out = run(case, module, x, memory=changed(case, memory, position))
        columns.append(moved(base, out).amax((0, -1)))
    return torch.stack(columns, -1) / size_of(base)


def sight(expected: Tensor, strength: Tensor, above: float) -> Sight:
    """Expected beside found, for the report."""
    finite = strength.nan_to_num(posinf=1.0)
    top = float(finite.max()) or 1.0
    return Sight(expected.tolist(), (strength > above).tolist(), (finite / top).clamp(max=1.0).tolist())
