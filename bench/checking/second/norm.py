"""Norms."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


class Affine(nn.Module):
    def __init__(self, dim: int = 16, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))


class WholeNorm(Affine):
    def forward(self, x: Tensor) -> Tensor:
        mean, var = x.mean(dim=(1, 2), keepdim=True), x.var(dim=(1, 2), keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias


class LayerNorm1d(Affine):
    def forward(self, x: Tensor) -> Tensor:
        xmean, xvar = x.mean(1, keepdim=True), x.var(1, keepdim=True, correction=0)
        return self.weight * (x - xmean) / torch.sqrt(xvar + self.eps) + self.bias


class SampleVariance(Affine):
    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True)
        return self.weight * (x - mean) / torch.sqrt(var + self.eps) + self.bias


class AnnotatedNorm(nn.Module):
    def __init__(self, features: int):
        super().__init__()
        self.a_2, self.b_2 = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features))

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        n = x.size(-1)
        return self.a_2 * centred * torch.rsqrt(centred.pow(2).sum(-1, keepdim=True) / (n - 1) + 1e-5) + self.b_2


class NoRoot(Affine):
    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        var = (x - mean).pow(2).mean(-1, keepdim=True)
        return (x - mean) / (var + self.eps) ** 2 * self.weight + self.bias


class RMSTimes(nn.Module):
    def __init__(self, dim: int = 24, eps: float = 1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Uncentred(Affine):
    def forward(self, x: Tensor) -> Tensor:
        var = x.var(-1, keepdim=True, unbiased=False)
        return x / torch.sqrt(var + self.eps) * self.weight + self.bias


class RootThenEps(Affine):
    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True, unbiased=False)
        return self.weight * (x - mean) / (std + self.eps) + self.bias


class RMSRootThenEps(nn.Module):
    def __init__(self, hidden_size: int, eps: float = 1e-6):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(hidden_size)), eps

    def forward(self, hidden_states: Tensor) -> Tensor:
        rms = hidden_states.pow(2).mean(-1, keepdim=True).sqrt()
        return self.weight * (hidden_states / (rms + self.variance_epsilon))


class OtherEps(nn.Module):
    def __init__(self, hidden_size: int = 32, eps: float = 1e-6):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(hidden_size)), eps

    def forward(self, hidden_states: Tensor) -> Tensor:
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * hidden_states * torch.rsqrt(variance + 1e-3)


class DroppedEps(nn.Module):
    def __init__(self, normalized_shape: int = 16, eps: float = 1e-12):
        super().__init__()
        self.eps = eps
        self.weight, self.bias = nn.Parameter(torch.ones(normalized_shape)), nn.Parameter(torch.zeros(normalized_shape))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias)


class BFloatRMS(nn.Module):
    def __init__(self, dim: int = 32, eps: float = 1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        h = x.to(torch.bfloat16)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)
        return h.to(x.dtype) * self.weight


class HalfStatistics(Affine):
    def forward(self, x: Tensor) -> Tensor:
        half = x.half()
        mean = half.mean(-1, keepdim=True).to(x.dtype)
        var = half.var(-1, keepdim=True, unbiased=False).to(x.dtype)
        return (x - mean) * torch.rsqrt(var + self.eps) * self.weight + self.bias


class GemmaNormMissing(nn.Module):
    """The weight is kept as an offset from one."""

    def __init__(self, dim: int = 24, eps: float = 1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class GemmaNormTwice(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * (1.0 + self.weight)


class RightLayerNorm(Affine):
    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, correction=0)
        return (x - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias


class RightBiasless(nn.Module):
    def __init__(self, ndim: int, bias: bool = False):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(ndim))
        self.bias = nn.Parameter(torch.zeros(ndim)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class LlamaRMSNorm(nn.Module):
    def __init__(self, hidden_size: int = 32, eps: float = 1e-5):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(hidden_size)), eps

    def forward(self, hidden_states: Tensor) -> Tensor:
        dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden_states * torch.rsqrt(variance + self.variance_epsilon)).to(dtype)


class GemmaRMSNorm(nn.Module):
    """The weight is kept as an offset from one."""

    def __init__(self, dim: int = 16, eps: float = 1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        out = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        return (out * (1.0 + self.weight.float())).type_as(x)


class UnitRMS(nn.Module):
    """x over its length, times sqrt(D) and a gain."""

    def __init__(self, dim: int):
        super().__init__()
        self.scale, self.g = dim**0.5, nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=-1) * self.scale * self.g


class PlainLayerNorm(nn.Module):
    """Nothing to learn."""

    def __init__(self, dim: int = 20):
        super().__init__()
        self.norm = nn.LayerNorm(dim, elementwise_affine=False, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


class TokenBatchNorm(nn.Module):
    """Batch norm over the features, as some encoders of time series have it."""

    def __init__(self, d_model: int = 16):
        super().__init__()
        self.norm = nn.BatchNorm1d(d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


CASES = [
    Case("WholeNorm", "norm", "norm.axis"),
    Case("LayerNorm1d", "norm", "norm.axis", guess=True),
    Case("SampleVariance", "norm", "norm.unbiased-variance", guess=True),
    Case("AnnotatedNorm", "norm", "norm.unbiased-variance"),
    Case("NoRoot", "norm", "norm.formula"),
    Case("RMSTimes", "norm", "norm.formula"),
    Case("Uncentred", "norm", "norm.formula"),
    Case("RootThenEps", "norm", "norm.eps-placement"),
    Case("RMSRootThenEps", "norm", "norm.eps-placement"),
    Case("OtherEps", "norm", "norm.eps-value"),
    Case("DroppedEps", "norm", "norm.eps-value"),
    Case("BFloatRMS", "norm", "norm.low-precision"),
    Case("HalfStatistics", "norm", "norm.low-precision"),
    Case("GemmaNormMissing", "norm", "norm.offset", ("weights.zero",)),
    Case("GemmaNormTwice", "norm", "norm.offset"),
    Case("RightLayerNorm", "norm", guess=True),
    Case("RightBiasless", "norm"),
    Case("LlamaRMSNorm", "norm", guess=True),
    Case("GemmaRMSNorm", "norm"),
    Case("UnitRMS", "norm"),
    Case("PlainLayerNorm", "norm"),
    Case("TokenBatchNorm", "norm"),
]
