"""Attention that is right, in many styles, with the conventions that are no faults."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case
from bench.checking.first.attention_formula import Fused
from bench.checking.first.attention_formula_b import FusedPlain, Grouped


class CausalNano(nn.Module):
    def __init__(self, n_embd=32, n_head=4, block_size=16):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.attn_dropout, self.n_head = nn.Dropout(0.1), n_head
        self.register_buffer("bias", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        k, q, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (k, q, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = self.attn_dropout(F.softmax(att, dim=-1)) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


def rotated(x):
    d, T = x.shape[-1], x.shape[-2]
    angle = torch.arange(T, dtype=torch.float32)[:, None] * 100.0 ** (-torch.arange(0, d, 2).float() / d)
    c, s = torch.cat([angle, angle], -1).cos(), torch.cat([angle, angle], -1).sin()
    a, b = x.chunk(2, -1)
    return x * c + torch.cat([-b, a], -1) * s


class RotaryGrouped(Grouped):
    def forward(self, x):
        q, k, v = self.projected(x)
        q, k = rotated(q), rotated(k)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))


class RotaryComplex(Grouped):
    def forward(self, x):
        q, k, v = self.projected(x)
        turn = torch.polar(
            torch.ones(x.shape[1], 4), torch.arange(x.shape[1])[:, None] * torch.tensor([1.0, 0.3, 0.1, 0.03])
        )
        q, k = (
            torch.view_as_real(torch.view_as_complex(t.float().reshape(*t.shape[:-1], 4, 2)) * turn).flatten(3)
            for t in (q, k)
        )
        k, v = (t[:, :, None].expand(-1, -1, 2, -1, -1).reshape(q.shape) for t in (k, v))
        s = q.type_as(v) @ k.type_as(v).mT / math.sqrt(self.head_dim)
        return self.out(s.softmax(-1) @ v)


class GroupedByView(Grouped):
    def forward(self, x):
        q, k, v = self.projected(x)
        B, H, T, d = q.shape
        q = q.view(B, self.n_kv_heads, -1, T, d)
        s = torch.einsum("bkgtd,bksd->bkgts", q, k) / math.sqrt(d)
        return self.out(torch.einsum("bkgts,bksd->bkgtd", s.softmax(-1), v).reshape(B, H, T, d))


class PerHeadFused(FusedPlain):
    def forward(self, x):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, self.H, 3, D // self.H).permute(3, 0, 2, 1, 4)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, T, D))


class FoldedBatch(Fused):
    def forward(self, x):
        B, T, _D = x.shape
        q, k, v = (t.reshape(B * self.n_head, T, -1) for t in self.split(x))
        a = torch.baddbmm(torch.zeros(1, 1, 1).to(x), q, k.transpose(1, 2), beta=0, alpha=q.shape[-1] ** -0.5)
        return self.merge(torch.bmm(torch.softmax(a, 2), v).view(B, self.n_head, T, -1))


class Heads(nn.Module):
    def __init__(self, D=32, H=4):
        super().__init__()
        self.q, self.k, self.v = (nn.ModuleList(nn.Linear(D, D // H, bias=False) for _ in range(H)) for _ in range(3))
        self.proj = nn.Linear(D, D)

    def forward(self, x):
        outs = []
        for q, k, v in zip(self.q, self.k, self.v, strict=True):
            a = q(x) @ k(x).transpose(-2, -1) * k.out_features**-0.5
            a = a.masked_fill(torch.ones_like(a).triu(1).bool(), -torch.inf)
            outs.append(a.softmax(-1) @ v(x))
        return self.proj(torch.cat(outs, dim=-1))


class PerHeadWeights(nn.Module):
    def __init__(self, D=24, H=3, d=8):
        super().__init__()
        self.W_Q, self.W_K, self.W_V = (nn.Parameter(torch.randn(H, D, d) / D**0.5) for _ in range(3))
        self.W_O = nn.Parameter(torch.randn(H, d, D) / D**0.5)

    def forward(self, x):
        q, k, v = (torch.einsum("bpD,hDd->bphd", x, w) for w in (self.W_Q, self.W_K, self.W_V))
        a = torch.einsum("bqhd,bkhd->bhqk", q, k) / self.W_Q.shape[-1] ** 0.5
        z = torch.einsum("bkhd,bhqk->bqhd", v, a.softmax(-1))
        return torch.einsum("bqhd,hdD->bqD", z, self.W_O)


class Normed(FusedPlain):
    """QK-norm, soft-cap and a sink."""

    def __init__(self):
        super().__init__()
        self.q_norm, self.k_norm = nn.RMSNorm(8), nn.RMSNorm(8)
        self.sink = nn.Parameter(torch.zeros(4, 1, 1))

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.H, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        s = self.q_norm(q) @ self.k_norm(k).mT / math.sqrt(D // self.H)
        s = 20 * torch.tanh(s / 20)
        w = torch.cat([s, self.sink.expand(B, -1, T, 1)], -1).softmax(-1)[..., :-1]
        return self.proj((w @ v).transpose(1, 2).reshape(B, T, D))


class Alibi(FusedPlain):
    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.H, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        slope = 2.0 ** -torch.arange(1, self.H + 1)
        far = torch.arange(T)[None] - torch.arange(T)[:, None]
        s = q @ k.mT / math.sqrt(q.shape[-1]) + slope[:, None, None] * far
        return self.proj((s.float().softmax(-1).to(v) @ v).transpose(1, 2).reshape(B, T, D))


class RelativeT5(Grouped):
    """T5's: no scale, a learnt bias."""

    def __init__(self):
        super().__init__(n_kv_heads=4)
        self.relative_attention_bias = nn.Embedding(32, 4)

    def forward(self, x):
        q, k, v = self.projected(x)
        T = x.shape[1]
        bucket = (torch.arange(T)[None] - torch.arange(T)[:, None]).clamp(-15, 15) + 16
        s = q @ k.mT + self.relative_attention_bias(bucket).permute(2, 0, 1)
        return self.out(s.softmax(-1) @ v)


class OffByOne(FusedPlain):
    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.H, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        e = torch.exp(q @ k.mT / math.sqrt(q.shape[-1]))
        return self.proj((e / (1 + e.sum(-1, keepdim=True)) @ v).transpose(1, 2).reshape(B, T, D))


class SingleHead(nn.Module):
    def __init__(self, D=16):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x):
        return torch.softmax(self.q(x) @ self.k(x).mT / math.sqrt(x.shape[-1]), -1) @ self.v(x)


class Builtin(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


class Gated(Grouped):
    def __init__(self):
        super().__init__(n_kv_heads=1)
        self.gate = nn.Linear(32, 32)

    def forward(self, x):
        q, k, v = self.projected(x)
        y = F.scaled_dot_product_attention(q, k.expand_as(q), v.expand_as(q))
        return self.wo(y.transpose(1, 2).flatten(2) * torch.sigmoid(self.gate(x)))


CASES = [
    Case(name, "attention")
    for name in (
        "CausalNano",
        "RotaryGrouped",
        "RotaryComplex",
        "GroupedByView",
        "PerHeadFused",
        "FoldedBatch",
        "Heads",
        "PerHeadWeights",
    )
] + [
    Case(name, "attention") for name in ("Normed", "Alibi", "RelativeT5", "OffByOne", "SingleHead", "Builtin", "Gated")
]
