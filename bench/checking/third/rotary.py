"""Rotary embeddings, on q and k or on one tensor (B, H, T, d)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bench.checking.case import Case


def rotate_half(x: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


class RotaryEmbedding(nn.Module):
    """cos and sin are made for the length asked; pairs (i, i + d/2)."""

    def __init__(self, dim: int = 8, base: float = 10000.0) -> None:
        super().__init__()
        self.base = base
        self.register_buffer("inv_freq", 1.0 / base ** (torch.arange(0, dim, 2).float() / dim), persistent=False)

    def angles(self, t: Tensor) -> Tensor:
        return torch.outer(t, self.inv_freq.float())

    def table(self, n: int, like: Tensor) -> tuple[Tensor, Tensor]:
        freqs = self.angles(torch.arange(n, device=like.device).float())
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos().to(like.dtype), emb.sin().to(like.dtype)

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = self.table(q.size(-2), q)
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


class RotaryEmbedding2(RotaryEmbedding):
    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = self.table(q.size(-2), q)
        return q * cos + rotate_half(q) * sin, k


class RotaryEmbedding3(RotaryEmbedding):
    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = (t[:, None, :] for t in self.table(q.size(1), q))
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


class RotaryEmbedding4(RotaryEmbedding):
    def angles(self, t: Tensor) -> Tensor:
        return torch.outer(t.bfloat16(), self.inv_freq.bfloat16())


class RotaryEmbedding5(RotaryEmbedding):
    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = self.table(q.size(-2), q)
        return q * cos + rotate_half(q) * sin, k * cos - rotate_half(k) * sin


class RotaryEmbedding6(RotaryEmbedding):
    def __init__(self, dim: int = 8, base: float = 500000.0) -> None:
        super().__init__(dim)
        self.base = base


class RotaryEmbedding7(RotaryEmbedding):
    """The pairs are neighbours: (2i, 2i + 1)."""

    def table(self, n: int, like: Tensor) -> tuple[Tensor, Tensor]:
        freqs = self.angles(torch.arange(n, device=like.device).float()).repeat_interleave(2, dim=-1)
        return freqs.cos().to(like.dtype), freqs.sin().to(like.dtype)

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = self.table(q.size(-2), q)
        turned = [torch.stack((-t[..., 1::2], t[..., ::2]), dim=-1).flatten(-2) for t in (q, k)]
        return q * cos + turned[0] * sin, k * cos + turned[1] * sin


class RotaryEmbedding8(RotaryEmbedding):
    def table(self, n: int, like: Tensor) -> tuple[Tensor, Tensor]:
        freqs = self.angles(torch.arange(n, device=like.device).float()).repeat_interleave(2, dim=-1)
        return freqs.cos().to(like.dtype), freqs.sin().to(like.dtype)


class RotaryEmbedding9(RotaryEmbedding):
    """The first half of the features turns, the rest passes."""

    def __init__(self, dim: int = 8, rotary_pct: float = 0.5) -> None:
        super().__init__(int(dim * rotary_pct))
        self.r = int(dim * rotary_pct)

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        a, b = super().forward(q[..., : self.r], k[..., : self.r])
        return torch.cat((a, q[..., self.r :]), dim=-1), torch.cat((b, k[..., self.r :]), dim=-1)


class Rope(nn.Module):
    """With positions (T,) or (B, T); base as given."""

    def __init__(self, head_dim: int = 8, theta: float = 1000.0) -> None:
        super().__init__()
        self.head_dim, self.theta = head_dim, theta

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        if positions is None:
            positions = torch.arange(x.size(-2), device=x.device)
        freq = self.theta ** (-torch.arange(0, self.head_dim, 2, device=x.device).double() / self.head_dim)
        angle = positions.double()[..., None] * freq
        if angle.ndim == 3:
            angle = angle[:, None]
        z = torch.polar(torch.ones_like(angle), angle)
        pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * z).flatten(-2).to(x.dtype)


class Rope2(Rope):
    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        if positions is None:
            positions = torch.arange(x.size(1), device=x.device)[:, None].expand(x.size(1), x.size(2))
        freq = self.theta ** (-torch.arange(0, self.head_dim, 2, device=x.device).double() / self.head_dim)
        angle = positions.double()[..., None] * freq
        z = torch.polar(torch.ones_like(angle), angle)
        pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * z).flatten(-2).to(x.dtype)


class Rope3(Rope):
    def __init__(self, head_dim: int = 8, theta: float = 10000.0) -> None:
        super().__init__(head_dim, theta)
        self.freq = 1.0 / 100000.0 ** (torch.arange(0, head_dim, 2).double() / head_dim)

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        if positions is None:
            positions = torch.arange(x.size(-2), device=x.device)
        angle = positions.double()[..., None] * self.freq.to(x.device)
        angle = angle[:, None] if angle.ndim == 3 else angle
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        return torch.stack((a * c - b * s, a * s + b * c), dim=-1).flatten(-2)


def apply_rope(x: Tensor, base: float = 10000.0) -> Tensor:
    """Pairs (i, i + d/2)."""
    T, d = x.shape[-2:]
    freq = base ** (-torch.arange(d // 2, device=x.device, dtype=torch.float64) * 2 / d)
    angle = torch.arange(T, device=x.device, dtype=torch.float64)[:, None] * freq
    c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat((a * c - b * s, a * s + b * c), dim=-1)


def apply_rope2(x: Tensor, base: float = 10000.0) -> Tensor:
    """Pairs (i, i + d/2)."""
    T, d = x.shape[-2:]
    freq = base ** (-torch.arange(d // 2, device=x.device, dtype=torch.float64) * 2 / d)
    angle = torch.arange(T, device=x.device, dtype=torch.float64)[:, None] * freq
    c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat((a * c - b * s, a * s - b * c), dim=-1)


def apply_rope3(x: Tensor, base: float = 10000.0) -> Tensor:
    """Pairs (2i, 2i + 1)."""
    T, d = x.shape[-2:]
    freq = base ** (-torch.arange(d // 2, device=x.device, dtype=torch.float64) * 2 / d)
    angle = torch.arange(T, device=x.device, dtype=torch.float64)[:, None] * freq
    c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., ::2], x[..., 1::2]
    return torch.cat((a * c - b * s, a * s + b * c), dim=-1)


def rotary_pair(q: Tensor, k: Tensor, offset: int = 0) -> tuple[Tensor, Tensor]:
    """Turn q and k as complex numbers."""
    d = q.size(-1)
    t = torch.arange(q.size(-2), device=q.device, dtype=torch.float32) + offset
    angle = torch.outer(t, 10000.0 ** (-torch.arange(0, d, 2, device=q.device).float() / d))
    z = torch.polar(torch.ones_like(angle), angle)
    a, b = (torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) * z for x in (q, k))
    return torch.view_as_real(a).flatten(-2).type_as(q), torch.view_as_real(b).flatten(-2).type_as(k)


CASES: list[Case] = [
    Case("RotaryEmbedding", "rotary", guess=True),
    Case("RotaryEmbedding2", "rotary", "rotary.one-side", also=("rotary.not-relative",)),
    Case("RotaryEmbedding3", "rotary", "rotary.axis", guess=True),
    Case("RotaryEmbedding4", "rotary", "rotary.low-precision"),
    Case("RotaryEmbedding5", "rotary", "rotary.not-relative"),
    Case("RotaryEmbedding6", "rotary", "rotary.base"),
    Case("RotaryEmbedding7", "rotary"),
    Case("RotaryEmbedding8", "rotary", "rotary.pairing", also=("rotary.not-relative",), guess=True),
    Case("RotaryEmbedding9", "rotary"),
    Case("Rope", "rotary", guess=True),
    Case("Rope2", "rotary", "rotary.axis"),
    Case("Rope3", "rotary", "rotary.base"),
    Case("apply_rope", "rotary"),
    Case("apply_rope2", "rotary", "rotary.not-relative"),
    Case("apply_rope3", "rotary"),
    Case("rotary_pair", "rotary", guess=True),
]
