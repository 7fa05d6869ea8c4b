"""Right parts that the encoders and language models of the set are put together from."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def causal(T: int, S: int, device: torch.device) -> Tensor:
    """Query i sees keys up to i + S - T."""
    return torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T)


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Rotary positions on (B, H, T, d), halves paired."""
    half = x.size(-1) // 2
    angles = positions.to(x.dtype)[..., None] * base ** (-torch.arange(half, device=x.device, dtype=x.dtype) / half)
    angles = angles if angles.dim() == 2 else angles[:, None]
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], dim=-1)


def weigh(q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None) -> Tensor:
    scores = q @ k.mT / q.size(-1) ** 0.5
    if keep is None:
        return scores.softmax(-1) @ v
    return scores.masked_fill(~keep, torch.finfo(q.dtype).min).softmax(-1).masked_fill(~keep, 0.0) @ v


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        return q, k, v

    def merge(self, y: Tensor) -> Tensor:
        return self.proj(y.transpose(1, 2).flatten(2))

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        return self.merge(weigh(*self.split(x), keep))


class MLP(nn.Module):
    def __init__(self, dim: int, dropout: float = 0.0):
        super().__init__()
        self.fc, self.proj, self.dropout = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim), nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.proj(F.gelu(self.fc(x))))


class Block(nn.Module):
    """Pre-norm."""

    def __init__(self, dim: int, heads: int, dropout: float = 0.0):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn, self.mlp = Attention(dim, heads), MLP(dim, dropout)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        x = x + self.attn(self.ln_1(x), keep)
        return x + self.mlp(self.ln_2(x))
