"""Norms that are right, in the styles in which people write them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case


class ManualLayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-12):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        mean, var = x.mean(-1, keepdim=True), x.var(-1, unbiased=False, keepdim=True)
        return self.gamma * (x - mean) / torch.sqrt(var + self.eps) + self.beta


class NoBiasLayerNorm(nn.Module):
    def __init__(self, ndim, bias=False):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(ndim))
        self.bias = nn.Parameter(torch.zeros(ndim)) if bias else None

    def forward(self, input):
        return F.layer_norm(input, self.weight.shape, self.weight, self.bias, 1e-5)


class LlamaRMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        return self._norm(x.float()).type_as(x) * self.weight


class T5LayerNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        """Construct a layernorm module in the T5 style. No bias and no subtraction of mean."""
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(hidden_size)), eps

    def forward(self, hidden_states):
        variance = hidden_states.to(torch.float32).pow(2).mean(-1, keepdim=True)
        return self.weight * hidden_states * torch.rsqrt(variance + self.variance_epsilon)


class GemmaRMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        y = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * (1.0 + self.weight.float())).type_as(x)


class ScaleNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.g, self.eps = nn.Parameter(torch.tensor(dim**0.5)), eps

    def forward(self, x):
        return x / x.norm(dim=-1, keepdim=True).clamp(min=self.eps) * self.g


class UnitRMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale, self.gamma = dim**0.5, nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return F.normalize(x, dim=-1) * self.scale * self.gamma


class SequenceBatchNorm(nn.Module):
    """Batch norm over the features of a sequence."""

    def __init__(self, dim):
        super().__init__()
        self.bn = nn.BatchNorm1d(dim)

    def forward(self, x):
        return self.bn(x.transpose(1, 2)).transpose(1, 2)


class ChannelsFirstLayerNorm(nn.Module):
    """LayerNorm over the channels of (B, C, H, W)."""

    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight, self.bias, self.eps = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim)), eps

    def forward(self, x):
        u = x.mean(1, keepdim=True)
        s = (x - u).pow(2).mean(1, keepdim=True)
        x = (x - u) / torch.sqrt(s + self.eps)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


class EinsumLayerNorm(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.ones(cfg.d_model)), nn.Parameter(torch.zeros(cfg.d_model))
        self.eps = 1e-5

    def forward(self, residual):
        residual = residual - residual.mean(-1, keepdim=True)
        scale = (torch.einsum("bpd,bpd->bp", residual, residual) / residual.shape[-1] + self.eps).sqrt()
        return residual / scale[..., None] * self.w + self.b


def rms_norm(x, weight=None, eps=1e-6):
    out = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return out if weight is None else out * weight


def qk_norm(x):
    """Unit length for queries and keys."""
    return F.normalize(x, dim=-1)


def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    return gamma * (x - mean) / ((x - mean).pow(2).mean(-1, keepdim=True) + eps).sqrt() + beta


def torch_layer_norm():
    return nn.LayerNorm(24)


def torch_rms_norm():
    return nn.RMSNorm(24, eps=1e-6)


class DynamicTanhNorm(nn.Module):
    """Transformers without normalization: tanh in its place."""

    def __init__(self, dim):
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor([0.5]))
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return torch.tanh(self.alpha * x) * self.weight + self.bias


CASES = [
    Case("ManualLayerNorm", "norm", guess=True),
    Case("NoBiasLayerNorm", "norm", guess=True),
    Case("LlamaRMSNorm", "norm", guess=True),
    Case("T5LayerNorm", "norm"),
    Case("GemmaRMSNorm", "norm", guess=True),
    Case("ScaleNorm", "norm"),
    Case("UnitRMSNorm", "norm"),
    Case("SequenceBatchNorm", "norm"),
    Case("ChannelsFirstLayerNorm", "norm"),
    Case("EinsumLayerNorm", "norm"),
    Case("rms_norm", "norm", guess=True),
    Case("qk_norm", "norm"),
    Case("layer_norm", "norm", guess=True),
    Case("torch_layer_norm", "norm"),
    Case("torch_rms_norm", "norm"),
    Case("DynamicTanhNorm", "norm"),
]
