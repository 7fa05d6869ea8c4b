"""Attention with a fault in its formula, in many styles: scale, softmax, heads, projections."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case


class Single(nn.Module):
    """One head, no scale."""

    def __init__(self, n_embd=32, head_size=8):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
        wei = F.softmax(q @ k.transpose(-2, -1), dim=-1)
        return wei @ v


class UnscaledHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([Single() for _ in range(4)])
        self.proj = nn.Linear(32, 32)

    def forward(self, x):
        return self.proj(torch.cat([h(x) for h in self.heads], dim=-1))


class Fused(nn.Module):
    """nanoGPT's layout."""

    def __init__(self, D=32, H=4):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.n_head, self.n_embd = H, D
        self.attn_dropout = nn.Dropout(0.1)

    def split(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        return (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))

    def merge(self, y):
        B, H, T, d = y.shape
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, H * d))


class UnscaledFused(Fused):
    def forward(self, x):
        q, k, v = self.split(x)
        return self.merge(self.attn_dropout(torch.softmax(q @ k.transpose(-2, -1), -1)) @ v)


class WideScaled(Fused):
    def forward(self, x):
        q, k, v = self.split(x)
        att = (q @ k.transpose(-2, -1)) / math.sqrt(self.n_embd)
        return self.merge(F.softmax(att, dim=-1) @ v)


class WideScaledEinsum(nn.Module):
    def __init__(self, dim=48, heads=6, dim_head=8):
        super().__init__()
        self.heads, self.scale = heads, dim**-0.5
        self.to_q = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_kv = nn.Linear(dim, heads * dim_head * 2, bias=False)
        self.to_out = nn.Sequential(nn.Linear(heads * dim_head, dim), nn.Dropout(0.0))

    def forward(self, x):
        b, n, _ = x.shape
        q, (k, v) = self.to_q(x), self.to_kv(x).chunk(2, dim=-1)
        q, k, v = (t.reshape(b, n, self.heads, -1).permute(0, 2, 1, 3) for t in (q, k, v))
        sim = torch.einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        out = torch.einsum("b h i j, b h j d -> b h i d", sim.softmax(dim=-1), v)
        return self.to_out(out.permute(0, 2, 1, 3).reshape(b, n, -1))


class LengthScaled(Fused):
    def forward(self, x):
        q, k, v = self.split(x)
        att = torch.matmul(q, k.mT) / q.size(-2) ** 0.5
        return self.merge(att.softmax(-1) @ v)


class LengthScaledFunctional(nn.Module):
    def __init__(self, D=24, H=3):
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Parameter(torch.randn(D, D) / D**0.5) for _ in range(4))
        self.H = H

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = ((x @ w).view(B, T, self.H, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        s = q.matmul(k.transpose(2, 3)).div(math.sqrt(k.shape[2]))
        return torch.softmax(s, -1).matmul(v).transpose(1, 2).reshape(B, T, D) @ self.wo


class Multiplied(Fused):
    def forward(self, x):
        q, k, v = self.split(x)
        att = (q @ k.transpose(-2, -1)) * math.sqrt(q.shape[-1])
        return self.merge(F.softmax(att, dim=-1) @ v)


class MultipliedBefore(LengthScaledFunctional):
    def forward(self, x):
        B, T, D = x.shape
        q, k, v = ((x @ w).view(B, T, self.H, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        q = q * (D // self.H) ** 0.5
        return torch.softmax(q @ k.transpose(2, 3), -1).matmul(v).transpose(1, 2).reshape(B, T, D) @ self.wo


class TwiceKernel(Fused):
    def forward(self, x):
        q, k, v = self.split(x)
        return self.merge(F.scaled_dot_product_attention(q * q.shape[-1] ** -0.5, k, v))


class TwiceManual(Fused):
    def forward(self, x):
        q, k, v = self.split(x)
        q = q / math.sqrt(q.size(-1))
        att = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        return self.merge(att.softmax(-1) @ v)


class OverQueries(Fused):
    def forward(self, x):
        q, k, v = self.split(x)
        att = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        return self.merge(F.softmax(att, dim=-2) @ v)


class OverHeads(WideScaledEinsum):
    def forward(self, x):
        b, n, _ = x.shape
        q, (k, v) = self.to_q(x), self.to_kv(x).chunk(2, dim=-1)
        q, k, v = (t.reshape(b, n, self.heads, -1) for t in (q, k, v))
        sim = torch.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5
        out = torch.einsum("bhij,bjhd->bihd", sim.softmax(dim=1), v)
        return self.to_out(out.reshape(b, n, -1))


class OverQueriesByHand(Fused):
    def forward(self, x):
        q, k, v = self.split(x)
        att = torch.exp(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)))
        return self.merge((att / att.sum(2, keepdim=True)) @ v)


class SplitByView(nn.Module):
    def __init__(self, d_model=32, num_heads=4):
        super().__init__()
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.num_heads, self.d_k = num_heads, d_model // num_heads

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (w(x).view(B, self.num_heads, T, self.d_k) for w in (self.W_q, self.W_k, self.W_v))
        w = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d_k), dim=-1)
        return self.W_o((w @ v).transpose(1, 2).reshape(B, T, D))


class SplitFused(Fused):
    def forward(self, x):
        B, T, _C = x.shape
        q, k, v = (t.reshape(B * self.n_head, T, -1) for t in self.c_attn(x).chunk(3, -1))
        att = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(-1))
        y = torch.bmm(att.softmax(-1), v).view(B, self.n_head, T, -1)
        return self.merge(y)


class MergedByView(SplitByView):
    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (w(x).view(B, T, self.num_heads, self.d_k).transpose(1, 2) for w in (self.W_q, self.W_k, self.W_v))
        w = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d_k), dim=-1)
        return self.W_o((w @ v).contiguous().view(B, T, D))


class MergedKernel(Fused):
    def forward(self, x):
        q, k, v = self.split(x)
        return self.c_proj(F.scaled_dot_product_attention(q, k, v).reshape(x.shape))


class KeyReshaped(SplitByView):
    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (w(x).view(B, T, self.num_heads, self.d_k).transpose(1, 2) for w in (self.W_q, self.W_k, self.W_v))
        scores = torch.matmul(q, k.reshape(B, self.num_heads, self.d_k, T)) / self.d_k**0.5
        return self.W_o((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D))


class KeyReshapedSingle(nn.Module):
    def __init__(self, D=16):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = self.q(x), self.k(x), self.v(x)
        return (torch.bmm(q, k.contiguous().view(B, D, T)) / math.sqrt(D)).softmax(-1) @ v


CASES = [
    Case("UnscaledHeads", "attention", "scale.missing"),
    Case("UnscaledFused", "attention", "scale.missing"),
    Case("WideScaled", "attention", "scale.model-width"),
    Case("WideScaledEinsum", "attention", "scale.model-width"),
    Case("LengthScaled", "attention", "scale.length"),
    Case("LengthScaledFunctional", "attention", "scale.length"),
    Case("Multiplied", "attention", "scale.inverted"),
    Case("MultipliedBefore", "attention", "scale.inverted"),
    Case("TwiceKernel", "attention", "scale.twice"),
    Case("TwiceManual", "attention", "scale.twice"),
    Case("OverQueries", "attention", "softmax.axis"),
    Case("OverHeads", "attention", "softmax.axis"),
    Case("OverQueriesByHand", "attention", "softmax.axis"),
    Case("SplitByView", "attention", "heads.split-without-transpose"),
    Case("SplitFused", "attention", "heads.split-without-transpose"),
    Case("MergedByView", "attention", "heads.merge-without-transpose"),
    Case("MergedKernel", "attention", "heads.merge-without-transpose"),
    Case("KeyReshaped", "attention", "scores.key-reshaped"),
    Case("KeyReshapedSingle", "attention", "scores.key-reshaped"),
]
