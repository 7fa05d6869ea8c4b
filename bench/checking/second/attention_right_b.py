"""More attention without a mistake: positions inside it, folded heads, ported layouts, masks of both polarities."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


def halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class RotaryCausal(nn.Module):
    """Halves paired, the first half of each head rotated, angles in float32."""

    def __init__(self, dim: int = 32, num_heads: int = 2, base: float = 10000.0):
        super().__init__()
        self.num_heads, self.base, self.rotated = num_heads, base, dim // num_heads // 2
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def turn(self, x: Tensor) -> Tensor:
        n = self.rotated
        frequencies = self.base ** (-torch.arange(0, n, 2, device=x.device).float() / n)
        angles = torch.arange(x.shape[-2], device=x.device).float()[:, None] * frequencies
        turned = halves(x[..., :n], angles.cos().to(x.dtype), angles.sin().to(x.dtype))
        return torch.cat([turned, x[..., n:]], dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        q, k, v = (f(x).view(B, T, self.num_heads, -1).transpose(1, 2) for f in (self.q_proj, self.k_proj, self.v_proj))
        y = F.scaled_dot_product_attention(self.turn(q), self.turn(k), v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))


class ComplexRotary(nn.Module):
    def __init__(self, dim: int, n_heads: int, n_kv_heads: int = 1):
        super().__init__()
        self.n_heads, self.n_kv_heads, self.head_dim = n_heads, n_kv_heads, dim // n_heads
        self.wq = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, dim, bias=False)

    def turn(self, x: Tensor) -> Tensor:
        freqs = 1.0 / 10000.0 ** (torch.arange(0, self.head_dim, 2, device=x.device).float() / self.head_dim)
        angles = torch.outer(torch.arange(x.shape[1], device=x.device).float(), freqs)
        cis = torch.polar(torch.ones_like(angles), angles)[None, :, None]
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * cis).flatten(3).type_as(x)

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        q = self.turn(self.wq(x).view(B, T, self.n_heads, -1)).transpose(1, 2)
        k = self.turn(self.wk(x).view(B, T, self.n_kv_heads, -1)).transpose(1, 2)
        v = self.wv(x).view(B, T, self.n_kv_heads, -1).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.wo(y.transpose(1, 2).flatten(2))


class FoldedHeads(nn.Module):
    """Heads folded into the batch; `mask` (B, S) True at what may be read."""

    def __init__(self, d_model: int = 24, num_heads: int = 3):
        super().__init__()
        self.num_heads = num_heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def fold(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        return x.view(B, T, self.num_heads, -1).transpose(1, 2).flatten(0, 1)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        B, T, D = x.shape
        q, k, v = self.fold(self.q(x)), self.fold(self.k(x)), self.fold(self.v(x))
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(D // self.num_heads)
        if mask is not None:
            drop = ~mask.bool().repeat_interleave(self.num_heads, dim=0)[:, None]
            weights = scores.masked_fill(drop, -1e30).softmax(-1).masked_fill(drop, 0)
        else:
            weights = scores.softmax(-1)
        return self.o(torch.bmm(weights, v).view(B, self.num_heads, T, -1).transpose(1, 2).reshape(B, T, D))


class PortedAttention(nn.Module):
    """Kernels kept as they were written: (features, heads, head features)."""

    def __init__(self, features: int = 24, num_heads: int = 4):
        super().__init__()
        d = features // num_heads
        shapes = {"query": (features, num_heads, d), "key": (features, num_heads, d), "value": (features, num_heads, d)}
        self.kernels = nn.ParameterDict({k: nn.Parameter(torch.randn(s) * features**-0.5) for k, s in shapes.items()})
        self.out = nn.Parameter(torch.randn(num_heads, d, features) * features**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (torch.einsum("...tm,mhd->...thd", x, self.kernels[name]) for name in ("query", "key", "value"))
        logits = torch.einsum("...qhd,...khd->...hqk", q / q.shape[-1] ** 0.5, k)
        T = x.shape[-2]
        allowed = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        weights = torch.where(allowed, logits, -1e30).softmax(dim=-1)
        return torch.einsum("...hqk,...khd,hdm->...qm", weights, v, self.out)


class PaddedSDPA(nn.Module):
    """Bidirectional; `padding_mask` (B, S) True at padding; the kernel gives zeros where nothing may be read."""

    def __init__(self, dim: int = 32, num_heads: int = 4, dropout: float = 0.1):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        keep = None if padding_mask is None else ~padding_mask.bool()[:, None, None, :]
        p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep, dropout_p=p)
        return self.proj(y.transpose(1, 2).reshape(B, T, D))


class InterleavedFused(nn.Module):
    """One product for all three, read head by head."""

    is_causal = True

    def __init__(self, hidden_size: int = 24, num_heads: int = 3):
        super().__init__()
        self.num_heads = num_heads
        self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size)
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        B, T, D = hidden_states.shape
        fused = self.query_key_value(hidden_states).view(B, T, self.num_heads, 3, D // self.num_heads)
        q, k, v = (t.transpose(1, 2) for t in fused.unbind(dim=3))
        scores = q @ k.mT / math.sqrt(D // self.num_heads)
        position = torch.arange(T, device=q.device)
        scores = scores.masked_fill(position[None, :] > position[:, None], -1e9)
        return self.dense((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D))


class PackedRight(nn.Module):
    """Three projections done as one product."""

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.out_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        packed = torch.cat([self.q_proj.weight, self.k_proj.weight, self.v_proj.weight])
        q, k, v = F.linear(x, packed).view(B, T, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(y.transpose(1, 2).reshape(B, T, D))


class WindowBothSides(nn.Module):
    """Causal with a window and a mask of padding (1 = real)."""

    def __init__(self, dim: int = 16, num_heads: int = 2, window: int = 3):
        super().__init__()
        self.num_heads, self.window, self.causal = num_heads, window, True
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.num_heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        ones = torch.ones(T, T, dtype=torch.bool, device=x.device)
        keep = (ones.tril() & ones.triu(1 - self.window))[None, None]
        if attention_mask is not None:
            keep = keep & (attention_mask != 0)[:, None, None]
        scores = (q @ k.mT / math.sqrt(q.size(-1))).masked_fill(~keep, torch.finfo(x.dtype).min)
        weights = scores.softmax(-1) * keep
        return self.out((weights @ v).transpose(1, 2).reshape(B, T, D))


CASES = [
    Case("RotaryCausal", "attention"),
    Case("ComplexRotary", "attention"),
    Case("FoldedHeads", "attention"),
    Case("PortedAttention", "attention"),
    Case("PaddedSDPA", "attention"),
    Case("InterleavedFused", "attention"),
    Case("PackedRight", "attention"),
    Case("WindowBothSides", "attention"),
]
