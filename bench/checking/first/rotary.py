"""Rotary positions with planted faults, in the styles in which people write them."""

from __future__ import annotations

import torch
from torch import nn

from bench.checking.case import Case


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


def cos_sin(length, dim, base=10000.0, dtype=torch.float64):
    inv = base ** (-torch.arange(0, dim, 2, dtype=dtype) / dim)
    angles = torch.arange(length, dtype=dtype)[:, None] * inv
    both = torch.cat([angles, angles], -1)
    return both.cos(), both.sin()


def rope_plus_k(q, k):
    """k is turned backwards."""
    cos, sin = cos_sin(q.shape[-2], q.shape[-1])
    return q * cos + rotate_half(q) * sin, k * cos - rotate_half(k) * sin


def rope_sign(x):
    cos, sin = cos_sin(x.shape[-2], x.shape[-1] // 2)
    n = x.shape[-1] // 2
    a, b = x[..., :n], x[..., n:]
    cos, sin = cos_sin(x.shape[-2], x.shape[-1])
    cos, sin = cos[:, :n], sin[:, :n]
    return torch.cat([a * cos + b * sin, b * cos + a * sin], -1)


def apply_rope_heads(q, k):
    """q, k: (B, H, T, d)."""
    cos, sin = cos_sin(q.shape[1], q.shape[-1])
    cos, sin = cos[None, :, None], sin[None, :, None]
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


class HeadsRotary(nn.Module):
    def __init__(self, head_dim, base=10000):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (base ** (torch.arange(0, head_dim, 2).float() / head_dim)))

    def forward(self, x):
        t = torch.arange(x.shape[1], device=x.device).type_as(self.inv_freq)
        freqs = torch.einsum("i,j->ij", t, self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)[None, :, None, :]
        return x * emb.cos() + rotate_half(x) * emb.sin()


def rotary_one_side(q, k):
    cos, sin = cos_sin(q.shape[-2], q.shape[-1])
    return q * cos + rotate_half(q) * sin, k


class OneSideRotary(nn.Module):
    def __init__(self, dim):
        super().__init__()
        inv = 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("freqs", torch.outer(torch.arange(64).float(), inv))

    def turn(self, x):
        f = self.freqs[: x.shape[-2]]
        x1, x2 = x[..., ::2], x[..., 1::2]
        return torch.stack([x1 * f.cos() - x2 * f.sin(), x1 * f.sin() + x2 * f.cos()], -1).flatten(-2)

    def forward(self, q, k):
        q = self.turn(q)
        self.turn(k)
        return q, k


def rope_qkv(q, k, v):
    cos, sin = cos_sin(q.shape[-2], q.shape[-1])
    return tuple(x * cos + rotate_half(x) * sin for x in (q, k, v))


class RopeAll(nn.Module):
    def __init__(self, head_dim=8):
        super().__init__()
        self.head_dim = head_dim

    def forward(self, query, key, value):
        T = query.size(-2)
        angles = torch.arange(T)[:, None] / 10000 ** (torch.arange(0, self.head_dim, 2) / self.head_dim)
        turn = torch.polar(torch.ones_like(angles), angles)
        stacked = torch.cat([query, key, value], 1)
        pairs = torch.view_as_complex(stacked.float().reshape(*stacked.shape[:-1], -1, 2))
        turned = torch.view_as_real(pairs * turn).flatten(-2).type_as(query)
        return turned.chunk(3, 1)


def rope_mixed_tables(q, k):
    """Rotary embedding."""
    d = q.shape[-1]
    angles = torch.arange(q.shape[-2])[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)
    cos, sin = angles.cos().repeat_interleave(2, -1), angles.sin().repeat_interleave(2, -1)
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


class InterleavedClaim(nn.Module):
    """Rotary embedding on interleaved pairs, as in GPT-J."""

    def __init__(self, dim, interleaved=True):
        super().__init__()
        self.dim, self.interleaved = dim, interleaved

    def forward(self, q, k):
        cos, sin = cos_sin(q.shape[-2], self.dim)
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def rope_two_pairings(q, k):
    cos, sin = cos_sin(q.shape[-2], q.shape[-1])
    half = q.shape[-1] // 2
    c, s = cos[:, :half], sin[:, :half]
    k1, k2 = k[..., ::2], k[..., 1::2]
    return q * cos + rotate_half(q) * sin, torch.stack([k1 * c - k2 * s, k1 * s + k2 * c], -1).flatten(-2)


class HalfAngles(nn.Module):
    def __init__(self, dim, base=10000):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim)))

    def forward(self, q, k):
        t = torch.arange(q.shape[-2], device=q.device, dtype=torch.bfloat16)
        freqs = torch.outer(t, self.inv_freq.to(torch.bfloat16))
        emb = torch.cat((freqs, freqs), -1)
        cos, sin = emb.cos().to(q.dtype), emb.sin().to(q.dtype)
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def rope_in_input_type(x):
    """Runs in bfloat16, as the rest of the model."""
    d = x.shape[-1]
    inv = (10000.0 ** (-torch.arange(0, d, 2) / d)).to(x.dtype)
    t = torch.arange(x.shape[-2]).to(x.dtype)
    angles = torch.cat([t[:, None] * inv] * 2, -1)
    return x * angles.cos() + rotate_half(x) * angles.sin()


class WrongBase(nn.Module):
    def __init__(self, head_dim, rope_theta=500000.0):
        super().__init__()
        self.rope_theta = rope_theta
        self.register_buffer("inv_freq", 1.0 / (10000 ** (torch.arange(0, head_dim, 2).float() / head_dim)))

    def forward(self, x, position_ids):
        freqs = position_ids[:, :, None].float() * self.inv_freq[None, None].float()
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos().to(x.dtype), emb.sin().to(x.dtype)


def precompute_freqs_cis(dim: int, end: int, theta: float = 10000.0):
    """Exponent i/d in place of 2i/d."""
    freqs = 1.0 / (theta ** (torch.arange(0, dim // 2).double() / dim))
    return torch.polar(torch.ones(end, dim // 2).double(), torch.outer(torch.arange(end).double(), freqs))


class DividedOutside(nn.Module):
    def __init__(self, dim, theta=10000.0):
        super().__init__()
        self.theta = theta
        self.register_buffer("inv_freq", 1.0 / theta ** torch.arange(0, dim, 2).float() / dim)

    def forward(self, q, k):
        emb = torch.outer(torch.arange(q.shape[-2], device=q.device).to(self.inv_freq), self.inv_freq).repeat(1, 2)
        return q * emb.cos() + rotate_half(q) * emb.sin(), k * emb.cos() + rotate_half(k) * emb.sin()


def rope_of_half_exponents(x):
    d = x.shape[-1]
    angles = torch.arange(x.shape[-2])[:, None].to(x) / 10000 ** (torch.arange(d // 2).to(x) / d)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1).flatten(-2)


class PositionsIgnored(nn.Module):
    def __init__(self, dim, base=10000.0):
        super().__init__()
        self.dim, self.base = dim, base

    def forward(self, q, k, position_ids):
        cos, sin = cos_sin(q.shape[-2], self.dim, self.base)
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def rope_late_keys(q, k):
    cos, sin = cos_sin(q.shape[-2] + 1, q.shape[-1])
    return q * cos[:-1] + rotate_half(q) * sin[:-1], k * cos[1:] + rotate_half(k) * sin[1:]


CASES = [
    Case("rope_plus_k", "rotary", "rotary.not-relative", guess=True),
    Case("rope_sign", "rotary", "rotary.not-relative", ("rotary.pairing",)),
    Case("apply_rope_heads", "rotary", "rotary.axis"),
    Case("HeadsRotary", "rotary", "rotary.axis", guess=True),
    Case("rotary_one_side", "rotary", "rotary.one-side"),
    Case("OneSideRotary", "rotary", "rotary.one-side"),
    Case("rope_qkv", "rotary", "rotary.values"),
    Case("RopeAll", "rotary", "rotary.values", guess=True),
    Case("rope_mixed_tables", "rotary", "rotary.pairing"),
    Case("InterleavedClaim", "rotary", "rotary.pairing"),
    Case("rope_two_pairings", "rotary", "rotary.pairing"),
    Case("HalfAngles", "rotary", "rotary.low-precision"),
    Case("rope_in_input_type", "rotary", "rotary.low-precision"),
    Case("WrongBase", "rotary", "rotary.base"),
    Case("precompute_freqs_cis", "rotary", "rotary.base"),
    Case("PositionsIgnored", "rotary", "position.offset"),
    Case("rope_late_keys", "rotary", "position.offset"),
    Case("DividedOutside", "rotary", "rotary.base"),
    Case("rope_of_half_exponents", "rotary", "rotary.base"),
]
