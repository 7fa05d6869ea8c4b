"""Attention with a fault in its formula: shared heads, layouts, projections, dropout, precision, rotary."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case


class Grouped(nn.Module):
    """Grouped queries with separate projections."""

    def __init__(self, dim=32, n_heads=4, n_kv_heads=2):
        super().__init__()
        self.n_heads, self.n_kv_heads, self.head_dim = n_heads, n_kv_heads, dim // n_heads
        self.wq = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, dim, bias=False)

    def projected(self, x):
        B, T, _ = x.shape
        q = self.wq(x).view(B, T, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.wk(x).view(B, T, self.n_kv_heads, self.head_dim).transpose(1, 2)
        v = self.wv(x).view(B, T, self.n_kv_heads, self.head_dim).transpose(1, 2)
        return q, k, v

    def out(self, y):
        return self.wo(y.transpose(1, 2).flatten(2))


class Tiled(Grouped):
    def forward(self, x):
        q, k, v = self.projected(x)
        k, v = k.repeat(1, 2, 1, 1), v.repeat(1, 2, 1, 1)
        return self.out(F.scaled_dot_product_attention(q, k, v))


class TiledByView(Grouped):
    def forward(self, x):
        q, k, v = self.projected(x)
        B, H, T, d = q.shape
        q = q.view(B, H // self.n_kv_heads, self.n_kv_heads, T, d)
        s = torch.einsum("bgktd,bksd->bgkts", q, k) / math.sqrt(d)
        y = torch.einsum("bgkts,bksd->bgktd", s.softmax(-1), v).reshape(B, H, T, d)
        return self.out(y)


class Summed(Grouped):
    def __init__(self):
        super().__init__()
        self.wo = nn.Linear(self.n_kv_heads * self.head_dim, 32)

    def forward(self, x):
        q, k, v = self.projected(x)
        B, _H, T, d = q.shape
        q = q.view(B, self.n_kv_heads, -1, T, d).sum(2)
        return self.out((q @ k.mT / math.sqrt(d)).softmax(-1) @ v)


class SummedInEinsum(Summed):
    def forward(self, x):
        q, k, v = self.projected(x)
        B, _H, T, d = q.shape
        q = q.view(B, self.n_kv_heads, -1, T, d)
        s = torch.einsum("bkgtd,bksd->bkts", q, k) * d**-0.5
        return self.out(s.softmax(-1) @ v)


class SlicedHead(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d, d) for _ in range(3))

    def forward(self, x):
        a = self.q(x) @ self.k(x).transpose(1, 2) / x.shape[-1] ** 0.5
        return a.softmax(-1) @ self.v(x)


class SlicedHeads(nn.Module):
    def __init__(self, D=32, H=4):
        super().__init__()
        self.heads = nn.ModuleList(SlicedHead(D // H) for _ in range(H))
        self.out = nn.Linear(D, D)

    def forward(self, x):
        return self.out(torch.cat([h(p) for h, p in zip(self.heads, x.chunk(len(self.heads), -1), strict=True)], -1))


class SlicedLists(nn.Module):
    """Small layers first, and none of the whole width but a bare matrix."""

    def __init__(self, width=24, parts=3):
        super().__init__()
        d = width // parts
        self.qs, self.ks, self.vs = (nn.ModuleList(nn.Linear(d, d) for _ in range(parts)) for _ in range(3))
        self.mix = nn.Parameter(torch.randn(width, width) * width**-0.5)

    def forward(self, x):
        pieces = x.split(x.shape[-1] // len(self.qs), dim=-1)
        q, k, v = ([f(p) for f, p in zip(every, pieces, strict=True)] for every in (self.qs, self.ks, self.vs))
        each = [F.scaled_dot_product_attention(a, b, c) for a, b, c in zip(q, k, v, strict=True)]
        return torch.cat(each, -1) @ self.mix


class SharedSmall(nn.Module):
    def __init__(self, embed_size=32, heads=4):
        super().__init__()
        self.heads, self.head_dim = heads, embed_size // heads
        self.values, self.keys, self.queries = (nn.Linear(self.head_dim, self.head_dim, bias=False) for _ in range(3))
        self.fc_out = nn.Linear(embed_size, embed_size)

    def forward(self, x):
        N, T, D = x.shape
        x = x.reshape(N, T, self.heads, self.head_dim)
        energy = torch.einsum("nqhd,nkhd->nhqk", [self.queries(x), self.keys(x)])
        attention = torch.softmax(energy / self.head_dim**0.5, dim=3)
        return self.fc_out(torch.einsum("nhql,nlhd->nqhd", [attention, self.values(x)]).reshape(N, T, D))


class FusedPlain(nn.Module):
    def __init__(self, D=32, H=4):
        super().__init__()
        self.qkv, self.proj, self.H = nn.Linear(D, 3 * D), nn.Linear(D, D), H

    def attend(self, q, k, v):
        B, T, D = q.shape
        q, k, v = (t.view(B, T, self.H, -1).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(B, T, D))


class KeyFirst(FusedPlain):
    def forward(self, x):
        k, q, v = self.qkv(x).chunk(3, dim=-1)
        return self.attend(q, k, v)


class KeysDetached(FusedPlain):
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return self.attend(q, k.detach(), v)


class ValuesAsData(FusedPlain):
    def forward(self, x):
        q, k, v = self.qkv(x).split(x.shape[-1], dim=-1)
        return self.attend(q, k, v.data)


class ValueMiddle(nn.Module):
    def __init__(self, D=32, H=4):
        super().__init__()
        self.in_proj, self.out_proj, self.H = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D), H

    def forward(self, x):
        B, T, D = x.shape
        q, v, k = self.in_proj(x).view(B, T, self.H, 3, D // self.H).permute(3, 0, 2, 1, 4).unbind(0)
        w = torch.softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5, -1)
        return self.out_proj((w @ v).transpose(1, 2).reshape(B, T, D))


class NamesCrossed(Grouped):
    def forward(self, x):
        B, T, _ = x.shape
        v = self.wk(x).view(B, T, self.n_kv_heads, -1).transpose(1, 2)
        k = self.wv(x).view(B, T, self.n_kv_heads, -1).transpose(1, 2)
        q = self.wq(x).view(B, T, self.n_heads, -1).transpose(1, 2)
        return self.out(F.scaled_dot_product_attention(q, k, v, enable_gqa=True))


class Unmixed(FusedPlain):
    def __init__(self):
        super().__init__()
        del self.proj

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.H, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, T, D)


class UnmixedHeads(nn.Module):
    def __init__(self, D=24, H=3):
        super().__init__()
        self.q, self.k, self.v = (nn.ModuleList(nn.Linear(D, D // H) for _ in range(H)) for _ in range(3))

    def forward(self, x):
        outs = []
        for q, k, v in zip(self.q, self.k, self.v, strict=True):
            a = torch.bmm(q(x), k(x).transpose(1, 2)) / math.sqrt(k.out_features)
            outs.append(a.softmax(-1) @ v(x))
        return torch.cat(outs, dim=-1)


class Bent(Grouped):
    def forward(self, x):
        q, k, v = self.projected(x)
        return self.out(F.scaled_dot_product_attention(F.relu(q), F.relu(k), v, enable_gqa=True))


class BentInside(nn.Module):
    def __init__(self, D=32, H=4):
        super().__init__()
        self.q, self.k, self.v = (nn.Sequential(nn.Linear(D, D), nn.GELU()) for _ in range(3))
        self.o, self.H = nn.Linear(D, D), H

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (f(x).view(B, T, self.H, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        return self.o(((q @ k.mT) / math.sqrt(D // self.H)).softmax(-1).matmul(v).transpose(1, 2).reshape(B, T, D))


class DroppedScores(FusedPlain):
    def attend(self, q, k, v):
        B, T, D = q.shape
        q, k, v = (t.view(B, T, self.H, -1).transpose(1, 2) for t in (q, k, v))
        s = F.dropout(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), 0.2, self.training)
        return self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D))

    def forward(self, x):
        return self.attend(*self.qkv(x).chunk(3, -1))


class DroppedScoresModule(Grouped):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        q, k, v = self.projected(x)
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        s = self.dropout(q @ k.transpose(-2, -1)) * self.head_dim**-0.5
        return self.out(torch.softmax(s, -1) @ v)


class HalfScores(FusedPlain):
    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.H, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        s = (q.bfloat16() @ k.bfloat16().mT) * q.shape[-1] ** -0.5
        return self.proj((s.softmax(-1).to(v.dtype) @ v).transpose(1, 2).reshape(B, T, D))


class HalfSoftmax(FusedPlain):
    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.H, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        s = q @ k.mT / math.sqrt(q.shape[-1])
        return self.proj((F.softmax(s.half(), -1).type_as(v) @ v).transpose(1, 2).reshape(B, T, D))


CASES = [
    Case("Tiled", "attention", "heads.kv-tiled"),
    Case("TiledByView", "attention", "heads.kv-tiled"),
    Case("Summed", "attention", "heads.grouped-summed"),
    Case("SummedInEinsum", "attention", "heads.grouped-summed"),
    Case("SlicedHeads", "attention", "heads.input-sliced"),
    Case("SlicedLists", "attention", "heads.input-sliced"),
    Case("SharedSmall", "attention", "heads.input-sliced"),
    Case("KeyFirst", "attention", "qkv.layout"),
    Case("KeysDetached", "attention", "parameter.unused"),
    Case("ValuesAsData", "attention", "parameter.unused"),
    Case("ValueMiddle", "attention", "qkv.layout"),
    Case("NamesCrossed", "attention", "qkv.layout"),
    Case("Unmixed", "attention", "projection.output-missing"),
    Case("UnmixedHeads", "attention", "projection.output-missing"),
    Case("Bent", "attention", "projection.activation"),
    Case("BentInside", "attention", "projection.activation"),
    Case("DroppedScores", "attention", "score.dropout"),
    Case("DroppedScoresModule", "attention", "score.dropout"),
    Case("HalfScores", "attention", "score.precision"),
    Case("HalfSoftmax", "attention", "score.precision"),
]
