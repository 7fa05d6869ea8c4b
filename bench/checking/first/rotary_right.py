"""Rotary positions that are right, in the styles in which people write them."""

from __future__ import annotations

import torch
from torch import nn

from bench.checking.case import Case


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


def half_split_rope(q, k, base=10000.0):
    d, T = q.shape[-1], q.shape[-2]
    inv = base ** (-torch.arange(0, d, 2, device=q.device).float() / d)
    angles = torch.arange(T, device=q.device).float()[:, None] * inv
    cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
    return (q * cos + rotate_half(q) * sin).type_as(q), (k * cos + rotate_half(k) * sin).type_as(k)


def interleaved_rope(x):
    """Interleaved pairs (2i, 2i+1)."""
    d = x.shape[-1]
    angles = torch.arange(x.shape[-2]).float()[:, None] * 10000 ** (-torch.arange(0, d, 2).float() / d)
    c, s = angles.cos(), angles.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2).type_as(x)


class PartialRotary(nn.Module):
    def __init__(self, head_dim, fraction=0.5, base=10000):
        super().__init__()
        self.n = int(head_dim * fraction)
        self.register_buffer("inv_freq", base ** (-torch.arange(0, self.n, 2).float() / self.n))
        self.base = base

    def turn(self, x):
        freqs = torch.outer(torch.arange(x.shape[-2], device=x.device).float(), self.inv_freq.float())
        emb = torch.cat([freqs, freqs], -1)
        part, rest = x[..., : self.n], x[..., self.n :]
        return torch.cat([(part * emb.cos() + rotate_half(part) * emb.sin()).type_as(x), rest], -1)

    def forward(self, q, k):
        return self.turn(q), self.turn(k)


class LlamaRotaryEmbedding(nn.Module):
    def __init__(self, dim, max_position_embeddings=2048, base=10000):
        super().__init__()
        self.base = base
        self.register_buffer("inv_freq", 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim)), persistent=False)

    @torch.no_grad()
    def forward(self, x, position_ids):
        inv = self.inv_freq[None, :, None].float().expand(position_ids.shape[0], -1, 1)
        freqs = (inv @ position_ids[:, None, :].float()).transpose(1, 2)
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos().to(x.dtype), emb.sin().to(x.dtype)


class CachedTables(nn.Module):
    def __init__(self, dim, max_seq_len=128, base=10000):
        super().__init__()
        freqs = torch.outer(torch.arange(max_seq_len).float(), base ** (-torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("cos_cached", torch.cat([freqs, freqs], -1).cos()[None, None])
        self.register_buffer("sin_cached", torch.cat([freqs, freqs], -1).sin()[None, None])

    def forward(self, x, seq_len=None):
        return self.cos_cached[:, :, :seq_len].to(x.dtype), self.sin_cached[:, :, :seq_len].to(x.dtype)


def precompute_freqs_cis(dim: int, end: int, theta: float = 10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    t = torch.arange(end, device=freqs.device)
    freqs = torch.outer(t, freqs).float()
    return torch.polar(torch.ones_like(freqs), freqs)


def apply_rotary_emb(xq, xk, freqs_cis):
    xq_ = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))
    xk_ = torch.view_as_complex(xk.float().reshape(*xk.shape[:-1], -1, 2))
    freqs_cis = freqs_cis.to(torch.complex64).view(1, xq_.shape[1], 1, xq_.shape[-1])
    xq_out = torch.view_as_real(xq_ * freqs_cis).flatten(3)
    xk_out = torch.view_as_real(xk_ * freqs_cis).flatten(3)
    return xq_out.type_as(xq), xk_out.type_as(xk)


def apply_rotary_pos_emb(q, k, cos, sin, position_ids=None, unsqueeze_dim=1):  # noqa: PLR0917
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return (q * cos) + (rotate_half(q) * sin), (k * cos) + (rotate_half(k) * sin)


def rope_seq_first_heads(x, base=10000.0):
    """x: (batch, seq_len, heads, head_dim)."""
    b, t, h, d = x.shape  # noqa: RUF059
    angles = torch.outer(torch.arange(t).float(), base ** (-torch.arange(0, d, 2).float() / d))
    cos, sin = angles.cos()[None, :, None], angles.sin()[None, :, None]
    x1, x2 = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([x1 * cos - x2 * sin, x2 * cos + x1 * sin], -1).to(x.dtype)


class OffsetRope(nn.Module):
    def __init__(self, head_dim, max_len=512, theta=10000.0):
        super().__init__()
        inv = theta ** (-torch.arange(0, head_dim, 2).float() / head_dim)
        self.register_buffer("angles", torch.arange(max_len).float()[:, None] * inv)

    def forward(self, x, offset=0):
        a = self.angles[offset : offset + x.size(-2)]
        x1, x2 = x.chunk(2, -1)
        return torch.cat([x1 * a.cos() - x2 * a.sin(), x1 * a.sin() + x2 * a.cos()], -1).to(x.dtype)


class NtkScaled(nn.Module):
    """NTK-aware scaling of the base."""

    def __init__(self, head_dim, base=10000, scaling_factor=4.0):
        super().__init__()
        self.base = base
        base = base * scaling_factor ** (head_dim / (head_dim - 2))
        self.register_buffer("inv_freq", base ** (-torch.arange(0, head_dim, 2).float() / head_dim))

    def forward(self, positions):
        freqs = positions.float()[:, None] * self.inv_freq
        return freqs.cos(), freqs.sin()


def rope_of_any_type(q, k):
    t, inv = torch.arange(q.shape[-2]).to(q), (10000.0 ** (-torch.arange(0, q.shape[-1], 2) / q.shape[-1])).to(q)
    emb = torch.cat([t[:, None] * inv] * 2, -1)
    return q * emb.cos() + rotate_half(q) * emb.sin(), k * emb.cos() + rotate_half(k) * emb.sin()


class AnglesCastLast(nn.Module):
    def __init__(self, head_dim=16, rope_theta=500000.0):
        super().__init__()
        self.rope_theta = rope_theta
        self.register_buffer("inv_freq", rope_theta ** (-torch.arange(0, head_dim, 2).float() / head_dim))

    def forward(self, x, input_pos=None):
        input_pos = torch.arange(x.shape[-2], device=x.device) if input_pos is None else input_pos
        angles = (input_pos[..., None].float() * self.inv_freq).to(x.dtype)
        angles = angles.unsqueeze(-3) if angles.dim() == 3 else angles
        cos, sin = angles.cos(), angles.sin()
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class SequenceAxis(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("inv_freq", 10000.0 ** (-torch.arange(0, dim, 2).float() / dim))

    def forward(self, x, seq_dim=1):
        freqs = torch.outer(torch.arange(x.shape[seq_dim], device=x.device).to(self.inv_freq), self.inv_freq)
        return freqs.cos().repeat(1, 2)[:, None, None], freqs.sin().repeat(1, 2)[:, None, None]


def half_of_the_head(x):
    d = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2])[:, None].to(x) * 10000.0 ** (-torch.arange(0, d, 2).to(x) / d)
    a, b, kept = x[..., : d // 2], x[..., d // 2 : d], x[..., d:]
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin(), kept], -1)


def rope_with_values(q, k, v):
    return (*half_split_rope(q, k), v)


CASES = [
    Case("half_split_rope", "rotary", guess=True),
    Case("interleaved_rope", "rotary", guess=True),
    Case("PartialRotary", "rotary", guess=True),
    Case("LlamaRotaryEmbedding", "rotary", guess=True),
    Case("CachedTables", "rotary"),
    Case("precompute_freqs_cis", "rotary"),
    Case("apply_rotary_emb", "rotary", guess=True),
    Case("apply_rotary_pos_emb", "rotary", guess=True),
    Case("rope_seq_first_heads", "rotary"),
    Case("OffsetRope", "rotary"),
    Case("NtkScaled", "rotary"),
    Case("rope_of_any_type", "rotary"),
    Case("AnglesCastLast", "rotary"),
    Case("SequenceAxis", "rotary"),
    Case("half_of_the_head", "rotary"),
    Case("rope_with_values", "rotary"),
]
