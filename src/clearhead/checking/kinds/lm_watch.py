"""What a watched forward of a language model shows: the weights of each attention, masks, position tables, the last norm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.kinds.lm_case import LmCase, logits_of
from clearhead.checking.watch import Op, Record, watched

SDPA = "scaled_dot_product_attention"


@dataclass(frozen=True)
class Core:
    """One attention as it ran.

    Args:
        weights: (...,T,S) after the softmax, as they met the values.
        scores: (...,T,S) that entered the softmax; None inside a fused kernel.
        op: the operation that took the softmax.
    """

    weights: Tensor
    scores: Tensor | None
    op: Op


def seen_by(case: LmCase, ids: Tensor) -> Record:
    """A forward of these ids, recorded."""
    module = case.case.ready()
    with torch.no_grad():
        return watched(module if isinstance(module, nn.Module) else None, lambda: logits_of(case, module, ids))


def cores(record: Record, length: int, keys: int | None = None, *, any_keys: bool = False) -> list[Core]:
    """The attentions of a forward with that many queries and keys (as many as queries if None, or any number), in order."""

    def fits(weights: Tensor) -> bool:
        return (
            weights.dim() >= 3 and weights.shape[-2] == length and (any_keys or weights.shape[-1] == (keys or length))
        )

    found = []
    for op in record.ops:
        if op.name == SDPA:
            weights = fused_weights(op)
            if weights is not None and fits(weights):
                found.append(Core(weights, None, op))
        elif op.name in ("softmax", "_softmax") and isinstance(op.result, Tensor):
            scores = op.argument(0, "input")
            if fits(op.result) and isinstance(scores, Tensor):
                found.append(Core(op.result, scores, op))
    return found


def fused_weights(op: Op) -> Tensor | None:
    """The weights that a fused attention used, by its definition."""
    q, k = op.argument(0, "query"), op.argument(1, "key")
    mask, causal = op.argument(3, "attn_mask"), bool(op.argument(5, "is_causal", False))
    scale = op.keywords.get("scale")
    if not isinstance(q, Tensor) or not isinstance(k, Tensor) or q.dim() < 3:
        return None
    if q.dim() == 4 and k.shape[1] != q.shape[1]:
        k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = q.double() @ k.double().transpose(-2, -1) * (scale or 1 / math.sqrt(q.shape[-1]))
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), float("-inf"))
    if isinstance(mask, Tensor):
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1).nan_to_num()


def tensor_arguments(op: Op) -> list[Tensor]:
    """The tensors that an operation was given."""
    values: list[Any] = [*op.arguments, *op.keywords.values()]
    out = []
    for value in values:
        out += (
            [value]
            if isinstance(value, Tensor)
            else [v for v in value if isinstance(v, Tensor)]
            if isinstance(value, tuple | list)
            else []
        )
    return out


def maker_of(record: Record, value: Tensor, before: int) -> Op | None:
    """The last operation before a place in the record whose result this tensor is, views of it passed over."""
    for op in reversed(record.ops[:before]):
        if (
            isinstance(op.result, Tensor)
            and op.result.shape == value.shape
            and op.name not in PASSING
            and torch.equal(op.result, value)
        ):
            return op
    return None


PASSING = frozenset(
    (
        "contiguous",
        "clone",
        "to",
        "view",
        "reshape",
        "dropout",
        "float",
        "double",
        "type_as",
        "type",
        "detach",
        "__getitem__",
        "size",
        "dim",
        "requires_grad_",
    )
)
ADDING = frozenset(("add", "add_", "__add__", "__iadd__", "__radd__"))
NORMS = frozenset(("layer_norm", "rms_norm", "group_norm", "batch_norm"))
