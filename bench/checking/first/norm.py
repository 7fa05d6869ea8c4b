"""Norms with planted faults, in the styles in which people write them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case


class TokenMeanLayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(dim=1, keepdim=True)
        var = x.var(dim=1, keepdim=True, unbiased=False)
        return self.gamma * (x - mean) / torch.sqrt(var + self.eps) + self.beta


class BatchRMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean((0, 1), keepdim=True) + self.eps) * self.weight


class TransposedNorm(nn.Module):
    """Layer normalisation."""

    def __init__(self, dim):
        super().__init__()
        self.norm = nn.BatchNorm1d(dim)

    def forward(self, x):
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


class WholeTensorLayerNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-5):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(hidden_size)), nn.Parameter(torch.zeros(hidden_size))
        self.eps = eps

    def forward(self, hidden_states):
        return F.layer_norm(hidden_states, hidden_states.shape[1:], eps=self.eps) * self.weight + self.bias


class AnnotatedLayerNorm(nn.Module):
    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(features))
        self.b_2 = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.a_2 * (x - mean) / (std + self.eps) + self.b_2


def unbiased_layer_norm(x, weight=None, bias=None, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    out = centred / torch.sqrt(x.var(-1, keepdim=True) + eps)
    if weight is not None:
        out = out * weight
    return out if bias is None else out + bias


class UnbiasedNoAffine(nn.Module):
    """LayerNorm without affine."""

    def forward(self, x):
        var, mean = torch.var_mean(x, -1, keepdim=True)
        return (x - mean) * torch.rsqrt(var + 1e-5)


class VarianceForRoot(nn.Module):
    def __init__(self, n_embd):
        super().__init__()
        self.ln_w, self.ln_b = nn.Parameter(torch.ones(n_embd)), nn.Parameter(torch.zeros(n_embd))

    def forward(self, x):
        mu = x.mean(-1, keepdim=True)
        var = ((x - mu) ** 2).mean(-1, keepdim=True)
        return (x - mu) / (var + 1e-5) * self.ln_w + self.ln_b


class MultipliedRMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.g = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.sqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.g


class MeanLeftLayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight, self.bias = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return x / torch.sqrt(x.var(-1, keepdim=True, correction=0) + self.eps) * self.weight + self.bias


class ScaledLayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps, self.weight, self.bias = eps, nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return self.weight * x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps) + self.bias


class SumRMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + self.eps)


class CentredRMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(hidden_size)), eps

    def forward(self, hidden_states):
        variance = hidden_states.var(-1, keepdim=True, unbiased=False)
        hidden_states = (hidden_states - hidden_states.mean(-1, keepdim=True)) * torch.rsqrt(
            variance + self.variance_epsilon
        )
        return self.weight * hidden_states


class OutsideLayerNorm(nn.Module):
    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.gamma, self.beta, self.eps = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features)), eps

    def forward(self, x):
        std = x.std(-1, keepdim=True, unbiased=False)
        return self.gamma * (x - x.mean(-1, keepdim=True)) / (std + self.eps) + self.beta


def rms_norm_outside(x, weight, eps):
    return x / (x.pow(2).mean(-1, keepdim=True).sqrt() + eps) * weight


class HardCodedEps(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-6)


class LlamaishRMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * hidden_states * torch.rsqrt(variance + 1e-3)


class EpsForgotten(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.ln, self.eps = nn.LayerNorm(dim, eps=1e-12), eps

    def forward(self, x):
        return self.ln(x)


class HalfRMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x):
        variance = x.to(torch.bfloat16).pow(2).mean(-1, keepdim=True)
        return x * torch.rsqrt(variance + self.eps).to(x.dtype) * self.weight


def half_layer_norm(x, weight, bias, eps=1e-5):
    mean, var = x.half().mean(-1, keepdim=True), (x / 64).half().var(-1, keepdim=True, unbiased=False) * 4096
    return ((x - mean.to(x.dtype)) / (var.to(x.dtype) + eps).sqrt()) * weight + bias


class GemmaTwice(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x):
        y = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * (1.0 + self.weight.float())).type_as(x)


class GemmaMissing(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def gemma_added_twice(x, weight, eps=1e-6):
    scale = 1 + weight
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * (1 + scale)


class SquaredWeight(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight, self.norm = nn.Parameter(torch.ones(dim)), None

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, 1e-6) * self.weight


class VarianceSquared(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps, self.g, self.b = eps, nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        var, mean = torch.var_mean(x, -1, keepdim=True, correction=0)
        return self.g * (x - mean) / (var + self.eps).square() + self.b


def normed(x, weight, bias):
    return weight * x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).pow(1.5) + bias


CASES = [
    Case("TokenMeanLayerNorm", "norm", "norm.axis", guess=True),
    Case("BatchRMSNorm", "norm", "norm.axis", guess=True),
    Case("TransposedNorm", "norm", "norm.axis"),
    Case("WholeTensorLayerNorm", "norm", "norm.axis"),
    Case("AnnotatedLayerNorm", "norm", "norm.unbiased-variance", ("norm.eps-placement",)),
    Case("unbiased_layer_norm", "norm", "norm.unbiased-variance", guess=True),
    Case("UnbiasedNoAffine", "norm", "norm.unbiased-variance"),
    Case("VarianceForRoot", "norm", "norm.formula"),
    Case("MultipliedRMSNorm", "norm", "norm.formula"),
    Case("MeanLeftLayerNorm", "norm", "norm.formula"),
    Case("ScaledLayerNorm", "norm", "norm.formula"),
    Case("SumRMSNorm", "norm", "norm.formula"),
    Case("CentredRMSNorm", "norm", "norm.formula"),
    Case("SquaredWeight", "norm", "norm.formula"),
    Case("VarianceSquared", "norm", "norm.formula"),
    Case("normed", "norm", "norm.formula"),
    Case("OutsideLayerNorm", "norm", "norm.eps-placement"),
    Case("rms_norm_outside", "norm", "norm.eps-placement", guess=True),
    Case("HardCodedEps", "norm", "norm.eps-value"),
    Case("LlamaishRMSNorm", "norm", "norm.eps-value"),
    Case("EpsForgotten", "norm", "norm.eps-value"),
    Case("HalfRMSNorm", "norm", "norm.low-precision"),
    Case("half_layer_norm", "norm", "norm.low-precision"),
    Case("GemmaTwice", "norm", "norm.offset"),
    Case("GemmaMissing", "norm", "norm.offset"),
    Case("gemma_added_twice", "norm", "norm.offset"),
]
