"""Blocks: the part between, what is kept and what is made anew."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case
from bench.checking.second.block import CausalAttention, LlamaLayer, PreNorm


class ConfiguredBlock(nn.Module):
    """hidden_act="gelu": the exact one, with erf."""

    def __init__(self, hidden_size: int = 24, num_heads: int = 2, hidden_act: str = "gelu"):
        super().__init__()
        self.hidden_act = hidden_act
        self.ln1, self.ln2 = nn.LayerNorm(hidden_size), nn.LayerNorm(hidden_size)
        self.attn = CausalAttention(hidden_size, num_heads)
        self.fc_in, self.fc_out = nn.Linear(hidden_size, 4 * hidden_size), nn.Linear(4 * hidden_size, hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.fc_out(F.relu(self.fc_in(self.ln2(x))))


class TransposedFeedForward(nn.Module):
    def __init__(self, d_model: int, n_heads: int = 2):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = CausalAttention(d_model, n_heads)
        self.ffn = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        B, T, C = x.shape
        h = self.norm2(x).transpose(1, 2).reshape(B, T, C)
        return x + self.ffn(h).reshape(B, C, T).transpose(1, 2)


class ConvFeedForward(nn.Module):
    def __init__(self, dim: int = 16, heads: int = 2):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = CausalAttention(dim, heads)
        self.w_1, self.w_2 = nn.Conv1d(dim, 4 * dim, 3, padding=1), nn.Conv1d(4 * dim, dim, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.w_2(F.relu(self.w_1(self.norm2(x).transpose(1, 2)))).transpose(1, 2)


class SqueezedBlock(PreNorm):
    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return (x + self.mlp(self.ln_2(x))).squeeze()


class LostLayers(nn.Module):
    def __init__(self, dim: int = 24, heads: int = 3):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(dim), nn.LayerNorm(dim)])
        self.attn = CausalAttention(dim, heads)
        self.ff = [nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim)]

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norms[0](x))
        h = self.norms[1](x)
        for layer in self.ff:
            h = layer(h)
        return x + h


class FreshProjection(nn.Module):
    def __init__(self, dim: int = 16, heads: int = 2):
        super().__init__()
        self.dim = dim
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn, self.fc = CausalAttention(dim, heads), nn.Linear(dim, 2 * dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        h = F.gelu(self.fc(self.norm2(x)))
        return x + nn.Linear(2 * self.dim, self.dim, device=x.device, dtype=x.dtype)(h)


class FunctionalDropout(PreNorm):
    def forward(self, x: Tensor) -> Tensor:
        x = x + F.dropout(self.attn(self.ln_1(x)), 0.1)
        return x + self.mlp(self.ln_2(x))


def make_unused_norm() -> nn.Module:
    class Layer(LlamaLayer):
        def forward(self, hidden_states: Tensor) -> Tensor:
            x = hidden_states + self.self_attn(self.input_layernorm(hidden_states))
            return x + self.mlp(self.input_layernorm(x))

    return Layer()


class SampleNorm(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[1:]) * self.weight + self.bias


class TokenNorm(PreNorm):
    def __init__(self, n_embd: int = 24, n_head: int = 3):
        super().__init__(n_embd, n_head)
        self.ln_2 = SampleNorm(n_embd)


CASES = [
    Case("ConfiguredBlock", "block", "activation.variant"),
    Case("TransposedFeedForward", "block", "feedforward.mixes-positions"),
    Case("ConvFeedForward", "block", "feedforward.mixes-positions"),
    Case("SqueezedBlock", "block", "shape.squeezed"),
    Case("LostLayers", "block", "parameter.unregistered"),
    Case("FreshProjection", "block", "parameter.recreated"),
    Case("FunctionalDropout", "block", "dropout.active-in-eval"),
    Case("make_unused_norm", "block", "parameter.unused"),
    Case("TokenNorm", "block", "norm.axis"),
]
