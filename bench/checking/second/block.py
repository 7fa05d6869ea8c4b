"""Blocks: residuals, norms around them, the part between."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


class CausalAttention(nn.Module):
    def __init__(self, dim: int, heads: int, causal: bool = True):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.proj = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        return self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, dim: int, dropout: float = 0.0):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(F.gelu(self.c_fc(x))))


class PreNorm(nn.Module):
    """The parts of a pre-norm block, and how they belong together."""

    def __init__(self, n_embd: int = 24, n_head: int = 3, dropout: float = 0.0):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn, self.mlp = CausalAttention(n_embd, n_head), MLP(n_embd, dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NoSkip(PreNorm):
    def forward(self, x: Tensor) -> Tensor:
        x = self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class DoubledSkip(PreNorm):
    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        x += x + self.mlp(self.ln_2(x))
        return x


class NormedSkip(PreNorm):
    def forward(self, x: Tensor) -> Tensor:
        x = self.ln_1(x)
        x = x + self.attn(x)
        return x + self.mlp(self.ln_2(x))


class HalvedSkip(PreNorm):
    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return (x + self.mlp(self.ln_2(x))) * 0.5**0.5


class StaleSkip(PreNorm):
    def forward(self, x: Tensor) -> Tensor:
        u = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(u))


class FeedForward(nn.Module):
    def __init__(self, d_model: int = 16, num_heads: int = 2):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = CausalAttention(d_model, num_heads, causal=False)
        self.linear1, self.linear2 = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.linear2(self.linear1(self.norm2(x)))


class PostNormBlock(nn.Module):
    """Attention is all you need: norm after each sum."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.1):
        super().__init__()
        self.self_attn = CausalAttention(d_model, num_heads, causal=False)
        self.ff = nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.ReLU(), nn.Linear(2 * d_model, d_model))
        self.norm1, self.norm2, self.drop = nn.LayerNorm(d_model), nn.LayerNorm(d_model), nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.drop(self.self_attn(x)))
        return self.norm2(x + self.drop(self.ff(x)))


class PostNormNoSkip(PostNormBlock):
    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.drop(self.self_attn(x)))
        return self.norm2(self.drop(self.ff(x)))


class PostNormTwice(PostNormBlock):
    def forward(self, x: Tensor) -> Tensor:
        out = self.drop(self.self_attn(x)) + x
        out = self.norm1(out + x)
        return self.norm2(out + self.drop(self.ff(out)))


class PostNormStale(PostNormBlock):
    def forward(self, x: Tensor) -> Tensor:
        attended = self.norm1(x + self.drop(self.self_attn(x)))
        return self.norm2(x + self.drop(self.ff(attended)))


class HalfAndHalf(PostNormBlock):
    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.self_attn(self.norm1(x)))
        return self.norm2(x + self.drop(self.ff(x)))


class NormFirst(nn.Module):
    """norm_first=True: each norm comes before its sub-layer."""

    def __init__(self, dim: int = 24, heads: int = 4, norm_first: bool = True):
        super().__init__()
        self.norm_first = norm_first
        self.attn, self.ff = CausalAttention(dim, heads), MLP(dim)
        self.norm_a, self.norm_f = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm_a(x + self.attn(x))
        return self.norm_f(x + self.ff(x))


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        x32 = x.float()
        return (x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight


class SwiGLU(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(dim, 2 * dim, bias=False), nn.Linear(dim, 2 * dim, bias=False)
        self.down_proj = nn.Linear(2 * dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaLayer(nn.Module):
    def __init__(self, hidden_size: int = 32, num_heads: int = 4):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(hidden_size), RMSNorm(hidden_size)
        self.self_attn, self.mlp = CausalAttention(hidden_size, num_heads), SwiGLU(hidden_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = residual + self.self_attn(self.input_layernorm(hidden_states))
        residual = hidden_states
        return residual + self.mlp(self.post_attention_layernorm(hidden_states))


class LlamaNormedSkip(LlamaLayer):
    def forward(self, hidden_states: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = residual + self.self_attn(self.input_layernorm(hidden_states))
        hidden_states = self.post_attention_layernorm(hidden_states)
        residual = hidden_states
        return residual + self.mlp(hidden_states)


class LlamaUngated(LlamaLayer):
    def forward(self, hidden_states: Tensor) -> Tensor:
        x = hidden_states + self.self_attn(self.input_layernorm(hidden_states))
        y = self.post_attention_layernorm(x)
        return x + self.mlp.down_proj(self.mlp.up_proj(y) + self.mlp.gate_proj(y))


class LlamaScaled(LlamaLayer):
    def forward(self, hidden_states: Tensor) -> Tensor:
        x = hidden_states + self.self_attn(self.input_layernorm(hidden_states))
        return 0.5 * x + self.mlp(self.post_attention_layernorm(x))


CASES = [
    Case("NoSkip", "block", "residual.missing"),
    Case("PostNormNoSkip", "block", "residual.missing"),
    Case("DoubledSkip", "block", "residual.doubled", ("residual.scale",)),
    Case("PostNormTwice", "block", "residual.doubled", ("residual.scale",)),
    Case("NormedSkip", "block", "residual.from-norm"),
    Case("LlamaNormedSkip", "block", "residual.from-norm"),
    Case("HalvedSkip", "block", "residual.scale"),
    Case("LlamaScaled", "block", "residual.scale"),
    Case("StaleSkip", "block", "residual.stale"),
    Case("PostNormStale", "block", "residual.stale"),
    Case("FeedForward", "block", "activation.missing", guess=True),
    Case("LlamaUngated", "block", "activation.missing"),
    Case("HalfAndHalf", "block", "norm.placement"),
    Case("NormFirst", "block", "norm.placement"),
    Case("PreNorm", "block"),
    Case("PostNormBlock", "block", guess=True),
    Case("LlamaLayer", "block", guess=True),
]
