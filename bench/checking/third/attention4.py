"""Grouped heads, positions inside attention, and what training leaves behind."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


def rope(x: Tensor, theta: float = 10000.0) -> Tensor:
    """Turn the pairs (i, i + d/2) of x (B, H, T, d) by their position's angles."""
    T, d = x.shape[-2:]
    freqs = theta ** (-torch.arange(0, d, 2, device=x.device).float() / d)
    angles = torch.outer(torch.arange(T, device=x.device).float(), freqs)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class GroupedQueryAttention(nn.Module):
    """num_heads query heads share num_kv_heads heads of keys and values; causal."""

    def __init__(self, hidden_size: int = 32, num_heads: int = 4, num_kv_heads: int = 2) -> None:
        super().__init__()
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.head_dim = hidden_size // num_heads
        self.q_proj = nn.Linear(hidden_size, num_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(hidden_size, num_kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(hidden_size, num_kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(num_heads * self.head_dim, hidden_size, bias=False)

    def spread(self, x: Tensor) -> Tensor:
        return x.repeat_interleave(self.num_heads // self.num_kv_heads, dim=1)

    def rotate(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return rope(q), rope(k), v

    def forward(self, hidden_states: Tensor) -> Tensor:
        B, T, _ = hidden_states.shape
        q = self.q_proj(hidden_states).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(hidden_states).view(B, T, self.num_kv_heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(hidden_states).view(B, T, self.num_kv_heads, self.head_dim).transpose(1, 2)
        q, k, v = self.rotate(q, k, v)
        y = F.scaled_dot_product_attention(q, self.spread(k), self.spread(v), is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(B, T, -1))


class GroupedQueryAttention2(GroupedQueryAttention):
    def spread(self, x: Tensor) -> Tensor:
        return x.repeat(1, self.num_heads // self.num_kv_heads, 1, 1)


class GroupedQueryAttention3(GroupedQueryAttention):
    def rotate(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return rope(q), rope(k), rope(v)


class GroupedQueryAttention4(GroupedQueryAttention):
    def rotate(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return rope(q), k, v


class GroupedQueryAttention5(GroupedQueryAttention):
    def rotate(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k = (rope(t.transpose(1, 2)).transpose(1, 2) for t in (q, k))
        return q, k, v


class GroupedQueryAttention6(GroupedQueryAttention):
    """Written with einsum."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        B, T, _ = hidden_states.shape
        g = self.num_heads // self.num_kv_heads
        q = self.q_proj(hidden_states).view(B, T, self.num_kv_heads, g, self.head_dim)
        k = self.k_proj(hidden_states).view(B, T, self.num_kv_heads, self.head_dim)
        v = self.v_proj(hidden_states).view(B, T, self.num_kv_heads, self.head_dim)
        scores = torch.einsum("btkgd,bskd->bkts", q, k) / self.head_dim**0.5
        ahead = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
        w = scores.masked_fill(ahead, -torch.inf).softmax(-1)
        y = torch.einsum("bkts,bskd->btkd", w, v)
        return self.o_proj(y.unsqueeze(3).expand(B, T, self.num_kv_heads, g, self.head_dim).reshape(B, T, -1))


class MultiQueryAttention(nn.Module):
    def __init__(self, n_embd: int, n_head: int) -> None:
        super().__init__()
        self.n_head, self.d = n_head, n_embd // n_head
        self.c_attn = nn.Linear(n_embd, n_embd + 2 * self.d)
        self.c_proj = nn.Linear(n_embd, n_embd)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = self.c_attn(x).split((C, self.d, self.d), dim=-1)
        q = q.view(B, T, self.n_head, self.d).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k[:, None].expand_as(q), v[:, None].expand_as(q), is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class MultiQueryAttention2(MultiQueryAttention):
    """One matrix for q and the shared k and v."""

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, v, k = self.c_attn(x).split((C, self.d, self.d), dim=-1)
        q = q.view(B, T, self.n_head, self.d).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k[:, None].expand_as(q), v[:, None].expand_as(q), is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class AlibiAttention(nn.Module):
    """Causal; each head's scores fall with distance at its own slope."""

    def __init__(self, d_model: int, n_heads: int = 4) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.register_buffer("slopes", 2.0 ** (-8.0 * torch.arange(1, n_heads + 1) / n_heads), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (f(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for f in (self.wq, self.wk, self.wv))
        i = torch.arange(x.size(1), device=x.device)
        gap = i[:, None] - i[None, :]
        scores = q @ k.mT / math.sqrt(q.size(-1)) - self.slopes[:, None, None].to(x.dtype) * gap
        w = scores.masked_fill(gap < 0, float("-inf")).softmax(-1)
        return self.wo((w @ v).transpose(1, 2).flatten(2))


class T5Attention(nn.Module):
    """A learned bias for each signed distance, clipped."""

    def __init__(self, d_model: int = 32, num_heads: int = 4, max_distance: int = 8) -> None:
        super().__init__()
        self.n_heads, self.max_distance = num_heads, max_distance
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.relative_attention_bias = nn.Embedding(2 * max_distance + 1, num_heads)

    def forward(self, hidden_states: Tensor) -> Tensor:
        q, k, v = (f(hidden_states).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        i = torch.arange(hidden_states.size(1), device=hidden_states.device)
        gap = (i[None, :] - i[:, None]).clamp(-self.max_distance, self.max_distance) + self.max_distance
        bias = self.relative_attention_bias(gap).permute(2, 0, 1)
        w = (q @ k.mT / math.sqrt(q.size(-1)) + bias).softmax(-1)
        return self.o((w @ v).transpose(1, 2).flatten(2))


class SinkAttention(nn.Module):
    """A learned logit a head takes its share of each row."""

    def __init__(self, hidden_size: int, num_attention_heads: int, sliding_window: int = 4) -> None:
        super().__init__()
        self.h, self.sliding_window = num_attention_heads, sliding_window
        self.qkv = nn.Linear(hidden_size, 3 * hidden_size)
        self.out = nn.Linear(hidden_size, hidden_size)
        self.sinks = nn.Parameter(torch.randn(num_attention_heads))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(-1, (self.h, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        q, k = rope(q), rope(k)
        i = torch.arange(x.size(1), device=x.device)
        gap = i[:, None] - i
        scores = (q @ k.mT / q.size(-1) ** 0.5).masked_fill((gap < 0) | (gap >= self.sliding_window), -torch.inf)
        sinks = self.sinks.view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        w = torch.cat((scores, sinks), dim=-1).softmax(-1)[..., :-1]
        return self.out((w @ v).transpose(1, 2).flatten(2))


class PartialRotaryAttention(MultiQueryAttention):
    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = self.c_attn(x).split((C, self.d, self.d), dim=-1)
        q, k = q.view(B, T, self.n_head, self.d).transpose(1, 2), k[:, None]
        r = self.d // 4 * 2
        q, k = (torch.cat((rope(t[..., :r]), t[..., r:]), dim=-1) for t in (q, k))
        y = F.scaled_dot_product_attention(q, k.expand_as(q), v[:, None].expand_as(q), is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


CASES: list[Case] = [
    Case("GroupedQueryAttention", "attention"),
    Case("GroupedQueryAttention2", "attention", "heads.kv-tiled", guess=True),
    Case("GroupedQueryAttention3", "attention", "rotary.values"),
    Case("GroupedQueryAttention4", "attention", "rotary.one-side", also=("rotary.not-relative",)),
    Case("GroupedQueryAttention5", "attention", "rotary.axis", also=("position.unused",), guess=True),
    Case("GroupedQueryAttention6", "attention", "heads.grouped-summed"),
    Case("MultiQueryAttention", "attention", guess=True),
    Case("MultiQueryAttention2", "attention", "qkv.layout"),
    Case("AlibiAttention", "attention"),
    Case("T5Attention", "attention", guess=True),
    Case("SinkAttention", "attention"),
    Case("PartialRotaryAttention", "attention"),
]
