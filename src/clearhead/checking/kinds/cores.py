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


ADDING = ("add", "add_", "__add__", "__radd__", "__iadd__", "baddbmm", "addmm")
TIMES = ("mul", "mul_", "__mul__", "__rmul__", "__imul__", "multiply")


def added_triangle(record: Record, found: list[Core]) -> tuple[Op, float] | None:
    """A triangle of ones that is added to scores, or by which they are multiplied, in place of selecting; None if there is none.

    Args:
        record: a forward of a module that is to be causal and sees the future.
        found: its hearts, with as many keys as queries.

    Returns:
        The operation, and by how much it moves a hidden score; 0 where hidden scores become 0.
    """
    shapes = {tuple(core.scores.shape[-2:]) for core in found}
    for op in record.ops[: max((core.index for core in found), default=-1) + 1]:
        if op.name == "scaled_dot_product_attention":
            step = _step(op.argument(3, "attn_mask"), shapes)
            # True and False are selected with.
            if step is not None and op.argument(3, "attn_mask").dtype != torch.bool and abs(step) == 1:
                return op, step
        if op.name in ADDING + TIMES and isinstance(op.result, Tensor) and tuple(op.result.shape[-2:]) in shapes:
            steps = [step for each in op.arguments[:2] if (step := _step(each, shapes)) is not None]
            adds = op.name in ADDING and [abs(step) for step in steps] == [1]
            zeros = op.name in TIMES and steps == [-1] and _ends_in_zeros(op, found)
            if adds or zeros:
                return op, steps[0] if adds else 0.0
    return None


def _step(value: Any, shapes: set[tuple[int, ...]]) -> float | None:
    """How much higher a triangle is above its diagonal than on it and below; None of what is no triangle of two numbers."""
    if not isinstance(value, Tensor) or value.dim() < 2 or tuple(value.shape[-2:]) not in shapes or len(value) == 0:
        return None
    table = value.double().reshape(-1, *value.shape[-2:])
    later = torch.ones(table.shape[-2:], dtype=torch.bool).triu(1)
    above, below = table[:, later], table[:, ~later]
    if not above.numel() or bool((above != above.flatten()[0]).any()) or bool((below != below.flatten()[0]).any()):
        return None
    step = float(above.flatten()[0] - below.flatten()[0])
    return step if step and math.isfinite(step) else None


def _ends_in_zeros(op: Op, found: list[Core]) -> bool:
    """Whether zeros above the diagonal are what goes into a softmax: nothing hides them in between."""
    later = torch.ones(op.result.shape[-2:], dtype=torch.bool).triu(1)
    same = [core for core in found if core.scores.shape[-2:] == op.result.shape[-2:]]
    return any(bool((core.scores[..., later] == 0).all()) for core in same)


def renormalised(record: Record, op: Op) -> bool:
    """Whether rows that lost weights sum to one again later."""
    later = record.ops[record.ops.index(op) + 1 :] if op in record.ops else []
    ones: list[Any] = [o.result for o in later if isinstance(o.result, Tensor) and o.result.shape == op.result.shape]
    return any(torch.allclose(r.sum(-1), torch.ones((), dtype=r.dtype)) for r in ones)
