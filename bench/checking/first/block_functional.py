"""Blocks in other styles: parameters and functions, rotary and gates, memories, lists of heads; with a mistake or right."""

import math
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional as F

from bench.checking.case import Case


class Plain(nn.Module):
    """Parameters alone; q, k, v and the feed-forward written out."""

    def __init__(self, d_model=32, heads=4):
        super().__init__()
        self.h = heads
        self.w = nn.ParameterDict({n: nn.Parameter(torch.randn(d_model, d_model) * 0.1) for n in ("q", "k", "v", "o")})
        self.w1, self.w2 = nn.Parameter(torch.randn(d_model, 64) * 0.1), nn.Parameter(torch.randn(64, d_model) * 0.1)
        self.b1, self.g1, self.g2 = (nn.Parameter(torch.zeros(64)), *(nn.Parameter(torch.ones(d_model)) for _ in "ab"))

    def attend(self, x):
        B, T, D = x.shape
        q, k, v = ((x @ self.w[n]).view(B, T, self.h, -1).permute(0, 2, 1, 3) for n in "qkv")
        a = torch.softmax(torch.einsum("bhtd,bhsd->bhts", q, k) / math.sqrt(D // self.h), dim=-1)
        return torch.einsum("bhts,bhsd->bthd", a, v).reshape(B, T, D) @ self.w["o"]

    def feed(self, x):
        return F.silu(x @ self.w1 + self.b1) @ self.w2

    def norm(self, x, gain):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * gain

    def forward(self, x):
        x = x + self.attend(self.norm(x, self.g1))
        return x + self.feed(self.norm(x, self.g2))


class PlainPost(Plain):
    def forward(self, x):
        x = self.norm(x + self.attend(x), self.g1)
        return self.norm(x + self.feed(x), self.g2)


class PlainStale(Plain):
    def forward(self, x):
        u = x + self.attend(self.norm(x, self.g1))
        return self.feed(self.norm(u, self.g2)) + x


class PlainFromNorm(Plain):
    def forward(self, x):
        h = self.norm(x, self.g1)
        u = h + self.attend(h)
        return u + self.feed(self.norm(u, self.g2))


class PlainDoubled(Plain):
    def forward(self, x):
        x = torch.add(x, self.attend(self.norm(x, self.g1)) + x)
        return x + self.feed(self.norm(x, self.g2))


class PlainUnscaled(Plain):
    def forward(self, x):
        x = x + self.attend(self.norm(x, self.g1)) * 0.1
        return x + self.feed(self.norm(x, self.g2))


class PlainNoActivation(Plain):
    def feed(self, x):
        return (x @ self.w1 + self.b1) @ self.w2


class PlainMissing(Plain):
    def forward(self, x):
        x = self.attend(self.norm(x, self.g1))
        return self.feed(self.norm(x, self.g2))


class OverTokens(Plain):
    def norm(self, x, gain):
        return x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-6) * gain


class TokenNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))

    def forward(self, x):
        mean, var = x.mean((1, 2), keepdim=True), x.var((1, 2), keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(var + 1e-5) * self.gain + self.bias


class WithTokenNorm(nn.Module):
    def __init__(self, d_model=32, nhead=4, norm=TokenNorm):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, nhead, batch_first=True)
        self.norm1, self.norm2 = norm(d_model), norm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, 96), nn.ReLU(), nn.Linear(96, d_model))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.ff(self.norm2(x))


class AcrossPositions(WithTokenNorm):
    def __init__(self, d_model=32, nhead=4):
        super().__init__(d_model, nhead, nn.LayerNorm)

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attention(h, h, h)[0]
        h = self.norm2(x)
        return x + self.ff(h + h.mean(1, keepdim=True))


class FlattenedWrong(WithTokenNorm):
    def __init__(self, d_model=32, nhead=4):
        super().__init__(d_model, nhead, nn.LayerNorm)

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attention(h, h, h)[0]
        B, T, D = x.shape
        h = self.norm2(x).transpose(1, 2).reshape(B, T, D)
        return x + self.ff(h).reshape(B, D, T).transpose(1, 2)


class LlamaRight(nn.Module):
    """RMSNorm, rotary, grouped heads, SwiGLU."""

    def __init__(self, config=None):
        super().__init__()
        config = config or SimpleNamespace(hidden_size=32, num_attention_heads=4, num_key_value_heads=2)
        d = config.hidden_size
        self.h, self.k = config.num_attention_heads, config.num_key_value_heads
        self.q_proj, self.o_proj = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(d, d * self.k // self.h, bias=False) for _ in "kv")
        self.gate_proj, self.up_proj, self.down_proj = nn.Linear(d, 88), nn.Linear(d, 88), nn.Linear(88, d)
        self.input_layernorm, self.post_attention_layernorm = nn.RMSNorm(d), nn.RMSNorm(d)

    def rotate(self, x):
        half = x.shape[-1] // 2
        angle = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * 1e4 ** (-torch.arange(half, dtype=x.dtype) / half)
        cos, sin = torch.cat([angle, angle], -1).cos(), torch.cat([angle, angle], -1).sin()
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    def attend(self, x):
        B, T, D = x.shape
        q = self.rotate(self.q_proj(x).view(B, T, self.h, -1).transpose(1, 2))
        k = self.rotate(self.k_proj(x).view(B, T, self.k, -1).transpose(1, 2)).repeat_interleave(self.h // self.k, 1)
        v = self.v_proj(x).view(B, T, self.k, -1).transpose(1, 2).repeat_interleave(self.h // self.k, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(B, T, D))

    def forward(self, hidden_states):
        residual = hidden_states
        hidden_states = residual + self.attend(self.input_layernorm(hidden_states))
        residual = hidden_states
        h = self.post_attention_layernorm(hidden_states)
        return (residual + self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h)),)


class SwiGluWithGelu(LlamaRight):
    """A LLaMA block with SwiGLU."""

    def forward(self, hidden_states):
        x = hidden_states + self.attend(self.input_layernorm(hidden_states))
        h = self.post_attention_layernorm(x)
        return x + self.down_proj(F.gelu(self.gate_proj(h)) * self.up_proj(h))


class Cross(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.self_attn, self.cross_attn = (nn.MultiheadAttention(dim, heads, batch_first=True) for _ in "ab")
        self.n1, self.n2, self.n3 = (nn.LayerNorm(dim) for _ in range(3))
        self.ff = nn.Sequential(nn.Linear(dim, 80), nn.GELU(), nn.Linear(80, dim))


class CrossRight(Cross):
    def forward(self, x, memory, memory_mask=None):
        h = self.n1(x)
        x = x + self.self_attn(h, h, h)[0]
        drop = None if memory_mask is None else ~memory_mask.bool()
        x = x + self.cross_attn(self.n2(x), memory, memory, key_padding_mask=drop)[0]
        return x + self.ff(self.n3(x))


class CrossStale(Cross):
    def forward(self, x, memory, memory_mask=None):
        h = self.n1(x)
        u = x + self.self_attn(h, h, h)[0]
        drop = None if memory_mask is None else ~memory_mask.bool()
        v = x + self.cross_attn(self.n2(u), memory, memory, key_padding_mask=drop)[0]
        return v + self.ff(self.n3(v))


class CrossMissing(Cross):
    def forward(self, x, memory, memory_mask=None):
        h = self.n1(x)
        x = x + self.self_attn(h, h, h)[0]
        drop = None if memory_mask is None else ~memory_mask.bool()
        x = self.cross_attn(self.n2(x), memory, memory, key_padding_mask=drop)[0]
        return x + self.ff(self.n3(x))


class InPlaceRight(WithTokenNorm):
    def __init__(self, d_model=32, nhead=4):
        super().__init__(d_model, nhead, nn.LayerNorm)

    def forward(self, x):
        out = x.clone()
        h = self.norm1(x)
        out += self.attention(h, h, h)[0]
        out += self.ff(self.norm2(out))
        return out


class SequenceFirstRight(nn.TransformerEncoderLayer):
    def __init__(self):
        super().__init__(32, 4, 64, dropout=0.1, batch_first=False)


class TorchPreRight(nn.TransformerEncoderLayer):
    def __init__(self):
        super().__init__(32, 4, 64, dropout=0.1, activation="gelu", batch_first=True, norm_first=True)


class DecoderLayerRight(nn.TransformerDecoderLayer):
    def __init__(self):
        super().__init__(32, 4, 64, batch_first=True)


FAULTS = {
    "residual.stale": ("PlainStale", "CrossStale"),
    "residual.from-norm": ("PlainFromNorm",),
    "residual.doubled": ("PlainDoubled",),
    "residual.scale": ("PlainUnscaled",),
    "residual.missing": ("PlainMissing", "CrossMissing"),
    "activation.missing": ("PlainNoActivation",),
    "activation.variant": ("SwiGluWithGelu",),
    "norm.axis": ("OverTokens", "WithTokenNorm"),
    "feedforward.mixes-positions": ("AcrossPositions", "FlattenedWrong"),
}
RIGHT = (
    "Plain", "PlainPost", "LlamaRight", "CrossRight", "InPlaceRight", "SequenceFirstRight", "TorchPreRight", "DecoderLayerRight",
)  # fmt: skip
CASES = [Case(name, "block", fault) for fault, names in FAULTS.items() for name in names]
CASES += [Case(name, "block") for name in RIGHT]
