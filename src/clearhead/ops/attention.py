"""Scaled dot-product attention: softmax(QKᵀ/√d + mask) V. The definition you can read, and the fast kernel equal to it.

Every kernel has the same closed signature, `Attend`. `attend_visible` is the definition; `attend_fused` is PyTorch's
kernel, tested against it for values and gradients. A query that may look at nothing outputs 0, in both.

Source: Vaswani et al. 2017 §3.2.1 (arXiv:1706.03762); transformer-notes §8, §12.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from clearhead.ops.heads import repeat_heads
from clearhead.ops.masks import Causal, Everything, Mask
from clearhead.ops.softmax import softmax
from clearhead.ops.tap import NO_TAP, Ran, Tap


class Attend(Protocol):
    """A kernel of attention."""

    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        visible: Mask,
        *,
        bias: Tensor | None = None,
        scale: float | None = None,
        dropout: float = 0.0,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        """Mix the values of the keys that each query may see.

        Args:
            q: queries (B,H,T,d).
            k: keys (B,K,S,d); K divides H, and query head h reads key/value head h // (H/K).
            v: values (B,K,S,d_v); d_v may differ from d.
            visible: who may look at whom, True = may look.
            bias: added to the scaled scores, broadcasts to (B,H,T,S).
            scale: multiplies QKᵀ; 1/√d if not given.
            dropout: probability of dropping a weight after the softmax; the caller passes 0 outside training.
            tap: sees `scores` and `weights` where the kernel makes them, and may look again where it does not; is told, at the end,
                what the kernel was given.

        Returns:
            (B,H,T,d_v), of the type of `v`.
        """
        ...


def attend_visible(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    visible: Mask,
    *,
    bias: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    tap: Tap = NO_TAP,
) -> Tensor:
    """The definition: scores, scale, mask, softmax, dropout, sum; every step a tensor that you can look at.

    Shapes, arguments and result are those of `Attend`. Softmax runs in the wider of float32 and the input's type.
    """
    scores = scaled_scores(q, k, scale)
    weights = weigh(scores, visible, bias=bias, tap=tap)
    mixed = mix(weights, v, dropout)
    tap.shown("weights", Ran(mixed, q, k, v, visible, bias, scale, dropout))
    return mixed


def scaled_scores(q: Tensor, k: Tensor, scale: float | None = None) -> Tensor:
    """q kᵀ · scale, 1/√d if not given: (B,H,T,d), (B,K,S,d) -> (B,H,T,S)."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return q @ repeat_heads(k, q.shape[-3]).transpose(-2, -1) * scale


def weigh(
    scores: Tensor, visible: Mask, *, bias: Tensor | None = None, sink: Tensor | None = None, tap: Tap = NO_TAP
) -> Tensor:
    """softmax(scores + bias, -∞ where a query must not look): (B,H,T,S) -> (B,H,T,S), the sum over keys 1.

    Args:
        scores: scaled products of queries and keys.
        visible: who may look at whom.
        bias: added to the scores, broadcasts to (B,H,T,S).
        sink: a further score that takes weight and holds no value, broadcasts to (B,H,T,1).
        tap: sees `scores`, after the bias and before the mask, and `weights`.
    """
    scores = tap("scores", scores if bias is None else scores + bias)
    hidden = scores.masked_fill(~visible.matrix(scores.device), -torch.inf)
    return tap("weights", softmax(hidden, sink=sink))


def mix(weights: Tensor, v: Tensor, dropout: float = 0.0) -> Tensor:
    """Σ_s weights[t,s] v[s], after dropout of the weights: (B,H,T,S), (B,K,S,d_v) -> (B,H,T,d_v)."""
    return F.dropout(weights, dropout).to(v.dtype) @ repeat_heads(v, weights.shape[-3])


def attend_fused(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    visible: Mask,
    *,
    bias: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    tap: Tap = NO_TAP,
) -> Tensor:
    """PyTorch's fused kernel, `scaled_dot_product_attention`: the same result, without keeping the (T,S) matrices.

    Shapes, arguments and result are those of `Attend`. It has no `scores` and `weights` to show to a tap, which may look again.
    """
    mixed = _fused(q, k, v, visible, bias=bias, scale=scale, dropout=dropout)
    return tap.attended("weights", Ran(mixed, q, k, v, visible, bias, scale, dropout)).mixed


def _fused(
    q: Tensor, k: Tensor, v: Tensor, visible: Mask, *, bias: Tensor | None, scale: float | None, dropout: float
) -> Tensor:
    """The kernel itself, with a mask as PyTorch wants it."""
    triangle, grouped = _is_triangle(visible, q.shape[-2], k.shape[-2]), q.shape[-3] != k.shape[-3]
    if bias is None and (triangle or _allows_all(visible, q.shape[-2], k.shape[-2])):
        return F.scaled_dot_product_attention(
            q, k, v, dropout_p=dropout, is_causal=triangle, scale=scale, enable_gqa=grouped
        )
    allowed = visible.matrix(q.device)
    # Kernels differ on a query that may look at nothing (NaN, or the mean of v). Let it look everywhere, which keeps
    # every gradient finite, and set its output to the 0 that we promise.
    some = allowed.any(-1, keepdim=True)
    lenient = allowed | ~some
    term = lenient if bias is None else bias.to(q.dtype).masked_fill(~lenient, -torch.inf)
    # A mask of three axes would be legal, and make PyTorch leave its fast kernel for the plain one.
    term = term[None] if term.dim() == 3 else term
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=term, dropout_p=dropout, scale=scale, enable_gqa=grouped)
    return mixed.masked_fill(~some, 0.0)


def _is_triangle(visible: Mask, queries: int, keys: int) -> bool:
    """Whether the mask is the square lower triangle of these sizes, which is what PyTorch's `is_causal` means."""
    return (
        isinstance(visible, Causal)
        and isinstance(visible.queries, range)
        and len(visible.queries) == queries == keys > 1
        and visible.queries == visible.keys
    )


def _allows_all(visible: Mask, queries: int, keys: int) -> bool:
    """Whether no key is hidden, known without building the matrix: everything, or the newest position alone."""
    if isinstance(visible, Everything):
        return True
    return (
        isinstance(visible, Causal)
        and isinstance(visible.queries, range)
        and isinstance(visible.keys, range)
        and (len(visible.queries), len(visible.keys)) == (queries, keys)
        and visible.keys.stop - 1 <= visible.queries.start
    )
