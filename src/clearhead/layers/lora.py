"""A linear layer that stays as it is and learns beside it: a change of low rank."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.ops.softmax import at_least_float32


class LowRankLinear(nn.Module):
    """y = W x + b + (α/r) B A x, with W and b frozen: only A (r, in) and B (out, r) are trained.

    A is drawn as the paper's code draws it (Kaiming uniform with a = √5, so within ±1/√in), B begins as zeros: at the
    start y is exactly what W x + b is. The place that the layer takes keeps its name, and whoever reads `weight` and `bias`
    of the layer there finds those of the sum.

    Args:
        base: the layer that stays as it is.
        rank: r, the most that the change can have.
        alpha: α; α/r scales the change, so that another r needs no other learning rate.
        dropout: probability, in training, of dropping a feature of x on the way to A alone.

    Source: Hu et al. 2021 §4.1 (arXiv:2106.09685).
    """

    def __init__(self, base: nn.Linear, rank: int, alpha: float, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale, self.dropout = alpha / rank, nn.Dropout(dropout)
        # Drawn on the CPU, so that a seed means the same numbers on every device.
        a = nn.init.kaiming_uniform_(torch.empty(rank, base.in_features, dtype=base.weight.dtype), a=math.sqrt(5))
        self.lora_a = nn.Parameter(a.to(base.weight.device))
        self.lora_b = nn.Parameter(base.weight.new_zeros(base.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        narrow = F.linear(self.dropout(x), self.lora_a)
        y: Tensor = self.base(x) + self.scale * F.linear(narrow, self.lora_b)
        return y

    @property
    def weight(self) -> Tensor:
        """W + (α/r) B A, (out, in), summed in at least float32; dropout has no part in it."""
        wide = at_least_float32(self.base.weight.dtype)
        change = self.lora_b.to(wide) @ self.lora_a.to(wide)
        return (self.base.weight.to(wide) + self.scale * change).to(self.base.weight.dtype)

    @property
    def bias(self) -> Tensor | None:
        """b; None if the layer has none."""
        return self.base.bias

    @property
    def in_features(self) -> int:
        """How many features x has."""
        return self.base.in_features

    @property
    def out_features(self) -> int:
        """How many features y has."""
        return self.base.out_features

    def merged(self) -> nn.Linear:
        """One layer that computes the same, with W + (α/r) B A as its weight; its own copy of everything, trainable."""
        made = nn.Linear(self.in_features, self.out_features, bias=self.bias is not None, device="meta")
        made.weight = nn.Parameter(self.weight.detach().clone())
        if self.bias is not None:
            made.bias = nn.Parameter(self.bias.detach().clone())
        return made.train(self.training)
