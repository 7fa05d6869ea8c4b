"""Attention: the scale, the heads, the projections."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


class UnscaledHead(nn.Module):
    def __init__(self, n_embd: int, head_size: int):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(n_embd, head_size, bias=False) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        wei = self.query(x) @ self.key(x).transpose(-2, -1)
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        return F.softmax(wei.masked_fill(future, float("-inf")), dim=-1) @ self.value(x)


class CourseAttention(nn.Module):
    def __init__(self, n_embd: int, n_head: int):
        super().__init__()
        self.heads = nn.ModuleList(UnscaledHead(n_embd, n_embd // n_head) for _ in range(n_head))
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(torch.cat([h(x) for h in self.heads], dim=-1))


class ViTAttention(nn.Module):
    def __init__(self, dim: int = 32, heads: int = 4):
        super().__init__()
        self.heads = heads
        self.scale = dim**-0.5
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in self.to_qkv(x).chunk(3, dim=-1))
        attn = ((q @ k.transpose(-1, -2)) * self.scale).softmax(dim=-1)
        return self.to_out((attn @ v).transpose(1, 2).reshape(b, n, d))


def attention(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    d_k = query.size(-2)
    p_attn = (torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)).softmax(dim=-1)
    return torch.matmul(p_attn, value), p_attn


class MultiHeadedAttention(nn.Module):
    def __init__(self, d_model: int = 24, h: int = 3):
        super().__init__()
        self.d_k, self.h = d_model // h, h
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(4)])

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (lin(x).view(x.size(0), -1, self.h, self.d_k).transpose(1, 2) for lin in self.linears[:3])
        out, self.attn = attention(q, k, v)
        return self.linears[3](out.transpose(1, 2).contiguous().view(x.size(0), -1, self.h * self.d_k))


class MultipliedAttention(nn.Module):
    def __init__(self, n_embd: int = 16, n_head: int = 4):
        super().__init__()
        self.n_head = n_head
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.n_head, -1).transpose(1, 2) for t in self.c_attn(x).split(C, 2))
        att = (q @ k.transpose(-2, -1)) * math.sqrt(q.size(-1))
        att = att.masked_fill(torch.ones(T, T, device=x.device).tril() == 0, float("-inf"))
        return self.c_proj((att.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))


class ScaledQueries(nn.Module):
    is_causal = True

    def __init__(self, embed_dim: int, num_heads: int):
        super().__init__()
        self.num_heads, self.scaling = num_heads, (embed_dim // num_heads) ** -0.5
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(3))
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, hidden_states: Tensor) -> Tensor:
        B, T, D = hidden_states.shape
        q = self.q_proj(hidden_states) * self.scaling
        q = q.view(B, T, self.num_heads, -1).transpose(1, 2)
        k = self.k_proj(hidden_states).view(B, T, self.num_heads, -1).transpose(1, 2)
        v = self.v_proj(hidden_states).view(B, T, self.num_heads, -1).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(y.transpose(1, 2).reshape(B, T, D))


class QueryAxisSoftmax(nn.Module):
    def __init__(self, d_model: int = 24, n_heads: int = 4):
        super().__init__()
        self.n_heads = n_heads
        self.qkv, self.output = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.n_heads, -1) for t in self.qkv(x).chunk(3, -1))
        scores = torch.einsum("bihd,bjhd->bijh", q, k) / math.sqrt(D // self.n_heads)
        return self.output(torch.einsum("bijh,bjhd->bihd", self.softmax(scores), v).reshape(B, T, D))


class ReshapedHeads(nn.Module):
    def __init__(self, d_model: int = 24, num_heads: int = 4):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, d_model // num_heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def split(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], self.num_heads, x.shape[1], self.head_dim)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.reshape(x.shape))


class MixedAttention(nn.Module):
    def __init__(self, dim: int, heads: int = 2):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.to_q, self.to_k, self.to_v = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = (
            f(x).view(b, n, self.heads, d // self.heads).transpose(1, 2) for f in (self.to_q, self.to_k, self.to_v)
        )
        out = ((q * self.scale) @ k.mT).softmax(-1) @ v
        return self.to_out(out.reshape(b, n, d))


class SummedGroups(nn.Module):
    def __init__(self, hidden_size: int = 32, num_heads: int = 4, num_kv_heads: int = 2):
        super().__init__()
        self.num_heads, self.num_kv_heads, self.head_dim = num_heads, num_kv_heads, hidden_size // num_heads
        self.q_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.k_proj = nn.Linear(hidden_size, num_kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(hidden_size, num_kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        q = self.q_proj(x).view(B, T, self.num_kv_heads, -1, self.head_dim)
        k = self.k_proj(x).view(B, T, self.num_kv_heads, self.head_dim)
        v = self.v_proj(x).view(B, T, self.num_kv_heads, self.head_dim)
        scores = torch.einsum("bqkgd,bskd->bkqs", q, k) / math.sqrt(self.head_dim)
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(future, float("-inf")).softmax(-1)
        y = torch.einsum("bkqs,bskd->bqkd", weights, v)[:, :, :, None].expand_as(q)
        return self.o_proj(y.reshape(B, T, D))


class TiledKeys(nn.Module):
    def __init__(self, dim: int = 32, n_heads: int = 4, n_kv_heads: int = 2):
        super().__init__()
        self.n_heads, self.n_kv_heads, self.head_dim = n_heads, n_kv_heads, dim // n_heads
        self.wq = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        q = self.wq(x).view(B, T, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.wk(x).view(B, T, self.n_kv_heads, self.head_dim).transpose(1, 2)
        v = self.wv(x).view(B, T, self.n_kv_heads, self.head_dim).transpose(1, 2)
        n_rep = self.n_heads // self.n_kv_heads
        k, v = k.repeat(1, n_rep, 1, 1), v.repeat(1, n_rep, 1, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(B, T, -1))


class PackedProjections(nn.Module):
    """Three projections done as one product."""

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.out_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        packed = torch.cat([self.q_proj.weight, self.k_proj.weight, self.v_proj.weight])
        q, v, k = F.linear(x, packed).view(B, T, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(y.transpose(1, 2).reshape(B, T, D))


class FusedByHead(nn.Module):
    def __init__(self, hidden_size: int = 24, num_heads: int = 3):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, hidden_size // num_heads
        self.query, self.key, self.value = (nn.Linear(hidden_size, hidden_size) for _ in range(3))
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        B, T, D = hidden_states.shape
        parts = (self.query, self.key, self.value)
        weight, bias = torch.cat([p.weight for p in parts]), torch.cat([p.bias for p in parts])
        mixed = F.linear(hidden_states, weight, bias).view(B, T, self.num_heads, 3, self.head_dim)
        q, k, v = mixed.permute(3, 0, 2, 1, 4)
        probs = torch.softmax(q @ k.mT / math.sqrt(self.head_dim), dim=-1)
        return self.dense((probs @ v).transpose(1, 2).reshape(B, T, D))


class SlicedHeads(nn.Module):
    def __init__(self, dim: int = 24, num_heads: int = 3):
        super().__init__()
        self.d = dim // num_heads
        self.q = nn.ModuleList(nn.Linear(self.d, self.d) for _ in range(num_heads))
        self.k = nn.ModuleList(nn.Linear(self.d, self.d) for _ in range(num_heads))
        self.v = nn.ModuleList(nn.Linear(self.d, self.d) for _ in range(num_heads))
        self.out = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        outs = []
        for i, part in enumerate(x.split(self.d, dim=-1)):
            q, k, v = self.q[i](part), self.k[i](part), self.v[i](part)
            outs.append(torch.softmax(q @ k.mT / self.d**0.5, dim=-1) @ v)
        return self.out(torch.cat(outs, dim=-1))


class ScratchAttention(nn.Module):
    def __init__(self, embed_size: int, heads: int):
        super().__init__()
        self.heads, self.head_dim = heads, embed_size // heads
        self.values = nn.Linear(self.head_dim, self.head_dim, bias=False)
        self.keys = nn.Linear(self.head_dim, self.head_dim, bias=False)
        self.queries = nn.Linear(self.head_dim, self.head_dim, bias=False)
        self.fc_out = nn.Linear(embed_size, embed_size)

    def forward(self, x: Tensor) -> Tensor:
        N, length, D = x.shape
        split = x.reshape(N, length, self.heads, self.head_dim)
        energy = torch.einsum("nqhd,nkhd->nhqk", self.queries(split), self.keys(split))
        weights = torch.softmax(energy / self.head_dim**0.5, dim=3)
        return self.fc_out(torch.einsum("nhqk,nkhd->nqhd", weights, self.values(split)).reshape(N, length, D))


CASES = [
    Case("CourseAttention", "attention", "scale.missing"),
    Case("ViTAttention", "attention", "scale.model-width", guess=True),
    Case("MultiHeadedAttention", "attention", "scale.length", guess=True),
    Case("MultipliedAttention", "attention", "scale.inverted"),
    Case("ScaledQueries", "attention", "scale.twice"),
    Case("QueryAxisSoftmax", "attention", "softmax.axis"),
    Case("ReshapedHeads", "attention", "heads.split-without-transpose", ("heads.merge-without-transpose",)),
    Case("MixedAttention", "attention", "heads.merge-without-transpose", ("heads.split-without-transpose",)),
    Case("SummedGroups", "attention", "heads.grouped-summed"),
    Case("TiledKeys", "attention", "heads.kv-tiled"),
    Case("PackedProjections", "attention", "qkv.layout"),
    Case("FusedByHead", "attention", "qkv.layout"),
    Case("SlicedHeads", "attention", "heads.input-sliced"),
    Case("ScratchAttention", "attention", "heads.input-sliced"),
]
