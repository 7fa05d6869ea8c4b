"""Blocks without a mistake, in all the orders that norms come in."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


class SelfAttention(nn.Module):
    def __init__(self, dim: int, num_heads: int, causal: bool = True, dropout: float = 0.0):
        super().__init__()
        self.num_heads, self.causal, self.dropout = num_heads, causal, dropout
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def forward(self, x: Tensor, memory: Tensor | None = None, memory_mask: Tensor | None = None) -> Tensor:
        source = x if memory is None else memory
        q, k, v = (
            t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for t in (self.wq(x), self.wk(source), self.wv(source))
        )
        keep = None if memory_mask is None else memory_mask.bool()[:, None, None]
        p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, keep, dropout_p=p, is_causal=self.causal)
        return self.wo(y.transpose(1, 2).flatten(2))


def feed_forward(dim: int, act: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(dim, 4 * dim, bias=False), act, nn.Linear(4 * dim, dim, bias=False))


class SquaredReLU(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x).square()


class ParallelBlock(nn.Module):
    """Attention and feed-forward side by side from one norm."""

    def __init__(self, dim: int = 32, num_heads: int = 4):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attn, self.ff = SelfAttention(dim, num_heads), feed_forward(dim, nn.GELU())

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(x)
        return x + self.attn(h) + self.ff(h)


class PeriNormBlock(nn.Module):
    """A norm before and after each part."""

    def __init__(self, hidden_size: int, num_heads: int):
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(hidden_size, eps=1e-6) for _ in range(4))
        self.attn, self.mlp = SelfAttention(hidden_size, num_heads), feed_forward(hidden_size, nn.GELU("tanh"))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.norms[1](self.attn(self.norms[0](x)))
        return x + self.norms[3](self.mlp(self.norms[2](x)))


class ReorderedNormBlock(nn.Module):
    """The norm after each part, inside the residual."""

    def __init__(self, d_model: int = 24, n_heads: int = 3):
        super().__init__()
        self.attn_norm, self.ff_norm = nn.RMSNorm(d_model, eps=1e-6), nn.RMSNorm(d_model, eps=1e-6)
        self.attention, self.feed_forward = SelfAttention(d_model, n_heads), feed_forward(d_model, nn.SiLU())

    def forward(self, x: Tensor) -> Tensor:
        h = x + self.attn_norm(self.attention(x))
        return h + self.ff_norm(self.feed_forward(h))


class SquaredBlock(nn.Module):
    def __init__(self, n_embd: int = 24, n_head: int = 2, dropout: float = 0.1):
        super().__init__()
        self.attn = SelfAttention(n_embd, n_head, dropout=dropout)
        self.mlp = feed_forward(n_embd, SquaredReLU())
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.attn(F.rms_norm(x, (x.size(-1),))))
        return x + self.drop(self.mlp(F.rms_norm(x, (x.size(-1),))))


class GatedBlock(nn.Module):
    def __init__(self, dim: int = 16, heads: int = 2):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim, bias=False), nn.LayerNorm(dim, bias=False)
        self.attn = SelfAttention(dim, heads, causal=False)
        self.w12, self.w3 = nn.Linear(dim, 4 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        a, b = self.w12(self.norm2(x)).chunk(2, dim=-1)
        return x + self.w3(F.gelu(a) * b)


class DecoderBlock(nn.Module):
    """Post-norm decoder block; `memory_mask` (B, S) is True at what may be read."""

    def __init__(self, d_model: int = 24, num_heads: int = 3):
        super().__init__()
        self.self_attn = SelfAttention(d_model, num_heads)
        self.cross_attn = SelfAttention(d_model, num_heads, causal=False)
        self.ff = feed_forward(d_model, nn.ReLU())
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3))

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        x = self.norms[0](x + self.self_attn(x))
        x = self.norms[1](x + self.cross_attn(x, memory, memory_mask))
        return self.norms[2](x + self.ff(x))


class DecoderBlockUnmasked(DecoderBlock):
    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        x = self.norms[0](x + self.self_attn(x))
        x = self.norms[1](x + self.cross_attn(x, memory))
        return self.norms[2](x + self.ff(x))


class ScaledResidual(nn.Module):
    """DeepNorm: the skip is multiplied by alpha, stated and the same for both parts."""

    def __init__(self, d_model: int, num_heads: int, num_layers: int = 6):
        super().__init__()
        self.alpha = (2 * num_layers) ** 0.25
        self.attn, self.ff = SelfAttention(d_model, num_heads), feed_forward(d_model, nn.ReLU())
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x: Tensor) -> Tensor:
        x = self.ln1(self.alpha * x + self.attn(x))
        return self.ln2(self.alpha * x + self.ff(x))


class ZeroInitBlock(nn.Module):
    """Projections into the residual start at zero, so that a fresh block is the identity."""

    def __init__(self, dim: int = 32, heads: int = 4):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn, self.ff = SelfAttention(dim, heads), feed_forward(dim, nn.GELU())
        nn.init.zeros_(self.attn.wo.weight)
        nn.init.zeros_(self.ff[2].weight)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.ff(self.norm2(x))


class LayerScaleBlock(nn.Module):
    def __init__(self, dim: int = 24, num_heads: int = 4, init_values: float = 0.1):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        self.attn, self.mlp = SelfAttention(dim, num_heads, causal=False), feed_forward(dim, nn.GELU())
        self.gamma_1 = nn.Parameter(init_values * torch.ones(dim))
        self.gamma_2 = nn.Parameter(init_values * torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.gamma_1 * self.attn(self.norm1(x))
        return x + self.gamma_2 * self.mlp(self.norm2(x))


CASES = [
    Case("ParallelBlock", "block"),
    Case("PeriNormBlock", "block"),
    Case("ReorderedNormBlock", "block"),
    Case("SquaredBlock", "block"),
    Case("GatedBlock", "block", guess=True),
    Case("DecoderBlock", "block"),
    Case("DecoderBlockUnmasked", "block", "mask.ignored"),
    Case("ScaledResidual", "block"),
    Case("ZeroInitBlock", "block"),
    Case("LayerScaleBlock", "block"),
]
