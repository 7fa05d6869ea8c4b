"""Attention that is right, in many styles: conventions that must not be flagged."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case


class NanoGPT(nn.Module):
    def __init__(self, n_embd=48, n_head=4, block_size=24, dropout=0.1):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.attn_dropout, self.resid_dropout = nn.Dropout(dropout), nn.Dropout(dropout)
        self.n_head = n_head
        self.register_buffer("bias", torch.tril(torch.ones(block_size, block_size))[None, None])

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in self.c_attn(x).split(C, dim=2))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = self.attn_dropout(att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf")).softmax(-1))
        return self.resid_dropout(self.c_proj((att @ v).transpose(1, 2).contiguous().view(B, T, C)))


class Head(nn.Module):
    def __init__(self, n_embd, head_size, block_size):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(n_embd, head_size, bias=False) for _ in range(3))
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        T = x.shape[1]
        q, k = self.query(x), self.key(x)
        wei = (q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5).masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        return wei.softmax(-1) @ self.value(x)


class ListOfHeads(nn.Module):
    def __init__(self, n_embd=32, num_heads=4, block_size=8):
        super().__init__()
        self.heads = nn.ModuleList(Head(n_embd, n_embd // num_heads, block_size) for _ in range(num_heads))
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        return self.proj(torch.cat([h(x) for h in self.heads], dim=-1))


class Lucid(nn.Module):
    """Both directions, the inner width unlike the outer."""

    def __init__(self, dim=32, heads=3, dim_head=16):
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.norm = nn.LayerNorm(dim)
        self.to_qkv = nn.Linear(dim, heads * dim_head * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(heads * dim_head, dim), nn.Dropout(0.0))

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (t.reshape(b, n, self.heads, -1).permute(0, 2, 1, 3) for t in self.to_qkv(self.norm(x)).chunk(3, -1))
        dots = torch.einsum("bhid,bhjd->bhij", q, k) * self.scale
        return self.to_out(torch.einsum("bhij,bhjd->bhid", dots.softmax(-1), v).permute(0, 2, 1, 3).reshape(b, n, -1))


def _turn(x, cos, sin):
    one, two = x.chunk(2, -1)
    return x * cos + torch.cat([-two, one], -1) * sin


class LlamaGrouped(nn.Module):
    """Grouped heads, rotary tables from outside, causal by SDPA."""

    def __init__(self, hidden_size=32, num_attention_heads=4, num_key_value_heads=2):
        super().__init__()
        self.h, self.k, self.head_dim = num_attention_heads, num_key_value_heads, hidden_size // num_attention_heads
        self.q_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.k_proj = nn.Linear(hidden_size, self.k * self.head_dim, bias=False)
        self.v_proj = nn.Linear(hidden_size, self.k * self.head_dim, bias=False)
        self.o_proj = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, hidden_states, position_embeddings, past_key_value=None):
        B, T, _ = hidden_states.shape
        q = self.q_proj(hidden_states).view(B, T, self.h, -1).transpose(1, 2)
        k = self.k_proj(hidden_states).view(B, T, self.k, -1).transpose(1, 2)
        v = self.v_proj(hidden_states).view(B, T, self.k, -1).transpose(1, 2)
        cos, sin = position_embeddings
        q, k = _turn(q, cos[:, None], sin[:, None]), _turn(k, cos[:, None], sin[:, None])
        k, v = k.repeat_interleave(self.h // self.k, 1), v.repeat_interleave(self.h // self.k, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(B, T, -1)), None


class WithSink(nn.Module):
    """Off-by-one softmax, soft-capped, causal with the lowest number."""

    def __init__(self, d_model=32, num_heads=2, causal=True):
        super().__init__()
        self.num_heads, self.causal = num_heads, causal
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.num_heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        s = 30 * torch.tanh(q @ k.transpose(-2, -1) / math.sqrt(D // self.num_heads) / 30)
        if self.causal:
            s = s.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), torch.finfo(s.dtype).min)
        s = torch.cat([s, torch.zeros_like(s[..., :1])], -1).softmax(-1)[..., :-1]
        return self.out((s @ v).transpose(1, 2).reshape(B, T, D))


class Alibi(nn.Module):
    def __init__(self, d_model=32, n_heads=4):
        super().__init__()
        self.n_heads = n_heads
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.register_buffer("slopes", 2.0 ** -torch.arange(1.0, n_heads + 1))

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.n_heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        ago = torch.arange(T)[:, None] - torch.arange(T)[None]
        bias = -self.slopes[:, None, None] * ago.abs()
        bias = bias.masked_fill(ago < 0, -1e9)
        return self.out(
            F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype)).transpose(1, 2).reshape(B, T, D)
        )


class Window(nn.Module):
    def __init__(self, d_model=32, window=4):
        super().__init__()
        self.window = window
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        T = x.shape[1]
        ago = torch.arange(T)[:, None] - torch.arange(T)[None, :]
        s = self.q(x) @ self.k(x).transpose(1, 2) / math.sqrt(x.shape[-1])
        s = s.masked_fill((ago < 0) | (ago >= self.window), -torch.inf)
        return self.o(s.softmax(-1) @ self.v(x))


class BothSides(nn.Module):
    """A local window that looks both ways."""

    def __init__(self, d_model=32):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        T = x.shape[1]
        far = (torch.arange(T)[:, None] - torch.arange(T)[None, :]).abs() > 2
        s = self.q(x) @ self.k(x).transpose(1, 2) / math.sqrt(x.shape[-1])
        return self.o(s.masked_fill(far, -torch.inf).softmax(-1) @ self.v(x))


class TimeFirst(nn.Module):
    """(T,B,D) by its own word."""

    def __init__(self, d_model=32, nhead=4, batch_first=False):
        super().__init__()
        self.batch_first = batch_first
        self.inner = nn.MultiheadAttention(d_model, nhead, batch_first=batch_first)

    def forward(self, x):
        return self.inner(x, x, x)


class Cached(nn.Module):
    """Chunks after a cache see all that came before."""

    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, cache=None):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        S = k.shape[2]
        visible = torch.ones(T, S, dtype=torch.bool).tril(S - T)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        return self.proj(y.transpose(1, 2).reshape(B, T, D)), (k, v)


class Renormalised(nn.Module):
    """Weights hidden after the softmax and made to sum to one again: the same as before it."""

    def __init__(self, d_model=32, causal=True):
        super().__init__()
        self.causal = causal
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        w = (self.q(x) @ self.k(x).transpose(1, 2) / math.sqrt(x.shape[-1])).softmax(-1).tril()
        w = w / w.sum(-1, keepdim=True)
        return self.o(w @ self.v(x))


class ZeroedOutput(nn.Module):
    """A fresh residual projection of zeros, QK-norm."""

    def __init__(self, d_model=32, n_heads=4):
        super().__init__()
        self.n_heads = n_heads
        self.qkv, self.c_proj = nn.Linear(d_model, 3 * d_model, bias=False), nn.Linear(d_model, d_model, bias=False)
        nn.init.zeros_(self.c_proj.weight)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.n_heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        q, k = F.rms_norm(q, (q.shape[-1],)), F.rms_norm(k, (k.shape[-1],))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, D))


CASES = [
    Case(name, "attention")
    for name in (
        "NanoGPT", "ListOfHeads", "Lucid", "LlamaGrouped", "WithSink", "Alibi", "Window", "BothSides",
        "TimeFirst", "Cached", "Renormalised", "ZeroedOutput",
    )
]  # fmt: skip
