"""Looking again: scores and weights of some heads and queries, from what an attention kernel was given.

Source: the definition, `attend_visible`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from clearhead.ops.attention import scaled_scores
from clearhead.ops.softmax import softmax
from clearhead.ops.tap import Edited, Ran


def scores_of(ran: Ran, heads: Sequence[int], queries: Sequence[int] | None = None) -> Tensor:
    """The scores after scale, cap and bias, before the mask: (B,h,t,S). Nothing is computed for other heads and queries.

    Args:
        ran: what the kernel was given; scores that a tap has changed are those.
        heads: h query heads.
        queries: t places along the query axis; all if None.
    """
    shared = ran.q.shape[-3] // ran.k.shape[-3]
    keys = ran.k[..., [head // shared for head in heads], :, :]
    scores = scaled_scores(_some(ran.q, heads, queries), keys, ran.scale)
    if ran.cap is not None:
        scores = ran.cap * torch.tanh(scores / ran.cap)
    scores = scores if ran.bias is None else scores + _part(ran.bias, ran, heads, queries)
    return scores if ran.edited is None else _with_edited(scores, ran.edited, ran.edited.scores, heads, queries)


def weights_of(ran: Ran, scores: Tensor, heads: Sequence[int], queries: Sequence[int] | None = None) -> Tensor:
    """softmax of these scores, -∞ where a query must not look: (B,h,t,S) -> (B,h,t,S).

    Args:
        ran: what the kernel was given; weights that a tap has changed are those.
        scores: of the heads and queries, as `scores_of` gave them, or changed.
        heads: as there.
        queries: as there.
    """
    allowed = _part(ran.visible.matrix(scores.device), ran, heads, queries)
    sink = None if ran.sinks is None else ran.sinks[list(heads), None, None].to(scores.dtype)
    weights = softmax(scores.masked_fill(~allowed, -torch.inf), sink=sink)
    return weights if ran.edited is None else _with_edited(weights, ran.edited, ran.edited.weights, heads, queries)


def mixed_by(ran: Ran, weights: Tensor, heads: Sequence[int]) -> Tensor:
    """Σ_s weights[t,s] v[s] of these heads: (B,h,t,S) -> (B,h,t,d_v)."""
    shared = ran.q.shape[-3] // ran.v.shape[-3]
    return weights.to(ran.v.dtype) @ ran.v[..., [head // shared for head in heads], :, :]


def _with_edited(
    tensor: Tensor, edited: Edited, changed: Tensor, heads: Sequence[int], queries: Sequence[int] | None
) -> Tensor:
    """The tensor (B,h,t,S), with the heads that were changed as they are now."""
    parts = list(tensor.unbind(-3))
    for place, head in enumerate(heads):
        if head in edited.heads:
            now = changed[..., edited.heads.index(head), :, :]
            parts[place] = now if queries is None else now[..., list(queries), :]
    return torch.stack(parts, dim=-3)


def _some(tensor: Tensor, heads: Sequence[int], queries: Sequence[int] | None) -> Tensor:
    """(B,H,T,·) -> (B,h,t,·)."""
    some = tensor[..., list(heads), :, :]
    return some if queries is None else some[..., list(queries), :]


def _part(matrix: Tensor, ran: Ran, heads: Sequence[int], queries: Sequence[int] | None) -> Tensor:
    """The heads and queries of what broadcasts to (B,H,T,S); an axis of size 1 stands for all."""
    if matrix.dim() > 2 and matrix.shape[-3] == ran.q.shape[-3] > 1:
        matrix = matrix[..., list(heads), :, :]
    return matrix if queries is None or matrix.shape[-2] == 1 else matrix[..., list(queries), :]
