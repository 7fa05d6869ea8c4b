"""Rotary positions."""

import math

import torch
from torch import Tensor, nn

from bench.checking.case import Case


def rotate_half(x: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat([-b, a], dim=-1)


def rotate_pairs(x: Tensor) -> Tensor:
    return torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)


def frequencies(dim: int, base: float = 10000.0) -> Tensor:
    return base ** (-torch.arange(0, dim, 2, dtype=torch.float32) / dim)


class UnsignedHalf(nn.Module):
    def __init__(self, head_dim: int = 16, base: float = 10000.0):
        super().__init__()
        self.base = base
        self.register_buffer("inv_freq", frequencies(head_dim, base), persistent=False)

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        t = torch.arange(q.size(-2), device=q.device, dtype=q.dtype)
        angles = t[:, None] * self.inv_freq.to(q.dtype)
        emb = torch.cat([angles, angles], dim=-1)
        half = q.size(-1) // 2
        return q * emb.cos() + q.roll(half, -1) * emb.sin(), k * emb.cos() + k.roll(half, -1) * emb.sin()


def apply_opposite(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    inv = frequencies(q.shape[-1]).to(q)
    angles = torch.arange(q.shape[-2], device=q.device, dtype=q.dtype)[:, None] * inv
    cos, sin = angles.cos().repeat_interleave(2, -1), angles.sin().repeat_interleave(2, -1)
    return q * cos + rotate_pairs(q) * sin, k * cos - rotate_pairs(k) * sin


class RotaryEmbedding(nn.Module):
    def __init__(self, dim: int, max_position: int = 64, base: float = 10000.0):
        super().__init__()
        self.base = base
        angles = torch.outer(torch.arange(max_position).float(), frequencies(dim, base))
        self.register_buffer("cos", torch.cat([angles, angles], -1).cos(), persistent=False)
        self.register_buffer("sin", torch.cat([angles, angles], -1).sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        cos, sin = self.cos[:n].to(x.dtype)[None, :, None], self.sin[:n].to(x.dtype)[None, :, None]
        return x * cos + rotate_half(x) * sin


class PairedByHead(nn.Module):
    def __init__(self, head_dim: int = 8):
        super().__init__()
        self.head_dim = head_dim

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        inv = frequencies(self.head_dim).to(q)
        index = torch.arange(q.size(1), device=q.device, dtype=q.dtype).view(1, -1, 1, 1)
        cos = (index * inv).cos().repeat_interleave(2, -1)
        sin = (index * inv).sin().repeat_interleave(2, -1)
        return q * cos + rotate_pairs(q) * sin, k * cos + rotate_pairs(k) * sin


def rotate_queries(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    angles = torch.arange(q.size(-2), device=q.device, dtype=q.dtype)[:, None] * frequencies(q.size(-1)).to(q)
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
    return q * cos + rotate_half(q) * sin, k


class KeysOnly(nn.Module):
    def __init__(self, dim: int = 16, theta: float = 10000.0):
        super().__init__()
        self.theta = theta
        self.register_buffer("inv_freq", frequencies(dim, theta))

    def turn(self, x: Tensor) -> Tensor:
        angles = torch.arange(x.size(-2), device=x.device, dtype=x.dtype)[:, None] * self.inv_freq.to(x.dtype)
        cos, sin = angles.cos().repeat_interleave(2, dim=-1), angles.sin().repeat_interleave(2, dim=-1)
        return x * cos + rotate_pairs(x) * sin

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return q, self.turn(k)


def mixed_pairing(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    angles = torch.arange(q.size(-2), device=q.device, dtype=q.dtype)[:, None] * frequencies(q.size(-1)).to(q)
    cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
    return q * cos + rotate_pairs(q) * sin, k * cos + rotate_pairs(k) * sin


class InterleavedTable(nn.Module):
    def __init__(self, head_dim: int = 16):
        super().__init__()
        self.register_buffer("inv_freq", frequencies(head_dim), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        angles = torch.arange(x.size(2), device=x.device, dtype=x.dtype)[:, None] * self.inv_freq.to(x.dtype)
        angles = angles.repeat_interleave(2, dim=-1)
        return x * angles.cos() + rotate_half(x) * angles.sin()


class HalfAngles(nn.Module):
    def __init__(self, dim: int = 16, base: float = 10000.0):
        super().__init__()
        self.dim, self.base = dim, base

    def forward(self, q: Tensor, k: Tensor, position_ids: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if position_ids is None:
            position_ids = torch.arange(q.size(-2), device=q.device)
        inv = frequencies(self.dim, self.base).to(q.device, torch.bfloat16)
        angles = position_ids.to(torch.bfloat16)[..., None] * inv
        emb = torch.cat([angles, angles], dim=-1).to(q.dtype)
        return q * emb.cos() + rotate_half(q) * emb.sin(), k * emb.cos() + rotate_half(k) * emb.sin()


def float16_rotary(x: Tensor) -> Tensor:
    t = torch.arange(x.shape[-2], device=x.device, dtype=torch.float16)
    angles = t[:, None] * frequencies(x.shape[-1]).to(x.device).half()
    cos, sin = angles.cos().to(x.dtype).repeat_interleave(2, -1), angles.sin().to(x.dtype).repeat_interleave(2, -1)
    return x * cos + rotate_pairs(x) * sin


class LongBase(nn.Module):
    """theta as in the configuration of the checkpoint."""

    def __init__(self, head_dim: int = 16, theta: float = 500000.0):
        super().__init__()
        self.head_dim, self.theta = head_dim, theta
        self.register_buffer("inv_freq", frequencies(head_dim), persistent=False)

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        angles = torch.arange(q.size(-2), device=q.device, dtype=q.dtype)[:, None] * self.inv_freq.to(q.dtype)
        emb = torch.cat([angles, angles], dim=-1)
        return q * emb.cos() + rotate_half(q) * emb.sin(), k * emb.cos() + rotate_half(k) * emb.sin()


class SmallBase(nn.Module):
    def __init__(self, dim: int, base: float = 10000.0):
        super().__init__()
        self.dim, self.base = dim, base

    def forward(self, x: Tensor) -> Tensor:
        inv = torch.exp(torch.arange(0, self.dim, 2, device=x.device, dtype=x.dtype) * (-math.log(1000.0) / self.dim))
        angles = torch.arange(x.size(-2), device=x.device, dtype=x.dtype)[:, None] * inv
        cos, sin = angles.cos().repeat_interleave(2, -1), angles.sin().repeat_interleave(2, -1)
        return x * cos + rotate_pairs(x) * sin


class RightHalves(nn.Module):
    def __init__(self, dim: int = 16, max_position_embeddings: int = 128, base: float = 10000.0):
        super().__init__()
        self.base = base
        angles = torch.outer(torch.arange(max_position_embeddings).float(), frequencies(dim, base))
        self.register_buffer("cos_cached", torch.cat([angles, angles], -1).cos(), persistent=False)
        self.register_buffer("sin_cached", torch.cat([angles, angles], -1).sin(), persistent=False)

    def forward(self, q: Tensor, k: Tensor, position_ids: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if position_ids is None:
            position_ids = torch.arange(q.shape[-2], device=q.device)[None]
        cos, sin = self.cos_cached[position_ids][:, None].to(q), self.sin_cached[position_ids][:, None].to(q)
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def right_pairs(x: Tensor) -> Tensor:
    angles = torch.arange(x.size(-2), device=x.device, dtype=x.dtype)[:, None] * frequencies(x.size(-1)).to(x)
    return x * angles.cos().repeat_interleave(2, -1) + rotate_pairs(x) * angles.sin().repeat_interleave(2, -1)


def right_complex(xq: Tensor, xk: Tensor) -> tuple[Tensor, Tensor]:
    """In float32 whatever comes in, as the first LLaMA code has it."""
    angles = torch.outer(torch.arange(xq.shape[-2]).float(), frequencies(xq.shape[-1])).to(xq.device)
    cis = torch.polar(torch.ones_like(angles), angles)
    q, k = (torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous()) * cis for x in (xq, xk))
    return torch.view_as_real(q).flatten(-2).type_as(xq), torch.view_as_real(k).flatten(-2).type_as(xk)


class RightPartial(nn.Module):
    def __init__(self, head_dim: int = 16, partial_rotary_factor: float = 0.5, theta: float = 10000.0):
        super().__init__()
        self.rotary_dim, self.theta = int(head_dim * partial_rotary_factor), theta
        self.register_buffer("inv_freq", frequencies(self.rotary_dim, theta), persistent=False)

    def turn(self, x: Tensor) -> Tensor:
        angles = torch.arange(x.size(-2), device=x.device).float()[:, None] * self.inv_freq.float()
        emb = torch.cat([angles, angles], -1).to(x.dtype)
        head, rest = x[..., : self.rotary_dim], x[..., self.rotary_dim :]
        return torch.cat([head * emb.cos() + rotate_half(head) * emb.sin(), rest], dim=-1)

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return self.turn(q), self.turn(k)


class RightTheta(nn.Module):
    def __init__(self, head_dim: int, theta: float = 500000.0):
        super().__init__()
        self.head_dim, self.theta = head_dim, theta

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        t = torch.arange(offset, offset + x.size(-2), device=x.device, dtype=x.dtype)
        angles = t[:, None] * frequencies(self.head_dim, self.theta).to(x)
        a, b = x[..., 0::2], x[..., 1::2]
        cos, sin = angles.cos(), angles.sin()
        return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


CASES = [
    Case("UnsignedHalf", "rotary", "rotary.not-relative"),
    Case("apply_opposite", "rotary", "rotary.not-relative"),
    Case("RotaryEmbedding", "rotary", "rotary.axis"),
    Case("PairedByHead", "rotary", "rotary.axis"),
    Case("rotate_queries", "rotary", "rotary.one-side"),
    Case("KeysOnly", "rotary", "rotary.one-side"),
    Case("mixed_pairing", "rotary", "rotary.pairing", ("rotary.not-relative",)),
    Case("InterleavedTable", "rotary", "rotary.pairing", ("rotary.not-relative",)),
    Case("HalfAngles", "rotary", "rotary.low-precision"),
    Case("float16_rotary", "rotary", "rotary.low-precision"),
    Case("LongBase", "rotary", "rotary.base"),
    Case("SmallBase", "rotary", "rotary.base"),
    Case("RightHalves", "rotary"),
    Case("right_pairs", "rotary"),
    Case("right_complex", "rotary"),
    Case("RightPartial", "rotary"),
    Case("RightTheta", "rotary"),
]
