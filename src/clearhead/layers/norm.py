"""Norms as parts with trained weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


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
