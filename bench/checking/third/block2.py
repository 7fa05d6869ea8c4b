"""Blocks with a memory, and blocks around nn.MultiheadAttention."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


class Cross(nn.Module):
    """Queries from x, keys and values from memory; `mask` (B, S) is True at real memory."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.kv, self.o = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        k, v = self.kv(memory).chunk(2, -1)
        keep = None if mask is None else mask[:, None, None, :].bool()
        q, k, v = self.split(self.q(x)), self.split(k), self.split(v)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep, is_causal=is_causal)
        return self.o(y.transpose(1, 2).flatten(2))


class DecoderBlock(nn.Module):
    """Causal self-attention, attention to the memory, feed-forward; `memory_mask` is True at real memory."""

    def __init__(self, d_model: int = 24, num_heads: int = 4, d_ff: int = 48) -> None:
        super().__init__()
        self.self_attn, self.cross_attn = Cross(d_model, num_heads), Cross(d_model, num_heads)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.ln1, self.ln2, self.ln3 = nn.LayerNorm(d_model), nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        h = self.ln1(x)
        x = x + self.self_attn(h, h, is_causal=True)
        x = x + self.cross_attn(self.ln2(x), memory, memory_mask)
        return x + self.ff(self.ln3(x))


class DecoderBlock2(DecoderBlock):
    """Causal self-attention, attention to the memory, feed-forward; `memory_mask` is True at real memory."""

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        h = self.ln1(x)
        x = x + self.self_attn(h, h, is_causal=True)
        x = x + self.cross_attn(self.ln2(x), memory)
        return x + self.ff(self.ln3(x))


class DecoderBlock3(DecoderBlock):
    """Causal self-attention, attention to the memory, feed-forward; `memory_mask` is True at real memory."""

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        h = self.ln1(x)
        x = x + self.self_attn(h, h)
        x = x + self.cross_attn(self.ln2(x), memory, memory_mask)
        return x + self.ff(self.ln3(x))


class DecoderBlock4(DecoderBlock):
    """Norms after the sums; causal; `memory_mask` is True at real memory."""

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        x = self.ln1(x + self.self_attn(x, x, is_causal=True))
        x = self.ln2(x + self.cross_attn(x, memory, memory_mask))
        return self.ln3(x + self.ff(x))


class DecoderBlock5(DecoderBlock):
    """Norms after the sums; causal; `memory_mask` is True at real memory."""

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        a = self.ln1(x + self.self_attn(x, x, is_causal=True))
        b = self.ln2(a + self.cross_attn(a, memory, memory_mask))
        return self.ln3(a + self.ff(b))


class DecoderBlock6(DecoderBlock):
    """Causal self-attention, attention to the memory, feed-forward; `memory_mask` is True at real memory."""

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        h = self.ln1(x)
        x = x + self.self_attn(h, h, is_causal=True)
        mask = None if memory_mask is None else ~memory_mask.bool()
        x = x + self.cross_attn(self.ln2(x), memory, mask)
        return x + self.ff(self.ln3(x))


class EncoderLayer(nn.Module):
    """Post-norm, as the paper has it."""

    def __init__(self, d_model: int, nhead: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=True)
        self.linear1, self.linear2 = nn.Linear(d_model, 2 * d_model), nn.Linear(2 * d_model, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, src: Tensor) -> Tensor:
        src = self.norm1(src + self.dropout(self.self_attn(src, src, src, need_weights=False)[0]))
        return self.norm2(src + self.dropout(self.linear2(F.relu(self.linear1(src)))))


class EncoderLayer2(EncoderLayer):
    def __init__(self, d_model: int, nhead: int, dropout: float = 0.1) -> None:
        super().__init__(d_model, nhead, dropout)
        self.self_attn = nn.MultiheadAttention(d_model, nhead, dropout=dropout)


class EncoderLayer3(EncoderLayer):
    def forward(self, src: Tensor) -> Tensor:
        src = self.norm1(self.dropout(self.self_attn(src, src, src, need_weights=False)[0]))
        return self.norm2(src + self.dropout(self.linear2(F.relu(self.linear1(src)))))


class EncoderLayer4(EncoderLayer):
    def forward(self, src: Tensor) -> Tensor:
        src = self.norm1(src + self.dropout(self.self_attn(src, src, src, need_weights=False)[0]))
        return self.norm2(src + self.dropout(self.linear2(self.linear1(src))))


def torch_layer() -> nn.Module:
    return nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)


def torch_layer2() -> nn.Module:
    return nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0)


def torch_layer3() -> nn.Module:
    layer = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=True)
    with torch.no_grad():
        layer.linear2.weight.mul_(0.5)
    return layer


CASES: list[Case] = [
    Case("DecoderBlock", "block", guess=True),
    Case("DecoderBlock2", "block", "mask.ignored"),
    Case("DecoderBlock3", "block", "causal.future-leak"),
    Case("DecoderBlock4", "block"),
    Case("DecoderBlock5", "block", "residual.stale", guess=True),
    Case("DecoderBlock6", "block", "mask.polarity"),
    Case("EncoderLayer", "block", guess=True),
    Case("EncoderLayer2", "block", "batch.mixing"),
    Case("EncoderLayer3", "block", "residual.missing", guess=True),
    Case("EncoderLayer4", "block", "activation.missing"),
    Case("torch_layer", "block"),
    Case("torch_layer2", "block", "batch.mixing", guess=True),
    Case("torch_layer3", "block"),
]
