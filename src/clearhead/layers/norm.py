"""Norms as parts with trained weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.ops.norm import rms_norm
from clearhead.ops.softmax import at_least_float32


class LayerNorm(nn.Module):
    """γ (x - μ) / √(σ² + ε) + β over the features of each position; PyTorch's kernel for `ops.layer_norm`.

    Args:
        width: D.
        eps: ε.
        bias: whether β exists.
    """

    def __init__(self, width: int, *, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    """γ x / √(mean(x²) + ε) over the features of each position.

    Args:
        width: D (d for a norm of q or k).
        eps: ε.
    """

    def __init__(self, width: int, *, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        return rms_norm(x, self.weight, self.eps)


class OffsetRMSNorm(nn.Module):
    """RMSNorm with γ = 1 + w, w stored and 0 at first: Gemma's convention.

    Args:
        width: D.
        eps: ε.
    """

    def __init__(self, width: int, *, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        return rms_norm(x, 1.0 + self.weight.to(at_least_float32(self.weight.dtype)), self.eps)


class ScaledNorm(nn.Module):
    """s · N(x): what a head reads that shares its weights with an embedding made for features 1/s larger.

    Args:
        norm: N.
        scale: s.

    Source: Raffel et al. 2020 (T5 1.0, s = 1/√D), in its reference code.
    """

    def __init__(self, norm: nn.Module, scale: float) -> None:
        super().__init__()
        self.norm, self.scale = norm, scale

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        normed: Tensor = self.norm(x)
        return self.scale * normed
