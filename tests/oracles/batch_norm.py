"""Batch normalisation, for teaching: why a Transformer does not have it. No part of the package."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class BatchNorm(nn.Module):
    """γ (x - μ) / √(σ² + ε) + β, the statistics of each feature taken over all rows and all positions.

    In training the statistics are those of the batch, and their moving average is kept; in evaluation the average is
    used. So the output of one position depends on the other rows, on later positions, and on the mode.

    Source: Ioffe and Szegedy 2015 (arXiv:1502.03167).
    """

    def __init__(self, width: int, *, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """(B,T,D) -> (B,T,D)."""
        mean, variance = self.mean, self.variance
        if self.training:
            every = tuple(range(x.dim() - 1))
            count = x.numel() // x.shape[-1]
            mean = x.mean(every)
            variance = (x - mean).square().mean(every)
            with torch.no_grad():
                self.mean.lerp_(mean, self.momentum)
                self.variance.lerp_(variance * count / (count - 1), self.momentum)
        return (x - mean) / (variance + self.eps).sqrt() * self.weight + self.bias
