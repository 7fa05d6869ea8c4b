"""Encoders: of vectors, and of ids."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case
from bench.checking.second.parts import MLP, Attention, Block, rotate, weigh


class ViTEncoder(nn.Module):
    def __init__(self, dim: int = 24, depth: int = 2, heads: int = 3, num_patches: int = 32):
        super().__init__()
        self.pos_embedding = nn.Parameter(0.2 * torch.randn(1, num_patches, dim))
        self.layers = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pos_embedding[:, : x.size(1)]
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class ViTRepeated(ViTEncoder):
    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x + self.pos_embedding[:, : x.size(1)])
        return self.norm(x)


class ViTShared(ViTEncoder):
    def __init__(self, dim: int = 24, depth: int = 3, heads: int = 3):
        super().__init__(dim, depth, heads)
        self.layers = nn.ModuleList([Block(dim, heads)] * depth)


class ViTForgotten(ViTEncoder):
    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class BertEncoder(nn.Module):
    """`attention_mask` (B, T) is 1 at real tokens."""

    def __init__(self, vocab_size: int = 50, hidden_size: int = 24, num_layers: int = 2, num_heads: int = 4):
        super().__init__()
        self.word_embeddings, self.position_embeddings = (
            nn.Embedding(vocab_size, hidden_size),
            nn.Embedding(64, hidden_size),
        )
        self.LayerNorm = nn.LayerNorm(hidden_size, eps=1e-12)
        self.attention = nn.ModuleList(Attention(hidden_size, num_heads) for _ in range(num_layers))
        self.output = nn.ModuleList(MLP(hidden_size, 0.1) for _ in range(num_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden_size, eps=1e-12) for _ in range(2 * num_layers))

    def embed(self, input_ids: Tensor) -> Tensor:
        positions = torch.arange(input_ids.size(1), device=input_ids.device)
        return self.LayerNorm(self.word_embeddings(input_ids) + self.position_embeddings(positions))

    def run(self, x: Tensor, keep: Tensor | None) -> Tensor:
        for i, (attention, output) in enumerate(zip(self.attention, self.output, strict=True)):
            x = self.norms[2 * i](x + attention(x, keep))
            x = self.norms[2 * i + 1](x + output(x))
        return x

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        keep = None if attention_mask is None else attention_mask[:, None, None, :].bool()
        return self.run(self.embed(input_ids), keep)


class BertUnmasked(BertEncoder):
    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return self.run(self.embed(input_ids), None)


class BertColumn(BertEncoder):
    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        keep = None if attention_mask is None else attention_mask[:, None, :, None].bool()
        return self.run(self.embed(input_ids), keep)


class BertLoud(BertEncoder):
    def embed(self, input_ids: Tensor) -> Tensor:
        return F.dropout(super().embed(input_ids), p=0.1)


class BertSegments(BertEncoder):
    def __init__(self, vocab_size: int = 50, hidden_size: int = 24, num_layers: int = 2, num_heads: int = 4):
        super().__init__(vocab_size, hidden_size, num_layers, num_heads)
        self.adapter = nn.Linear(hidden_size, hidden_size)

    def run(self, x: Tensor, keep: Tensor | None) -> Tensor:
        with torch.no_grad():
            extra = self.adapter(x)
        return super().run(x + extra, keep)


class SequenceEncoder(nn.Module):
    """`src_key_padding_mask` (B, T): True at padding."""

    def __init__(self, d_model: int = 16, nhead: int = 2, num_layers: int = 2):
        super().__init__()
        layer = nn.TransformerEncoderLayer(d_model, nhead, 32, dropout=0.1, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x)


class PaddedSequence(nn.Module):
    """`attention_mask` (B, T) is 1 at real tokens and 0 at padding."""

    def __init__(self, vocab_size: int = 40, d_model: int = 16, nhead: int = 2, num_layers: int = 2):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.position = nn.Embedding(128, d_model)
        layers = [nn.TransformerEncoderLayer(d_model, nhead, 32, batch_first=True) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)

    def hidden(self, attention_mask: Tensor) -> Tensor:
        return attention_mask.bool()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        x = self.embedding(input_ids) + self.position(torch.arange(input_ids.size(1), device=input_ids.device))
        drop, empty = None, None
        if attention_mask is not None:
            empty = ~attention_mask.bool().any(dim=-1, keepdim=True)
            drop = self.hidden(attention_mask)
            drop = drop & ~drop.all(dim=-1, keepdim=True)
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=drop)
        return x if empty is None else x.masked_fill(empty[:, :, None], 0.0)


class PaddedSequenceRight(PaddedSequence):
    def hidden(self, attention_mask: Tensor) -> Tensor:
        return ~attention_mask.bool()


class UnlistedEncoder(nn.Module):
    def __init__(self, dim: int = 16, num_layers: int = 2, heads: int = 2):
        super().__init__()
        self.inp = nn.Linear(dim, dim)
        self.layers = [Block(dim, heads) for _ in range(num_layers)]
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inp(x)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class SqueezedEncoder(nn.Module):
    def __init__(self, vocab_size: int = 30, dim: int = 16, heads: int = 2):
        super().__init__()
        self.embed, self.block, self.norm = nn.Embedding(vocab_size, dim), Block(dim, heads), nn.LayerNorm(dim)
        self.pos = nn.Embedding(64, dim)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids).squeeze() + self.pos(torch.arange(ids.size(1), device=ids.device))
        x = x if x.dim() == 3 else x[None]
        return self.norm(self.block(x)).squeeze(0)


class CpuPositions(nn.Module):
    def __init__(self, vocab_size: int, d_model: int = 16, num_heads: int = 2):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, d_model), nn.Embedding(64, d_model)
        self.block = Block(d_model, num_heads)

    def forward(self, ids: Tensor) -> Tensor:
        positions = torch.arange(ids.size(1), device="cpu")
        return self.block(self.tokens(ids) + self.positions(positions))


class BatchStatistics(nn.Module):
    def __init__(self, dim: int = 16, heads: int = 2):
        super().__init__()
        self.attn, self.mlp = Attention(dim, heads), MLP(dim)
        self.g1, self.g2 = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.ones(dim))

    def norm(self, x: Tensor, gain: Tensor) -> Tensor:
        return (x - x.mean(0)) / torch.sqrt(x.var(0, unbiased=False) + 1e-5) * gain

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm(x, self.g1))
        return x + self.mlp(self.norm(x, self.g2))


class RotaryEncoder(nn.Module):
    """`mask` (B, T) True at what may be read."""

    def __init__(self, dim: int = 32, depth: int = 2, heads: int = 4):
        super().__init__()
        self.attns = nn.ModuleList(Attention(dim, heads) for _ in range(depth))
        self.mlps = nn.ModuleList(MLP(dim, 0.1) for _ in range(depth))
        self.norms = nn.ModuleList(nn.RMSNorm(dim, eps=1e-6) for _ in range(2 * depth + 1))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        keep = None if mask is None else mask.bool()[:, None, None]
        t = torch.arange(x.size(1), device=x.device)
        for i, (attn, mlp) in enumerate(zip(self.attns, self.mlps, strict=True)):
            q, k, v = attn.split(self.norms[2 * i](x))
            x = x + attn.merge(weigh(rotate(q, t), rotate(k, t), v, keep))
            x = x + mlp(self.norms[2 * i + 1](x))
        return self.norms[-1](x)


class SinusoidEncoder(nn.Module):
    def __init__(self, vocab_size: int, d_model: int, num_heads: int = 2, num_layers: int = 2, dropout: float = 0.1):
        super().__init__()
        self.embed, self.d_model = nn.Embedding(vocab_size, d_model), d_model
        layer = nn.TransformerEncoderLayer(d_model, num_heads, 4 * d_model, dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids) * math.sqrt(self.d_model)
        rate = 10000.0 ** (-torch.arange(0, self.d_model, 2, device=x.device, dtype=x.dtype) / self.d_model)
        angles = torch.arange(ids.size(1), device=x.device, dtype=x.dtype)[:, None] * rate
        return self.encoder(x + torch.cat([angles.sin(), angles.cos()], dim=-1))


class SeriesEncoder(nn.Module):
    """Batch norm between the parts, as encoders of time series have it."""

    def __init__(self, d_model: int = 16, num_heads: int = 2):
        super().__init__()
        self.pos = nn.Parameter(0.1 * torch.randn(64, d_model))
        self.attn, self.mlp = Attention(d_model, num_heads), MLP(d_model)
        self.bn1, self.bn2 = nn.BatchNorm1d(d_model), nn.BatchNorm1d(d_model)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pos[: x.size(1)]
        x = self.bn1((x + self.attn(x)).mT).mT
        return self.bn2((x + self.mlp(x)).mT).mT


IDS = {"vocab": 30}
CASES = [
    Case("ViTRepeated", "encoder", "position.every-block"),
    Case("ViTShared", "encoder", "blocks.shared"),
    Case("ViTForgotten", "encoder", "position.unused", ("parameter.unused",)),
    Case("BertUnmasked", "encoder", "mask.ignored", options=IDS),
    Case("BertColumn", "encoder", "mask.query-axis", options=IDS),
    Case("BertLoud", "encoder", "dropout.active-in-eval", options=IDS),
    Case("BertSegments", "encoder", "parameter.unused", ("weights.frozen",), options=IDS),
    Case("SequenceEncoder", "encoder", "batch.mixing", guess=True),
    Case("PaddedSequence", "encoder", "mask.polarity", options=IDS),
    Case("UnlistedEncoder", "encoder", "parameter.unregistered"),
    Case("SqueezedEncoder", "encoder", "shape.squeezed", options=IDS),
    Case("CpuPositions", "encoder", "device.hard-coded", options=IDS),
    Case("BatchStatistics", "encoder", "norm.axis"),
    Case("ViTEncoder", "encoder", guess=True),
    Case("BertEncoder", "encoder", options=IDS),
    Case("PaddedSequenceRight", "encoder", options=IDS),
    Case("RotaryEncoder", "encoder"),
    Case("SinusoidEncoder", "encoder", options=IDS),
    Case("SeriesEncoder", "encoder"),
]
