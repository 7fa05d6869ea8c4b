"""Modules that compute a step in 16 bit whatever they are given, and such that keep float32 islands."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from bench.checking.case import Case


class Attention(nn.Module):
    """The steps that subclasses change are methods."""

    def __init__(self, d_model: int = 24, num_heads: int = 3) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def weigh(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1)

    def multiply(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])

    def turn(self, x: Tensor) -> Tensor:
        return x

    def normed(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(self.normed(x)).view(b, t, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        y = self.weigh(self.multiply(self.turn(q), self.turn(k))) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class SoftmaxHalf(Attention):
    """The softmax in fp16."""

    def weigh(self, scores: Tensor) -> Tensor:
        return scores.half().softmax(-1).to(scores.dtype)


class ScoresHalf(Attention):
    """The scores in bf16."""

    def multiply(self, q: Tensor, k: Tensor) -> Tensor:
        low = torch.matmul(q.to(torch.bfloat16), k.to(torch.bfloat16).transpose(-2, -1))
        return low.to(q.dtype) / math.sqrt(q.shape[-1])


class SoftmaxSingle(Attention):
    """The softmax in float32: an island."""

    def weigh(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=-1, dtype=torch.float32).to(scores.dtype)


def _turned(x: Tensor, kind: torch.dtype) -> Tensor:
    half = x.shape[-1] // 2
    frequencies = 10_000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angles = torch.arange(x.shape[-2], device=x.device).to(kind)[:, None] * frequencies.to(kind)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    one, other = x.chunk(2, -1)
    return torch.cat([one * cos - other * sin, other * cos + one * sin], -1)


class AnglesHalf(Attention):
    """Angles in bf16."""

    def turn(self, x: Tensor) -> Tensor:
        return _turned(x, torch.bfloat16)


class AnglesFloat16(Attention):
    """Angles in fp16."""

    def turn(self, x: Tensor) -> Tensor:
        return _turned(x, torch.float16)


class AnglesSingle(Attention):
    """Angles in float32: an island."""

    def turn(self, x: Tensor) -> Tensor:
        return _turned(x, torch.float32)


class NormHalf(Attention):
    """Statistics in bf16."""

    def normed(self, x: Tensor) -> Tensor:
        low = x.to(torch.bfloat16)
        return (low * torch.rsqrt(low.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype)


class NormVarianceHalf(Attention):
    """Mean and variance in fp16."""

    def normed(self, x: Tensor) -> Tensor:
        low = x.half()
        mean, variance = low.mean(-1, keepdim=True).to(x.dtype), low.var(-1, keepdim=True, unbiased=False).to(x.dtype)
        return (x - mean) / (variance + 1e-5).sqrt()


class NormSingle(Attention):
    """Statistics in float32: an island."""

    def normed(self, x: Tensor) -> Tensor:
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x)


CASES = [
    Case("SoftmaxHalf", "attention", "score.precision"),
    Case("ScoresHalf", "attention", "score.precision"),
    Case("AnglesHalf", "attention", "rotary.low-precision"),
    Case("AnglesFloat16", "attention", "rotary.low-precision"),
    Case("NormHalf", "attention", "norm.low-precision"),
    Case("NormVarianceHalf", "attention", "norm.low-precision"),
    Case("SoftmaxSingle", "attention"),
    Case("AnglesSingle", "attention"),
    Case("NormSingle", "attention"),
]
