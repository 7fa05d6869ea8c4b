"""Attention without a mistake, in the manners of the modules that have one."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


def scaled_dot_product(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = scores.softmax(dim=-1)
    if mask is not None:
        p_attn = p_attn * (mask != 0)
    return torch.matmul(p_attn, value), p_attn


class AnnotatedAttention(nn.Module):
    """`mask` (B, S) is 1 at what may be read."""

    def __init__(self, d_model: int = 24, h: int = 3, dropout: float = 0.1):
        super().__init__()
        self.d_k, self.h = d_model // h, h
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(4)])
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is not None:
            mask = mask[:, None, None, :]
        query, key, value = (f(x).view(x.size(0), -1, self.h, self.d_k).transpose(1, 2) for f in self.linears[:3])
        out, _ = scaled_dot_product(query, key, value, mask)
        return self.linears[-1](self.dropout(out).transpose(1, 2).contiguous().view(x.size(0), -1, self.h * self.d_k))


class MinGPTAttention(nn.Module):
    def __init__(self, n_embd: int = 32, n_head: int = 4, attn_pdrop: float = 0.1, block_size: int = 48):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(n_embd, n_embd) for _ in range(3))
        self.attn_drop, self.proj = nn.Dropout(attn_pdrop), nn.Linear(n_embd, n_embd)
        self.register_buffer("mask", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size))
        self.n_head = n_head

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.size()
        k, q, v = (f(x).view(B, T, self.n_head, -1).transpose(1, 2) for f in (self.key, self.query, self.value))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        att = self.attn_drop(F.softmax(att, dim=-1))
        return self.proj((att @ v).transpose(1, 2).contiguous().view(B, T, C))


class GatedHeads(nn.Module):
    """Each head's result is multiplied by a gate from the input."""

    def __init__(self, dim: int = 24, heads: int = 4, dim_head: int = 8):
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.to_gates = nn.Linear(dim, heads)
        self.to_out = nn.Linear(heads * dim_head, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in self.to_qkv(x).chunk(3, dim=-1))
        sim = torch.einsum("bhid,bhjd->bhij", q * self.scale, k)
        sim = sim.masked_fill(torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1), -torch.finfo(x.dtype).max)
        out = torch.einsum("bhij,bhjd->bhid", sim.softmax(dim=-1), v)
        out = out * self.to_gates(x).sigmoid().transpose(1, 2)[..., None]
        return self.to_out(out.transpose(1, 2).reshape(b, n, -1))


class BertRight(nn.Module):
    """`attention_mask` (B, S): 1 is real, 0 is padding; a row without a real token is zero before the last layer."""

    def __init__(self, hidden_size: int = 32, num_attention_heads: int = 4, attention_probs_dropout_prob: float = 0.1):
        super().__init__()
        self.num_attention_heads, self.head_size = num_attention_heads, hidden_size // num_attention_heads
        self.query, self.key, self.value = (nn.Linear(hidden_size, hidden_size) for _ in range(3))
        self.dense, self.dropout = nn.Linear(hidden_size, hidden_size), nn.Dropout(attention_probs_dropout_prob)

    def heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.num_attention_heads, self.head_size).permute(0, 2, 1, 3)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        q, k, v = (self.heads(f(hidden_states)) for f in (self.query, self.key, self.value))
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.head_size)
        if attention_mask is not None:
            inverted = 1.0 - attention_mask[:, None, None, :].to(scores.dtype)
            scores = scores + inverted * torch.finfo(scores.dtype).min
        probs = scores.softmax(dim=-1)
        if attention_mask is not None:
            probs = probs * attention_mask.any(dim=-1)[:, None, None, None]
        probs = self.dropout(probs)
        return self.dense((probs @ v).permute(0, 2, 1, 3).flatten(2)), probs


class HeadsFirstRight(nn.Module):
    """Heads in front of the batch; `key_padding_mask` (B, S) is True at padding."""

    def __init__(self, n_model: int = 16, n_head: int = 2):
        super().__init__()
        self.n_head = n_head
        self.w_qs, self.w_ks, self.w_vs = (nn.Linear(n_model, n_model) for _ in range(3))
        self.fc = nn.Linear(n_model, n_model)

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        b, t, d = x.shape
        h = self.n_head
        q, k, v = (
            f(x).view(b, t, h, d // h).permute(2, 0, 1, 3).reshape(h * b, t, d // h)
            for f in (self.w_qs, self.w_ks, self.w_vs)
        )
        attn = q @ k.transpose(1, 2) / (d // h) ** 0.5
        if key_padding_mask is None:
            attn = attn.softmax(-1)
        else:
            drop = key_padding_mask.bool()[:, None, :].repeat(h, 1, 1)
            attn = attn.masked_fill(drop, -1e30).softmax(-1).masked_fill(drop, 0.0)
        return self.fc((attn @ v).view(h, b, t, d // h).permute(1, 2, 0, 3).reshape(b, t, d))


class ScaledTwiceByRoots(nn.Module):
    """q and k each divided by the fourth root: together one over sqrt(d)."""

    is_causal = True

    def __init__(self, embed_dim: int, num_heads: int):
        super().__init__()
        self.num_heads, self.scaling = num_heads, (embed_dim // num_heads) ** -0.25
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(3))
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, hidden_states: Tensor) -> Tensor:
        parts = (self.q_proj(hidden_states) * self.scaling, self.k_proj(hidden_states) * self.scaling)
        q, k, v = (t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in (*parts, self.v_proj(hidden_states)))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
        return self.out_proj(y.transpose(1, 2).flatten(2))


class HandMadeDropout(nn.Module):
    def __init__(self, hidden_size: int = 24, num_heads: int = 3, dropout: float = 0.25):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.qkv, self.out = nn.Linear(hidden_size, 3 * hidden_size), nn.Linear(hidden_size, hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)
        if self.training:
            weights = weights * (torch.rand_like(weights) >= self.dropout) / (1 - self.dropout)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class LastAxisHeads(nn.Module):
    """Weights kept as (B, query, key, head), the softmax over keys."""

    def __init__(self, d_model: int = 24, n_heads: int = 4):
        super().__init__()
        self.n_heads = n_heads
        self.qkv, self.output = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.n_heads, -1) for t in self.qkv(x).chunk(3, -1))
        scores = torch.einsum("bihd,bjhd->bijh", q, k) / math.sqrt(D // self.n_heads)
        return self.output(torch.einsum("bijh,bjhd->bihd", scores.softmax(dim=2), v).reshape(B, T, D))


class InterleavedRotary(nn.Module):
    """Pairs of neighbours turned, before the heads are moved forward."""

    def __init__(self, dim: int = 32, num_heads: int = 4, theta: float = 10000.0):
        super().__init__()
        self.num_heads, self.theta = num_heads, theta
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def turn(self, x: Tensor) -> Tensor:
        T, d = x.shape[1], x.shape[-1]
        rate = self.theta ** (-torch.arange(0, d, 2, device=x.device, dtype=x.dtype) / d)
        angles = (torch.arange(T, device=x.device, dtype=x.dtype)[:, None] * rate)[:, None]
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1).flatten(-2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (f(x).unflatten(-1, (self.num_heads, -1)) for f in (self.q_proj, self.k_proj, self.v_proj))
        q, k, v = self.turn(q).transpose(1, 2), self.turn(k).transpose(1, 2), v.transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))


class CausalAndPadded(nn.Module):
    """Causal; `attention_mask` (B, S) is 1 at real tokens; an additive mask, empty rows opened and then emptied."""

    def __init__(self, hidden_size: int = 24, num_heads: int = 2):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(hidden_size, hidden_size) for _ in range(4))

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        T = hidden_states.size(1)
        q, k, v = (
            f(hidden_states).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for f in (self.q_proj, self.k_proj, self.v_proj)
        )
        keep = torch.ones(T, T, dtype=torch.bool, device=q.device).tril()[None, None]
        if attention_mask is not None:
            keep = keep & attention_mask.bool()[:, None, None]
        some = keep.any(-1, keepdim=True)
        bias = torch.zeros_like(keep, dtype=q.dtype).masked_fill(~keep & some, float("-inf"))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias) * some
        return self.o_proj(y.transpose(1, 2).flatten(2))


CASES = [
    Case("AnnotatedAttention", "attention"),
    Case("MinGPTAttention", "attention", guess=True),
    Case("GatedHeads", "attention"),
    Case("BertRight", "attention"),
    Case("HeadsFirstRight", "attention"),
    Case("ScaledTwiceByRoots", "attention"),
    Case("HandMadeDropout", "attention"),
    Case("LastAxisHeads", "attention"),
    Case("InterleavedRotary", "attention"),
    Case("CausalAndPadded", "attention"),
]
