"""Attention whose windows are off, whose rows mix, or that loses an axis."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case


class WindowTooWide(nn.Module):
    """One key more than stated."""

    def __init__(self, dim=32, num_heads=4, sliding_window=4):
        super().__init__()
        self.num_heads, self.sliding_window = num_heads, sliding_window
        self.qkv, self.o = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.num_heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        ago = torch.arange(T)[:, None] - torch.arange(T)[None, :]
        visible = (ago >= 0) & (ago <= self.sliding_window)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        return self.o(y.transpose(1, 2).reshape(B, T, D))


class WindowTooNarrow(nn.Module):
    """One key fewer than stated, by a pair of triangles."""

    def __init__(self, d_model=32, window=3):
        super().__init__()
        self.window = window
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        T = x.shape[1]
        keep = torch.ones(T, T).tril() * torch.ones(T, T).triu(-self.window + 2)
        s = self.q(x) @ self.k(x).transpose(1, 2) / math.sqrt(x.shape[-1])
        return self.o(s.masked_fill(keep == 0, -torch.inf).softmax(-1) @ self.v(x))


class RowsMixed(nn.Module):
    """nn.MultiheadAttention without batch_first, fed with rows first."""

    def __init__(self, d_model=32, nhead=4):
        super().__init__()
        self.attn = nn.MultiheadAttention(d_model, nhead)

    def forward(self, x):
        return self.attn(x, x, x, need_weights=False)[0]


class RowsSummed(nn.Module):
    """Keys averaged over the batch by a wrong axis."""

    def __init__(self, dim=32):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x):
        k = self.k(x) - self.k(x).mean(0, keepdim=True)
        return self.o((self.q(x) @ k.transpose(1, 2) / 32**0.5).softmax(-1) @ self.v(x))


class Squeezed(nn.Module):
    """squeeze() takes the batch of one with it."""

    def __init__(self, d_model=32):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        s = self.q(x) @ self.k(x).transpose(1, 2) / math.sqrt(x.shape[-1])
        return self.o(s.softmax(-1) @ self.v(x)).squeeze()


CASES = [
    Case("WindowTooWide", "attention", "window.off-by-one"),
    Case("WindowTooNarrow", "attention", "window.off-by-one"),
    Case("RowsMixed", "attention", "batch.mixing"),
    Case("RowsSummed", "attention", "batch.mixing"),
    Case("Squeezed", "attention", "shape.squeezed"),
]
