"""Weights as they are found: zero, tied, frozen, not numbers, never used."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case
from bench.checking.second.parts import Attention, Block, causal


class Decoder(nn.Module):
    def __init__(self, vocab_size: int = 32, dim: int = 24, num_heads: int = 3, num_layers: int = 2):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, dim), nn.Embedding(48, dim)
        self.blocks = nn.ModuleList(Block(dim, num_heads) for _ in range(num_layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1), device=ids.device))
        keep = causal(ids.size(1), ids.size(1), ids.device)
        for block in self.blocks:
            x = block(x, keep)
        return self.head(self.norm(x))


class DecoderAttention(Attention):
    def __init__(self, dim: int = 24, num_heads: int = 3):
        super().__init__(dim, num_heads)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        return super().forward(x, causal(x.size(1), x.size(1), x.device))


def zero_values() -> nn.Module:
    module = DecoderAttention()
    with torch.no_grad():
        module.qkv.weight.chunk(3)[2].zero_()
        module.qkv.bias.chunk(3)[2].zero_()
    return module


def zero_up_projection() -> nn.Module:
    module = Block(16, 2)
    nn.init.zeros_(module.mlp.fc.weight)
    nn.init.zeros_(module.mlp.fc.bias)
    return module


class ReLUBlock(nn.Module):
    def __init__(self, dim: int = 16, num_heads: int = 2):
        super().__init__()
        self.norm1, self.norm2, self.attn = nn.LayerNorm(dim), nn.LayerNorm(dim), DecoderAttention(dim, num_heads)
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.fc2(F.relu(self.fc1(self.norm2(x))))


def dead_units() -> nn.Module:
    module = ReLUBlock()
    with torch.no_grad():
        module.fc1.bias[::2] = -100.0
    return module


def cut_units() -> nn.Module:
    module = ReLUBlock(24, 3)
    with torch.no_grad():
        module.fc2.weight[:, :20] = 0.0
    return module


def equal_heads() -> nn.Module:
    """Every head begins with the weights of the first."""
    module = DecoderAttention(24, 3)
    with torch.no_grad():
        for part in (*module.qkv.weight.chunk(3), *module.qkv.bias.chunk(3)):
            part.copy_(torch.cat([part[:8]] * 3))
    return module


class RepeatedHeads(nn.Module):
    def __init__(self, dim: int = 16, num_heads: int = 4):
        super().__init__()
        self.num_heads = num_heads
        head = torch.randn(dim // num_heads, dim) * dim**-0.5
        self.wq = nn.Parameter(head.repeat(num_heads, 1))
        self.wk = nn.Parameter(head.flip(0).repeat(num_heads, 1))
        self.wv = nn.Parameter(-head.repeat(num_heads, 1))
        self.wo = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            F.linear(x, w).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for w in (self.wq, self.wk, self.wv)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).flatten(2))


def empty_rows() -> nn.Module:
    """A vocabulary made longer for new tokens."""
    module = Decoder()
    with torch.no_grad():
        module.tokens.weight[20:] = 0.0
    return module


def frozen_block() -> nn.Module:
    module = Decoder(num_layers=3)
    module.blocks[1].requires_grad_(False)
    return module


class DetachedKeys(DecoderAttention):
    def split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().split(x)
        return q, k.detach(), v


class SteppedAttention(nn.Module):
    def __init__(self, dim: int = 16, num_heads: int = 2):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            q = self.q_proj(x)
        q, k, v = (t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in (q, self.k_proj(x), self.v_proj(x)))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))


def infinite_gain() -> nn.Module:
    module = Decoder()
    with torch.no_grad():
        module.head.bias.copy_(torch.arange(module.head.out_features).float().log())
    return module


def broken_row() -> nn.Module:
    module = DecoderAttention(16, 2)
    with torch.no_grad():
        module.proj.weight[3, 5] = float("nan")
    return module


class ListedHeads(nn.Module):
    def __init__(self, dim: int = 16, num_heads: int = 2):
        super().__init__()
        self.queries = [nn.Linear(dim, dim // num_heads) for _ in range(num_heads)]
        self.keys = [nn.Linear(dim, dim // num_heads) for _ in range(num_heads)]
        self.values = [nn.Linear(dim, dim // num_heads) for _ in range(num_heads)]
        self.out = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        heads = [
            F.scaled_dot_product_attention(q(x), k(x), v(x), is_causal=True)
            for q, k, v in zip(self.queries, self.keys, self.values, strict=True)
        ]
        return self.out(torch.cat(heads, dim=-1))


class MadeInForward(nn.Module):
    def __init__(self, embed_dim: int = 16, num_heads: int = 2):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        D = x.size(-1)
        q, k, v = (t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return nn.Linear(D, D)(y)


class FixedDevice(DecoderAttention):
    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        T = x.size(1)
        mask = torch.full((T, T), float("-inf"), device=torch.device("cpu")).triu(1)
        q, k, v = self.split(x)
        return self.merge((q @ k.mT / q.size(-1) ** 0.5 + mask).softmax(-1) @ v)


def fresh_zero_output() -> nn.Module:
    """The projections into the residual start at zero."""
    module = Block(24, 3)
    for layer in (module.attn.proj, module.mlp.proj):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    return module


def zero_biases() -> nn.Module:
    module = Decoder()
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.zeros_(layer.bias)
    return module


def padding_row() -> nn.Module:
    """The row of the padding token is zero, as nn.Embedding(padding_idx=...) has it."""
    module = Decoder()
    module.tokens = nn.Embedding(32, 24, padding_idx=0)
    return module


CASES = [
    Case("zero_values", "attention", "weights.zero"),
    Case("zero_up_projection", "block", "weights.zero", ("weights.dead-units",)),
    Case("dead_units", "block", "weights.dead-units"),
    Case("cut_units", "block", "weights.dead-units"),
    Case("equal_heads", "attention", "weights.heads-tied"),
    Case("RepeatedHeads", "attention", "weights.heads-tied"),
    Case("empty_rows", "lm", "weights.rows-zero"),
    Case("frozen_block", "lm", "weights.frozen"),
    Case("DetachedKeys", "attention", "parameter.unused", ("weights.frozen",)),
    Case("SteppedAttention", "attention", "weights.frozen", ("parameter.unused",)),
    Case("infinite_gain", "lm", "weights.non-finite"),
    Case("broken_row", "attention", "weights.non-finite"),
    Case("ListedHeads", "attention", "parameter.unregistered"),
    Case("MadeInForward", "attention", "parameter.recreated"),
    Case("FixedDevice", "attention", "device.hard-coded"),
    Case("fresh_zero_output", "block"),
    Case("zero_biases", "lm"),
    Case("padding_row", "lm"),
    Case("Decoder", "lm"),
]
