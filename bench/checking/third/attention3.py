"""Heads, scales and projections of bidirectional attention, as many hands write them."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, einsum, nn

from bench.checking.case import Case


class Attention(nn.Module):
    """One projection to q, k and v; einsum over heads."""

    def __init__(self, dim: int, heads: int = 4, dim_head: int = 8, dropout: float = 0.0) -> None:
        super().__init__()
        inner = heads * dim_head
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_qkv = nn.Linear(dim, inner * 3, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.to_out = nn.Linear(inner, dim, bias=False)

    def split(self, x: Tensor) -> list[Tensor]:
        b, n, _ = x.shape
        return [t.reshape(b, n, self.heads, -1).transpose(1, 2) for t in self.to_qkv(x).chunk(3, dim=-1)]

    def attend(self, q: Tensor, k: Tensor) -> Tensor:
        return (einsum("bhid,bhjd->bhij", q, k) * self.scale).softmax(dim=-1)

    def merge(self, out: Tensor) -> Tensor:
        b, _, n, _ = out.shape
        return out.transpose(1, 2).reshape(b, n, -1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.split(x)
        attn = self.dropout(self.attend(q, k))
        return self.to_out(self.merge(einsum("bhij,bhjd->bhid", attn, v)))


class Attention2(Attention):
    def attend(self, q: Tensor, k: Tensor) -> Tensor:
        return einsum("bhid,bhjd->bhij", q, k).softmax(dim=-1)


class Attention3(Attention):
    def attend(self, q: Tensor, k: Tensor) -> Tensor:
        return (einsum("bhid,bhjd->bhij", q, k) / k.shape[-2] ** 0.5).softmax(dim=-1)


class Attention4(Attention):
    def attend(self, q: Tensor, k: Tensor) -> Tensor:
        return (einsum("bhid,bhjd->bhij", q, k) / self.scale).softmax(dim=-1)


class Attention5(Attention):
    def attend(self, q: Tensor, k: Tensor) -> Tensor:
        q = q * self.scale
        return (einsum("bhid,bhjd->bhij", q, k) * self.scale).softmax(dim=-1)


class Attention6(Attention):
    def attend(self, q: Tensor, k: Tensor) -> Tensor:
        return (einsum("bhid,bhjd->bhij", q, k) * self.scale).softmax(dim=-2)


class Attention7(Attention):
    def attend(self, q: Tensor, k: Tensor) -> Tensor:
        return (einsum("bhid,bhjd->bhij", q, k) * self.scale).softmax(dim=1)


class Attention8(Attention):
    def split(self, x: Tensor) -> list[Tensor]:
        b, n, _ = x.shape
        return [t.reshape(b, self.heads, n, -1) for t in self.to_qkv(x).chunk(3, dim=-1)]


class Attention9(Attention):
    def merge(self, out: Tensor) -> Tensor:
        b, _, n, _ = out.shape
        return out.reshape(b, n, -1)


class Attention10(Attention):
    """Half of the scale on either side, the largest score taken off first."""

    def attend(self, q: Tensor, k: Tensor) -> Tensor:
        root = math.sqrt(self.scale)
        sim = einsum("bhid,bhjd->bhij", q * root, k * root)
        return (sim - sim.amax(dim=-1, keepdim=True).detach()).softmax(dim=-1)


class Attention11(Attention):
    def attend(self, q: Tensor, k: Tensor) -> Tensor:
        b, h, n, d = k.shape
        return (q @ k.reshape(b, h, d, n) * self.scale).softmax(dim=-1)


class Attention12(Attention):
    def __init__(self, dim: int, heads: int = 4, dim_head: int = 8) -> None:
        super().__init__(dim, heads, dim_head)
        self.norm_q, self.norm_k = nn.LayerNorm(dim_head), nn.LayerNorm(dim_head)

    def attend(self, q: Tensor, k: Tensor) -> Tensor:
        return super().attend(self.norm_q(q), self.norm_k(k))


class Attention13(Attention):
    """The scores are capped softly; the softmax runs in float32."""

    def attend(self, q: Tensor, k: Tensor) -> Tensor:
        sim = einsum("bhid,bhjd->bhij", q, k) * self.scale
        return (30.0 * torch.tanh(sim / 30.0)).softmax(dim=-1, dtype=torch.float32).to(q.dtype)


class Attention14(Attention):
    """A denominator one larger: a head may look at nothing."""

    def attend(self, q: Tensor, k: Tensor) -> Tensor:
        sim = einsum("bhid,bhjd->bhij", q, k) * self.scale
        return F.pad(sim, (1, 0)).softmax(dim=-1)[..., 1:]


class SelfAttention(nn.Module):
    """ViT: qkv of shape (B, N, 3, heads, head_dim)."""

    def __init__(self, dim: int, num_heads: int = 4, qkv_bias: bool = True, attn_drop: float = 0.0) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.attn_drop = nn.Dropout(attn_drop)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = self.attn_drop((q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1))
        return self.proj((attn @ v).transpose(1, 2).reshape(B, N, C))


class SelfAttention2(SelfAttention):
    def forward(self, x: Tensor) -> Tensor:
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        q, v, k = qkv.unbind(0)
        attn = self.attn_drop((q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1))
        return self.proj((attn @ v).transpose(1, 2).reshape(B, N, C))


class SelfAttention3(SelfAttention):
    def forward(self, x: Tensor) -> Tensor:
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = self.attn_drop((q @ k.transpose(-2, -1) * self.scale).softmax(dim=0))
        return self.proj((attn @ v).transpose(1, 2).reshape(B, N, C))


class WideAttention(nn.Module):
    """Rows of the sequence first, as (T, B, D) inside; (B, T, D) outside."""

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * embed_dim, embed_dim))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * embed_dim))
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.dropout = dropout
        nn.init.xavier_uniform_(self.in_proj_weight)

    def forward(self, x: Tensor) -> Tensor:
        x = x.transpose(0, 1)
        T, B, _ = x.shape
        q, k, v = F.linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, dim=-1)
        q = q * self.head_dim**-0.5
        q, k, v = (t.contiguous().view(T, B * self.num_heads, self.head_dim).transpose(0, 1) for t in (q, k, v))
        w = F.dropout(torch.bmm(q, k.transpose(1, 2)).softmax(-1), self.dropout, self.training)
        y = torch.bmm(w, v).transpose(0, 1).contiguous().view(T, B, self.embed_dim)
        return self.out_proj(y).transpose(0, 1)


class WideAttention2(WideAttention):
    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        q, k, v = F.linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, dim=-1)
        q = q * self.head_dim**-0.5
        q, k, v = (t.contiguous().view(T, B * self.num_heads, self.head_dim).transpose(0, 1) for t in (q, k, v))
        w = F.dropout(torch.bmm(q, k.transpose(1, 2)).softmax(-1), self.dropout, self.training)
        y = torch.bmm(w, v).transpose(0, 1).contiguous().view(B, T, self.embed_dim)
        return self.out_proj(y)


class PortedAttention(nn.Module):
    """q, k and v dense layers with bias, each of them per head in one matrix."""

    def __init__(self, num_units: int = 32, num_heads: int = 4) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.q, self.k, self.v = (nn.Linear(num_units, num_units) for _ in range(3))
        self.o = nn.Linear(num_units, num_units)

    def heads(self, x: Tensor) -> Tensor:
        return torch.cat(x.chunk(self.num_heads, dim=2), dim=0)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.heads(F.relu(f(x))) for f in (self.q, self.k, self.v))
        w = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1)
        return self.o(torch.cat((w @ v).chunk(self.num_heads, dim=0), dim=2))


class PortedAttention2(PortedAttention):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.heads(f(x)) for f in (self.q, self.k, self.v))
        w = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1)
        return self.o(torch.cat((w @ v).chunk(self.num_heads, dim=0), dim=2))


class EmbedAttention(nn.Module):
    """The course's version: a list of small layers, one triple a head."""

    def __init__(self, d: int, n_heads: int = 2) -> None:
        super().__init__()
        self.d_head = d // n_heads
        self.q_mappings = nn.ModuleList([nn.Linear(self.d_head, self.d_head) for _ in range(n_heads)])
        self.k_mappings = nn.ModuleList([nn.Linear(self.d_head, self.d_head) for _ in range(n_heads)])
        self.v_mappings = nn.ModuleList([nn.Linear(self.d_head, self.d_head) for _ in range(n_heads)])
        self.out = nn.Linear(d, d)

    def forward(self, sequences: Tensor) -> Tensor:
        parts = []
        for h, seq in enumerate(sequences.split(self.d_head, dim=-1)):
            q, k, v = self.q_mappings[h](seq), self.k_mappings[h](seq), self.v_mappings[h](seq)
            parts.append(torch.softmax(q @ k.mT / self.d_head**0.5, dim=-1) @ v)
        return self.out(torch.cat(parts, dim=-1))


CASES: list[Case] = [
    Case("Attention", "attention", guess=True),
    Case("Attention2", "attention", "scale.missing"),
    Case("Attention3", "attention", "scale.length", guess=True),
    Case("Attention4", "attention", "scale.inverted"),
    Case("Attention5", "attention", "scale.twice"),
    Case("Attention6", "attention", "softmax.axis"),
    Case("Attention7", "attention", "softmax.axis", guess=True),
    Case("Attention8", "attention", "heads.split-without-transpose", also=("heads.merge-without-transpose",)),
    Case("Attention9", "attention", "heads.merge-without-transpose"),
    Case("Attention10", "attention"),
    Case("Attention11", "attention", "scores.key-reshaped"),
    Case("Attention12", "attention"),
    Case("Attention13", "attention", guess=True),
    Case("Attention14", "attention"),
    Case("SelfAttention", "attention"),
    Case("SelfAttention2", "attention", "qkv.layout", guess=True),
    Case("SelfAttention3", "attention", "softmax.axis", also=("batch.mixing",)),
    Case("WideAttention", "attention"),
    Case("WideAttention2", "attention", "batch.mixing"),
    Case("PortedAttention", "attention", "projection.activation", guess=True),
    Case("PortedAttention2", "attention"),
    Case("EmbedAttention", "attention", "heads.input-sliced"),
]
