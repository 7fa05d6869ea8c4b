"""Attention in which a position sees what it may not, or does not see what it should."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case


class CausalSelfAttention(nn.Module):
    """nanoGPT style, a mask that hides one too few."""

    def __init__(self, n_embd=48, n_head=4, block_size=24):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.n_head = n_head
        self.register_buffer("bias", torch.tril(torch.ones(block_size, block_size), diagonal=1)[None, None])

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in self.c_attn(x).split(C, dim=2))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        return self.c_proj((F.softmax(att, dim=-1) @ v).transpose(1, 2).contiguous().view(B, T, C))


class MaskForgotten(nn.Module):
    """A buffer of the right shape that forward never applies."""

    def __init__(self, dim=32, heads=4, dim_head=8):
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_qkv = nn.Linear(dim, heads * dim_head * 3, bias=False)
        self.to_out = nn.Linear(heads * dim_head, dim)
        self.register_buffer("mask", torch.triu(torch.ones(64, 64, dtype=torch.bool), 1))

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (t.reshape(b, n, self.heads, -1).permute(0, 2, 1, 3) for t in self.to_qkv(x).chunk(3, dim=-1))
        dots = torch.einsum("bhid,bhjd->bhij", q, k) * self.scale
        out = torch.einsum("bhij,bhjd->bhid", dots.softmax(dim=-1), v)
        return self.to_out(out.permute(0, 2, 1, 3).reshape(b, n, -1))


class OnlyOneBackend(nn.Module):
    """The quick path of training forgets the mask."""

    def __init__(self, d_model=32, n_heads=2, causal=True):
        super().__init__()
        self.n_heads, self.causal = n_heads, causal
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (w(x).view(B, T, self.n_heads, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        if self.training:
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.wo(y.transpose(1, 2).reshape(B, T, D))


class ChunkedCausal(nn.Module):
    """Only whole blocks of 16 are hidden: inside a block everything is seen."""

    def __init__(self, d_model=32):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        T = x.shape[1]
        i = torch.arange(T)
        visible = (i[:, None] // 16) >= (i[None, :] // 16)
        s = self.q(x) @ self.k(x).transpose(1, 2) / math.sqrt(x.shape[-1])
        return self.o(s.masked_fill(~visible, -torch.inf).softmax(-1) @ self.v(x))


class StrictHead(nn.Module):
    """Course style, one head, the diagonal hidden too."""

    def __init__(self, n_embd=32, head_size=32, block_size=16):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size), diagonal=-1))

    def forward(self, x):
        T = x.shape[1]
        wei = self.query(x) @ self.key(x).transpose(-2, -1) * 32**-0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, -1e9)
        return F.softmax(wei, dim=-1) @ self.value(x)


class StrictSDPA(nn.Module):
    """A bool mask made with triu(0)."""

    def __init__(self, embed_dim=32, num_heads=4):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.out = nn.Linear(embed_dim, 3 * embed_dim), nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        hidden = torch.triu(torch.ones(T, T, dtype=torch.bool, device=x.device), diagonal=0)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=~hidden)
        return self.out(y.transpose(1, 2).reshape(B, T, D))


class CausalPastLost(nn.Module):
    """Two conventions multiplied: what is left is the diagonal."""

    def __init__(self, d_model=32, num_heads=2):
        super().__init__()
        self.h = num_heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (w(x).view(B, T, self.h, -1).transpose(1, 2) for w in (self.q, self.k, self.v))
        keep, other = torch.tril(torch.ones(T, T)), torch.triu(torch.ones(T, T))
        s = (q @ k.transpose(-2, -1) / math.sqrt(D // self.h)).masked_fill(keep * other == 0, -torch.inf)
        return self.o((s.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D))


class CausalSkips(nn.Module):
    """The first key is dropped for everybody who could do without."""

    def __init__(self, d_model=32, causal=True):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.causal = causal

    def forward(self, x):
        T = x.shape[1]
        keep = torch.ones(T, T, dtype=torch.bool).tril()
        keep[1:, 0] = False
        s = self.q(x) @ self.k(x).transpose(1, 2) / math.sqrt(x.shape[-1])
        return self.o(s.masked_fill(~keep, -torch.inf).softmax(-1) @ self.v(x))


class TopLeftCached(nn.Module):
    """A cache, and is_causal=True for a chunk of new queries."""

    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, cache=None):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(B, T, D)), (k, v)


class TopLeftMemory(nn.Module):
    """Causal attention to a longer sequence of keys, cut from the top left of a square."""

    def __init__(self, d_model=32, max_len=32):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.register_buffer("causal_mask", torch.ones(max_len, max_len, dtype=torch.bool).tril())

    def forward(self, query, key, value):
        s = self.q(query) @ self.k(key).transpose(1, 2) / math.sqrt(query.shape[-1])
        s = s.masked_fill(~self.causal_mask[: query.shape[1], : key.shape[1]], -torch.inf)
        return self.o(s.softmax(-1) @ self.v(value))


class AfterSoftmax(nn.Module):
    """The triangle is multiplied onto the weights."""

    def __init__(self, d_model=32, nhead=4):
        super().__init__()
        self.nhead = nhead
        self.in_proj = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.nhead, -1).transpose(1, 2) for t in self.in_proj(x).chunk(3, -1))
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(D // self.nhead), dim=-1)
        weights = weights * torch.tril(torch.ones(T, T, dtype=x.dtype))
        return self.out_proj((weights @ v).transpose(1, 2).reshape(B, T, D)), weights


class AfterSoftmaxFilled(nn.Module):
    """The same with masked_fill and functional parameters."""

    def __init__(self, width=32):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, width, width) * width**-0.5)

    def forward(self, x):
        T = x.shape[1]
        q, k, v = x @ self.w[0], x @ self.w[1], x @ self.w[2]
        p = F.softmax(q.bmm(k.transpose(1, 2)) / x.shape[-1] ** 0.5, -1)
        p = p.masked_fill(torch.ones(T, T).triu(1).bool(), 0.0)
        return p.bmm(v) @ self.w[3]


class FiniteMask(nn.Module):
    """minGPT's old constant."""

    def __init__(self, n_embd=32, n_head=4, block_size=32):
        super().__init__()
        self.key, self.query, self.value, self.proj = (nn.Linear(n_embd, n_embd) for _ in range(4))
        self.register_buffer("mask", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size))
        self.n_head = n_head

    def forward(self, x, layer_past=None):
        B, T, C = x.size()
        k, q, v = (
            w(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for w in (self.key, self.query, self.value)
        )
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, -1e4)
        return self.proj((F.softmax(att, dim=-1) @ v).transpose(1, 2).contiguous().view(B, T, C))


class FiniteAdded(nn.Module):
    """The constant is added, as in GPT-2's first code."""

    def __init__(self, nx=32, n_head=2):
        super().__init__()
        self.c_attn, self.c_proj, self.n_head = nn.Linear(nx, 3 * nx), nn.Linear(nx, nx), n_head

    def forward(self, hidden_states):
        B, T, D = hidden_states.shape
        q, k, v = (t.view(B, T, self.n_head, -1).transpose(1, 2) for t in self.c_attn(hidden_states).chunk(3, -1))
        w = q @ k.transpose(-1, -2) / math.sqrt(v.size(-1))
        b = torch.tril(torch.ones(T, T, dtype=w.dtype))
        w = w * b - 1e4 * (1 - b)
        return (self.c_proj((w.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D)),)


class TriangleAdded(CausalSelfAttention):
    """The triangle of ones is added to the scores."""

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in self.c_attn(x).split(C, dim=2))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = att + torch.triu(torch.ones(T, T, dtype=torch.bool, device=x.device), diagonal=1)
        return self.c_proj((F.softmax(att, dim=-1) @ v).transpose(1, 2).contiguous().view(B, T, C))


class TriangleTimes(FiniteAdded):
    """The half of GPT-2's line that was kept: 0 is no minus infinity."""

    def __init__(self, nx=32, n_head=2):
        super().__init__(nx, n_head)
        self.is_causal = True

    def forward(self, hidden_states):
        B, T, D = hidden_states.shape
        q, k, v = (t.view(B, T, self.n_head, -1).transpose(1, 2) for t in self.c_attn(hidden_states).chunk(3, -1))
        w = q @ k.transpose(-1, -2) / math.sqrt(v.size(-1)) * torch.tril(torch.ones(T, T, dtype=v.dtype))
        return (self.c_proj((w.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D)),)


CASES = [
    Case("TriangleAdded", "attention", "mask.added-as-number"),
    Case("TriangleTimes", "attention", "mask.added-as-number"),
    Case("CausalSelfAttention", "attention", "causal.future-leak"),
    Case("MaskForgotten", "attention", "causal.future-leak"),
    Case("OnlyOneBackend", "attention", "causal.future-leak"),
    Case("ChunkedCausal", "attention", "causal.future-leak"),
    Case("StrictHead", "attention", "causal.self-masked"),
    Case("StrictSDPA", "attention", "causal.self-masked"),
    Case("CausalPastLost", "attention", "causal.past-lost"),
    Case("CausalSkips", "attention", "causal.past-lost"),
    Case("TopLeftCached", "attention", "causal.top-left"),
    Case("TopLeftMemory", "attention", "causal.top-left"),
    Case("AfterSoftmax", "attention", "causal.after-softmax"),
    Case("AfterSoftmaxFilled", "attention", "causal.after-softmax"),
    Case("FiniteMask", "attention", "causal.finite-mask"),
    Case("FiniteAdded", "attention", "causal.finite-mask"),
]
