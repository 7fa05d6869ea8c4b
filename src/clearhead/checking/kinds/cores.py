"""The hearts of attention in a watched forward: scores, weights, and what became of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from clearhead.checking.watch import Op, Record


@dataclass(frozen=True, eq=False)
class Core:
    """One softmax over scores, or one fused attention; equal to itself alone.

    Args:
        scores: (...,T,S) as they went into the softmax, the mask with them where it stands before.
        weights: (...,T,S) as they came out.
        where: the line.
        index: its place among the operations.
    """

    scores: Tensor
    weights: Tensor
    where: str
    index: int


def cores(record: Record, length: int, keys: int | None = None) -> list[Core]:
    """All hearts whose scores are (...,T,S), in order."""
    found = [core for index, op in enumerate(record.ops) if (core := _core(op, index)) is not None]
    wanted = (length, keys or length)
    return [core for core in found if core.scores.dim() >= 2 and tuple(core.scores.shape[-2:]) == wanted]


def _core(op: Op, index: int) -> Core | None:
    first = op.argument(0, "input")
    if op.name in ("softmax", "_softmax", "softmax_") and isinstance(first, Tensor) and isinstance(op.result, Tensor):
        return Core(first, op.result, op.where, index)
    if op.name == "exp" and isinstance(first, Tensor) and first.dim() >= 2:
        weights = op.result / op.result.sum(-1, keepdim=True)
        return Core(first, weights, op.where, index)
    if op.name == "scaled_dot_product_attention":
        scores = fused_scores(op)
        return None if scores is None else Core(scores, scores.softmax(-1), op.where, index)
    return None


def fused_scores(op: Op) -> Tensor | None:
    """The scores of a fused attention, its mask with them."""
    q, k = op.argument(0, "query"), op.argument(1, "key")
    mask, causal = op.argument(3, "attn_mask"), bool(op.argument(5, "is_causal", False))
    scale = op.keywords.get("scale")
    if q.shape[-3:-2] != k.shape[-3:-2] and q.dim() == k.dim() == 4:
        k = k.repeat_interleave(q.shape[-3] // max(k.shape[-3], 1), -3)
    scores: Tensor = q @ k.transpose(-2, -1) * (scale if scale is not None else 1 / math.sqrt(q.shape[-1]))
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~seen, -torch.inf)
    if isinstance(mask, Tensor):
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return scores


def range_of(found: list[Core], seen: Tensor | None = None) -> float:
    """The largest score of a pair that is seen; 0 if none was watched."""
    largest = 0.0
    for core in found:
        scores = core.scores if seen is None else core.scores[..., seen]
        usual = scores[scores.isfinite() & (scores > -9e3)]
        largest = max(largest, float(usual.abs().max())) if usual.numel() else largest
    return largest


def constants(found: list[Core], hidden: Tensor) -> list[float]:
    """The scores of hidden pairs, where one finite number stands for all of them, or they lie far below."""
    out = []
    for core in found:
        scores = core.scores[..., hidden]
        if scores.numel() and bool(scores.isfinite().all()) and float(scores.max()) < -500:
            out.append(float(scores.max()))
    return out


def masked_later(record: Record, found: list[Core], hidden: Tensor) -> Op | None:
    """The operation that takes hidden weights away after the softmax, and leaves the others as they are; None if none does."""
    for core in found:
        if not bool((core.weights[..., hidden] > 0).any()):
            continue
        for op in record.ops[core.index + 1 :]:
            after = op.result
            if not isinstance(after, Tensor) or after.shape != core.weights.shape or not after.is_floating_point():
                continue
            taken = bool((after[..., hidden] == 0).all())
            if taken and torch.allclose(after[..., ~hidden], core.weights[..., ~hidden].to(after.dtype)):
                return op
    return None


def renormalised(record: Record, op: Op) -> bool:
    """Whether rows that lost weights sum to one again later."""
    later = record.ops[record.ops.index(op) + 1 :] if op in record.ops else []
    ones: list[Any] = [o.result for o in later if isinstance(o.result, Tensor) and o.result.shape == op.result.shape]
    return any(torch.allclose(r.sum(-1), torch.ones((), dtype=r.dtype)) for r in ones)
