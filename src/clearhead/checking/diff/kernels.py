"""Kernels that do all of attention at once, as the steps that they do not show: by their formulas, from what they were given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from clearhead.checking.watch import WithArguments

FUSED, WHOLE = "scaled_dot_product_attention", "multi_head_attention_forward"

KERNELS: dict[str, dict[str, tuple[int, str]]] = {
    FUSED: {"query": (0, "query"), "key": (1, "key"), "value": (2, "value"), "mask": (3, "attn_mask")},
    WHOLE: {
        "query": (0, "query"),
        "key": (1, "key"),
        "value": (2, "value"),
        "mask": (17, "attn_mask"),
        "padding": (15, "key_padding_mask"),
    },
}
"""Kernels by name, with the places and names of what they are given."""


class Call(WithArguments):
    """The arguments of an operation, as `Op` finds them."""

    def __init__(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        self.arguments, self.keywords = arguments, keywords


class Step(NamedTuple):
    """A step of a kernel.

    Args:
        name: "q", "scores", "weights", "mixed"; "" for the result.
        value: what it gives.
        made_by: the operation that would do it.
        of: the steps that it is made of.
        given: what the kernel was given that it is made of.
        operands: the tensors that it was made of.
    """

    name: str
    value: Tensor
    made_by: str
    of: tuple[str, ...]
    given: tuple[str, ...]
    operands: tuple[Tensor, ...]


def steps_of(
    name: str, arguments: tuple[Any, ...], keywords: Mapping[str, Any], put: Mapping[str, Tensor] | None = None
) -> tuple[Step, ...]:
    """The steps of a kernel, the result last.

    Args:
        name: of the kernel.
        arguments: positional arguments.
        keywords: keyword arguments.
        put: values that stand in place of those of some steps; what follows is made of them.
    """
    call = Call(arguments, keywords)
    return _fused(call, put or {}) if name == FUSED else _whole(call, put or {})


def _fused(call: Call, put: Mapping[str, Tensor]) -> tuple[Step, ...]:
    """softmax(q kᵀ scale + mask) v."""
    q, k, v, mask = (call.argument(*place) for place in KERNELS[FUSED].values())
    scale = call.keywords.get("scale") or q.shape[-1] ** -0.5
    if call.keywords.get("enable_gqa") and k.shape[-3] != q.shape[-3]:
        k, v = (each.repeat_interleave(q.shape[-3] // each.shape[-3], -3) for each in (k, v))
    scores = _or(put, "scores", q @ k.transpose(-2, -1) * scale)
    if call.argument(5, "is_causal", False):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    weights = _or(put, "weights", _masked(scores, mask, ~mask if _is_bool(mask) else None).softmax(-1))
    return (
        Step("scores", scores, "scores", (), ("query", "key"), (call.argument(0, "query"), call.argument(1, "key"))),
        Step("weights", weights, "softmax", ("scores",), ("mask",), (scores,)),
        Step("", weights @ v, FUSED, ("weights",), ("value",), (weights, call.argument(2, "value"))),
    )


def _whole(call: Call, put: Mapping[str, Tensor]) -> tuple[Step, ...]:
    """(softmax(q kᵀ / sqrt(d) + mask) v) W_Oᵀ + b_O; q, k, v by the projections that were given. Inputs (T,B,D), weights (B,H,T,S)."""
    inputs = [call.argument(*KERNELS[WHOLE][each]) for each in ("query", "key", "value")]
    heads, bias = call.argument(4, "num_heads"), call.argument(6, "in_proj_bias")
    if call.argument(18, "use_separate_proj_weight", False):
        matrices = [call.argument(19 + n, f"{each}_proj_weight") for n, each in enumerate("qkv")]
    else:
        matrices = list(call.argument(5, "in_proj_weight").chunk(3))
    biases = [None] * 3 if bias is None else list(bias.chunk(3))
    made: list[Step] = []
    for name, kind, x, matrix, own in zip("qkv", ("query", "key", "value"), inputs, matrices, biases, strict=True):
        value = _or(put, name, F.linear(x, matrix, own))
        operands = (x, matrix) if own is None else (x, matrix, own)
        made.append(Step(name, value, "linear", (), (kind,), operands))
    # (T,B,D) -> (B,H,T,d)
    q, k, v = (step.value.reshape(*step.value.shape[:2], heads, -1).permute(1, 2, 0, 3) for step in made)
    scores = _or(put, "scores", q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5)
    hidden = _masked(scores, *_hidden(call, scores))
    weights = _or(put, "weights", hidden.softmax(-1))
    mixed = _or(put, "mixed", (weights @ v).permute(2, 0, 1, 3).flatten(2))
    matrix, own = call.argument(11, "out_proj_weight"), call.argument(12, "out_proj_bias")
    operands = (mixed, matrix) if own is None else (mixed, matrix, own)
    return (
        *made,
        Step("scores", scores, "scores", ("q", "k"), (), (q, k)),
        Step("weights", weights, "softmax", ("scores",), ("mask", "padding"), (scores,)),
        Step("mixed", mixed, "matmul", ("weights", "v"), (), (weights, v)),
        Step("", F.linear(mixed, matrix, own), "linear", ("mixed",), (), operands),
    )


def _hidden(call: Call, scores: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """What is added to the scores (B,H,T,S), and where they are hidden; in a mask of PyTorch's module true means hidden."""
    mask, padding = (call.argument(*KERNELS[WHOLE][each]) for each in ("mask", "padding"))
    if isinstance(mask, Tensor) and mask.dim() == 3:
        mask = mask.view(scores.shape)
    added = mask if isinstance(mask, Tensor) and mask.is_floating_point() else None
    hidden = mask if _is_bool(mask) else None
    if isinstance(padding, Tensor):
        padding = padding[:, None, None]
        if padding.is_floating_point():
            added = padding if added is None else added + padding
        else:
            hidden = padding if hidden is None else hidden | padding
    return added, hidden


def _is_bool(mask: Any) -> bool:
    return isinstance(mask, Tensor) and mask.dtype == torch.bool


def _masked(scores: Tensor, added: Any, hidden: Tensor | None) -> Tensor:
    """Scores with what is added, and hidden ones -inf."""
    if isinstance(added, Tensor) and added.dtype != torch.bool:
        scores = scores + added
    return scores if hidden is None else scores.masked_fill(hidden, float("-inf"))


def _or(put: Mapping[str, Tensor], name: str, value: Tensor) -> Tensor:
    return put[name].reshape(value.shape).to(value.dtype) if name in put else value
