"""One vector for a row of positions: the first, the mean or the maximum of its real tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.ops.softmax import at_least_float32


def pool_first(x: Tensor, real: Tensor) -> Tensor:
    """The features of the first real token of each row: (B,T,D) -> (B,D). With left padding that is not place 0.

    Args:
        x: features (B,T,D).
        real: (B,T) booleans, False for padding.

    Returns:
        (B,D); zeros for a row without a real token.
    """
    first = real.int().argmax(-1)
    return _or_zero(x[torch.arange(len(x), device=x.device), first], real)


def pool_mean(x: Tensor, real: Tensor) -> Tensor:
    """Σ x[t] / n over the n real tokens of each row: (B,T,D) -> (B,D); summed in float32 or wider.

    Args:
        x: features (B,T,D).
        real: (B,T) booleans, False for padding.

    Returns:
        (B,D), of the type of `x`; zeros for a row without a real token.

    Source: Reimers and Gurevych 2019 (arXiv:1908.10084) §3.
    """
    # Filled, not multiplied by 0: what stands at padding may be no number.
    total = x.to(at_least_float32(x.dtype)).masked_fill(~real[..., None], 0.0).sum(-2)
    return (total / real.sum(-1, keepdim=True).clamp(min=1)).to(x.dtype)


def pool_max(x: Tensor, real: Tensor) -> Tensor:
    """The largest value of each feature over the real tokens of each row: (B,T,D) -> (B,D).

    Args:
        x: features (B,T,D).
        real: (B,T) booleans, False for padding.

    Returns:
        (B,D); zeros for a row without a real token.
    """
    return _or_zero(x.masked_fill(~real[..., None], -torch.inf).amax(-2), real)


def unit_length(x: Tensor) -> Tensor:
    """x / |x| over the features: (..., D) -> (..., D), in float32 or wider, then of the type of `x`; zeros stay zeros.

    The product of two such vectors is the cosine of their angle.
    """
    wide = x.to(at_least_float32(x.dtype))
    length: Tensor = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
    return (wide / length.masked_fill(length == 0, 1.0)).to(x.dtype)


def _or_zero(pooled: Tensor, real: Tensor) -> Tensor:
    return pooled.masked_fill(~real.any(-1, keepdim=True), 0.0)
