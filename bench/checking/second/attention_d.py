"""Attention: projections, dropout, positions inside it, numbers."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


class ViewedKeys(nn.Module):
    def __init__(self, n_embd: int = 24, n_head: int = 3):
        super().__init__()
        self.n_head, self.d = n_head, n_embd // n_head
        self.q, self.k, self.v, self.proj = (nn.Linear(n_embd, n_embd) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (f(x).view(B, T, self.n_head, self.d).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = q @ k.contiguous().view(B, self.n_head, self.d, T) / math.sqrt(self.d)
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))


class ConcatOnly(nn.Module):
    def __init__(self, embed_dim: int = 20, num_heads: int = 4):
        super().__init__()
        self.num_heads = num_heads
        self.query, self.key, self.value = (nn.Linear(embed_dim, embed_dim) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (f(x).view(B, T, self.num_heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.transpose(1, 2).contiguous().view(B, T, C)


class UnprojectedHeads(nn.Module):
    def __init__(self, dim: int, heads: int = 2):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in self.to_qkv(x).chunk(3, dim=-1))
        attn = (q @ k.mT / math.sqrt(d // self.heads)).softmax(dim=-1)
        out = (attn @ v).transpose(1, 2).reshape(b, n, d)
        return self.drop(out)


class ActivatedProjections(nn.Module):
    def __init__(self, num_units: int = 32, num_heads: int = 4):
        super().__init__()
        self.num_heads = num_heads
        self.q_dense, self.k_dense, self.v_dense = (nn.Linear(num_units, num_units) for _ in range(3))
        self.out_dense = nn.Linear(num_units, num_units)

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        q, k, v = F.relu(self.q_dense(x)), F.relu(self.k_dense(x)), F.relu(self.v_dense(x))
        q, k, v = (t.view(B, T, self.num_heads, -1).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out_dense(y.transpose(1, 2).reshape(B, T, D))


class GeluValues(nn.Module):
    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        self.n_heads = n_heads
        self.q, self.k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.v = nn.Sequential(nn.Linear(d_model, d_model), nn.GELU())
        self.o = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        q, k, v = (f(x).view(B, T, self.n_heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(B, T, D))


class TorchAttention(nn.Module):
    def __init__(self, d_model: int = 24, nhead: int = 4):
        super().__init__()
        self.attn = nn.MultiheadAttention(d_model, nhead)

    def forward(self, x: Tensor) -> Tensor:
        return self.attn(x, x, x, need_weights=False)[0]


class TimeMajor(nn.Module):
    """Takes (batch, time, features)."""

    def __init__(self, features: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.out = nn.Linear(features, 3 * features), nn.Linear(features, features)

    def forward(self, x: Tensor) -> Tensor:
        n, m, f = x.shape
        q, k, v = self.qkv(x).reshape(n, m, 3, self.num_heads, -1).unbind(2)
        scores = torch.einsum("tbhd,sbhd->bhts", q, k) / math.sqrt(f // self.num_heads)
        return self.out(torch.einsum("bhts,sbhd->tbhd", scores.softmax(-1), v).reshape(n, m, f))


class DropoutAttention(nn.Module):
    def __init__(self, n_embd: int = 24, n_head: int = 2, dropout: float = 0.1):
        super().__init__()
        self.n_head, self.dropout = n_head, dropout
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.n_head, -1).transpose(1, 2) for t in self.c_attn(x).split(C, 2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class QuietDropout(nn.Module):
    def __init__(self, dim: int = 16, num_heads: int = 2, dropout: float = 0.2):
        super().__init__()
        self.num_heads, self.p = num_heads, dropout
        self.dropout = nn.Dropout(dropout)
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        q, k, v = (f(x).view(B, T, self.num_heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)
        self.dropout(weights)
        return self.o((weights @ v).transpose(1, 2).reshape(B, T, D))


class PlainMaskDropout(nn.Module):
    def __init__(self, hidden_size: int = 24, num_heads: int = 3, dropout: float = 0.25):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.qkv, self.out = nn.Linear(hidden_size, 3 * hidden_size), nn.Linear(hidden_size, hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.num_heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)
        if self.training:
            weights = weights * (torch.rand_like(weights) > self.dropout)
        return self.out((weights @ v).transpose(1, 2).reshape(B, T, D))


class ScoreDropout(nn.Module):
    def __init__(self, d_model: int = 24, num_heads: int = 4, dropout: float = 0.1):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.num_heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        scores = self.dropout(q @ k.mT / math.sqrt(q.size(-1)))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D))


class HalfScores(nn.Module):
    def __init__(self, dim: int = 32, n_heads: int = 4):
        super().__init__()
        self.n_heads = n_heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        q, k, v = (w(x).view(B, T, self.n_heads, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        scores = (q.half() @ k.half().mT) / math.sqrt(D // self.n_heads)
        weights = scores.softmax(dim=-1).to(x.dtype)
        return self.wo((weights @ v).transpose(1, 2).reshape(B, T, D))


class NoisyGate(nn.Module):
    def __init__(self, dim: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.num_heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.mT / math.sqrt(q.size(-1))
        scores = scores + 0.01 * torch.randn_like(scores)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D))


def rotate(x: Tensor) -> Tensor:
    """Rotary positions on (B, H, T, d), halves paired."""
    half = x.shape[-1] // 2
    frequencies = 10000.0 ** (-torch.arange(half, device=x.device, dtype=x.dtype) / half)
    angles = torch.arange(x.shape[-2], device=x.device, dtype=x.dtype)[:, None] * frequencies
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], dim=-1)


class RotaryAttention(nn.Module):
    def __init__(self, dim: int = 32, num_heads: int = 4):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        B, T, _ = x.shape
        parts = (f(x).view(B, T, self.num_heads, -1).transpose(1, 2) for f in (self.q_proj, self.k_proj, self.v_proj))
        q, k, v = map(rotate, parts)
        return q, k, v

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(x)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))


class RotaryQueries(RotaryAttention):
    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        B, T, _ = x.shape
        q, k, v = (f(x).view(B, T, self.num_heads, -1).transpose(1, 2) for f in (self.q_proj, self.k_proj, self.v_proj))
        return rotate(q), k, v


class RotaryLateHeads(RotaryAttention):
    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        B, T, _ = x.shape
        q, k, v = (f(x).view(B, T, self.num_heads, -1) for f in (self.q_proj, self.k_proj, self.v_proj))
        return rotate(q).transpose(1, 2), rotate(k).transpose(1, 2), v.transpose(1, 2)


class ViewedHeads(nn.Module):
    def __init__(self, hidden_size: int = 24, num_heads: int = 3):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.dense = nn.Linear(hidden_size, 3 * hidden_size), nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        B, T, D = hidden_states.shape
        q, k, v = (t.reshape(B, self.num_heads, T, -1) for t in self.qkv(hidden_states).chunk(3, dim=-1))
        weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)
        return self.dense((weights @ v).transpose(1, 2).reshape(B, T, D))


class CausalViewMerge(nn.Module):
    def __init__(self, dim: int = 32, n_heads: int = 4):
        super().__init__()
        self.n_heads, self.causal = n_heads, True
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (w(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.contiguous().view(x.shape))


CASES = [
    Case("ViewedHeads", "attention", "heads.split-without-transpose", ("heads.merge-without-transpose",)),
    Case("CausalViewMerge", "attention", "heads.merge-without-transpose", ("heads.split-without-transpose",)),
    Case("ViewedKeys", "attention", "scores.key-reshaped"),
    Case("ConcatOnly", "attention", "projection.output-missing"),
    Case("UnprojectedHeads", "attention", "projection.output-missing", ("parameter.unused",)),
    Case("ActivatedProjections", "attention", "projection.activation"),
    Case("GeluValues", "attention", "projection.activation"),
    Case("TorchAttention", "attention", "batch.mixing", guess=True),
    Case("TimeMajor", "attention", "batch.mixing"),
    Case("DropoutAttention", "attention", "dropout.active-in-eval"),
    Case("QuietDropout", "attention", "dropout.never-active"),
    Case("PlainMaskDropout", "attention", "dropout.no-rescale"),
    Case("ScoreDropout", "attention", "score.dropout"),
    Case("HalfScores", "attention", "score.precision"),
    Case("NoisyGate", "attention", "noise.injected"),
    Case("RotaryAttention", "attention", "rotary.values"),
    Case("RotaryQueries", "attention", "rotary.one-side"),
    Case("RotaryLateHeads", "attention", "rotary.axis"),
]
