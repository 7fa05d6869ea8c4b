"""Norms: with a mean and without one."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


class LayerNorm(nn.Module):
    def __init__(self, ndim: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(ndim))
        self.bias = nn.Parameter(torch.zeros(ndim)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class LayerNorm2(nn.Module):
    def __init__(self, features: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(features))
        self.b_2 = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.a_2 * (x - mean) / (std + self.eps) + self.b_2


class LayerNorm3(nn.Module):
    def __init__(self, features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(features))
        self.beta = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True)
        return self.gamma * (x - mean) / torch.sqrt(var + self.eps) + self.beta


class LayerNorm4(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-3) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=1, keepdim=True)
        var = x.var(dim=1, keepdim=True, correction=0)
        return self.gamma * (x - mean) / torch.sqrt(var + self.eps) + self.beta


class LayerNorm5(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        xm = x - x.mean(dim=-1, keepdim=True)
        return self.gamma * xm / (xm.pow(2).mean(dim=-1, keepdim=True) + self.eps) + self.beta


class LayerNorm6(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-2) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        std, mean = torch.std_mean(x, dim=-1, keepdim=True, correction=0)
        return self.weight * (x - mean) / (std + self.eps) + self.bias


class LayerNorm7(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.norm = nn.LayerNorm(d_model, eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


class LayerNorm8(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(d_model))
        self.b = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        var, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
        return torch.addcmul(self.b, self.w, (x - mean) * torch.rsqrt(var + self.eps))


class SequenceNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.scale, self.shift = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[1:], eps=self.eps) * self.scale + self.shift


class ScaleNorm(nn.Module):
    """One learned length for all positions."""

    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.g = nn.Parameter(torch.tensor(float(dim) ** 0.5))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return self.g * x / x.norm(dim=-1, keepdim=True).clamp(min=self.eps)


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        y = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        return y.type_as(x) * self.weight


class RMSNorm2(RMSNorm):
    def forward(self, x: Tensor) -> Tensor:
        return x / (x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class RMSNorm3(RMSNorm):
    def __init__(self, dim: int, eps: float = 1e-3) -> None:
        super().__init__(dim, eps)

    def forward(self, x: Tensor) -> Tensor:
        return x / (x.pow(2).mean(-1, keepdim=True).sqrt() + self.eps) * self.weight


class RMSNorm4(RMSNorm):
    def forward(self, x: Tensor) -> Tensor:
        y = x.to(torch.bfloat16)
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return y.to(x.dtype) * self.weight


class RMSNorm5(nn.Module):
    """The stored weight is what is added to one."""

    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * (1.0 + self.weight)


class RMSNorm6(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * (1.0 + self.weight)


class RMSNorm7(RMSNorm):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(dim=(1, 2), keepdim=True) + self.eps) * self.weight


class RMSNorm8(nn.Module):
    """Of the unit vector, at the square root of its size."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.scale = dim**0.5
        self.gamma = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=-1) * self.scale * self.gamma


class T5LayerNorm(nn.Module):
    def __init__(self, hidden_size: int, variance_epsilon: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = variance_epsilon

    def forward(self, hidden_states: Tensor) -> Tensor:
        variance = hidden_states.to(torch.float32).pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden_states * torch.rsqrt(variance + self.variance_epsilon)).to(hidden_states.dtype)


class T5LayerNorm2(nn.Module):
    def __init__(self, hidden_size: int, variance_epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = variance_epsilon

    def forward(self, hidden_states: Tensor) -> Tensor:
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * hidden_states * torch.rsqrt(variance + 1e-2)


CASES: list[Case] = [
    Case("LayerNorm", "norm", guess=True),
    Case("LayerNorm2", "norm", "norm.unbiased-variance", also=("norm.eps-placement",)),
    Case("LayerNorm3", "norm", "norm.unbiased-variance", guess=True),
    Case("LayerNorm4", "norm", "norm.axis"),
    Case("LayerNorm5", "norm", "norm.formula"),
    Case("LayerNorm6", "norm", "norm.eps-placement", guess=True),
    Case("LayerNorm7", "norm", "norm.eps-value"),
    Case("LayerNorm8", "norm"),
    Case("SequenceNorm", "norm", "norm.axis", guess=True),
    Case("ScaleNorm", "norm"),
    Case("RMSNorm", "norm", guess=True),
    Case("RMSNorm2", "norm", "norm.formula", guess=True),
    Case("RMSNorm3", "norm", "norm.eps-placement"),
    Case("RMSNorm4", "norm", "norm.low-precision"),
    Case("RMSNorm5", "norm"),
    Case("RMSNorm6", "norm", "norm.offset"),
    Case("RMSNorm7", "norm", "norm.axis"),
    Case("RMSNorm8", "norm"),
    Case("T5LayerNorm", "norm"),
    Case("T5LayerNorm2", "norm", "norm.eps-value"),
]
