"""Queries, keys or values of a fused projection that never get a gradient: the rest of the matrix trains, so that the whole seems to."""

from __future__ import annotations

import re

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case
from clearhead.checking.common.trial import Trial, given, run
from clearhead.checking.kinds.claimed import DOCUMENTS
from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Check, Fault
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.messages import say

NAME = "parameter.unused"
FUSED = r"(^|[._])(w?_?qkv\w*|to_(qkv|kv)|w?_?(kv|qk)|c_attn|in_proj\w*|query_key_value|attn_proj)(\.(weight|linear\.weight))?$"
MEANT = r"detach|stop.?grad|frozen|freez|\bema\b|momentum|target net|teacher"
"""Words in comments that say that no gradient is meant to pass."""
SMALLEST = 6
"""A part is at least one in so many: rows that no input reaches by chance are fewer, and lie apart."""


def unused_parts(case: Case, size_taken: Trial, module: nn.Module, seeds: tuple[int, ...]) -> Found:
    """Whether every part of each fused projection gets a gradient.

    Args:
        case: how the code is run.
        size_taken: of the inputs.
        module: a copy whose weights are all off zero.
        seeds: of the inputs.
    """
    words = " ".join(piece for found in re.findall(DOCUMENTS, case.target.source, re.DOTALL) for piece in found)
    fused = {name: p for name, p in module.named_parameters() if p.requires_grad and p.dim() == 2 and _is_fused(name)}
    if not fused or re.search(MEANT, words, re.IGNORECASE):
        return Found()
    total = {name: torch.zeros_like(p) for name, p in fused.items()}
    with Attempt(), torch.enable_grad():
        for seed in seeds:
            with Seeded(seed):
                out = run(case, module, given(case, *size_taken, seed))
            if not bool(out.isfinite().all()):
                return Found()
            weigh = torch.randn(out.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
            loss = (out * weigh.to(out.dtype)).sum()
            for name, slope in zip(
                fused, torch.autograd.grad(loss, list(fused.values()), allow_unused=True), strict=True
            ):
                total[name] += 0 if slope is None else slope.abs()
        for name, slopes in total.items():
            part = _silent(slopes)
            if part is not None:
                first, end = part
                text = say(
                    "common.unused_part",
                    name=name,
                    first=first,
                    last=end - 1,
                    count=max(slopes.shape),
                    inputs=len(seeds),
                )
                fault = Fault(NAME, "consistent", text, re.sub(r"\.weight$", "", name), say("common.fix_unused"))
                return Found((Check(NAME, "fail", text),), (fault,))
    return Found()


def _is_fused(name: str) -> bool:
    return re.search(FUSED, name.lower()) is not None


def _silent(slopes: Tensor) -> tuple[int, int] | None:
    """The rows, or columns, of a part that is zero from end to end while others are not; None if there is none."""
    outer = 0 if slopes.shape[0] >= slopes.shape[1] else 1
    reached = (slopes != 0).any(1 - outer)
    silent = (~reached).nonzero().flatten().tolist()
    if not silent or len(silent) == len(reached):
        return None
    first, end = silent[0], silent[-1] + 1
    whole = silent == list(range(first, end))
    size = end - first
    return (first, end) if whole and size > 1 and size * SMALLEST >= len(reached) and first % size == 0 else None
