"""Encoders of vectors, of ids and of patches."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


class Layer(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        h = self.norm1(x)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(h).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.ff(self.norm2(x))


class Encoder(nn.Module):
    """`mask` (B, T) is True at real positions."""

    def __init__(self, dim: int = 24, heads: int = 4, depth: int = 2, max_len: int = 64) -> None:
        super().__init__()
        self.pos = nn.Parameter(torch.randn(max_len, dim) * 0.1)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)

    def keep(self, mask: Tensor | None) -> Tensor | None:
        return None if mask is None else mask[:, None, None, :].bool()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.pos[: x.size(1)]
        for layer in self.layers:
            x = layer(x, self.keep(mask))
        return self.norm(x)


class Encoder2(Encoder):
    """`mask` (B, T) is True at real positions."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            x = layer(x + self.pos[: x.size(1)], self.keep(mask))
        return self.norm(x)


class Encoder3(Encoder):
    """`mask` (B, T) is True at real positions."""

    def keep(self, mask: Tensor | None) -> Tensor | None:
        return None if mask is None else mask[:, None, None, :].to(self.pos.dtype)


class Encoder4(Encoder):
    """`mask` (B, T) is True at real positions."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.pos[: x.size(1)]
        keep = self.keep(mask)
        for i, layer in enumerate(self.layers):
            x = layer(x, keep if i == 0 else None)
        return self.norm(x)


class Encoder5(Encoder):
    """`mask` (B, T) is True at real positions."""

    def __init__(self, dim: int = 24, heads: int = 4, depth: int = 3) -> None:
        super().__init__(dim, heads, depth)
        layer = self.layers[0]
        self.layers = nn.ModuleList([layer for _ in range(depth)])


class BertModel(nn.Module):
    """ids (B, T); `attention_mask` is 1 at tokens."""

    def __init__(self, vocab_size: int = 71, hidden_size: int = 24, num_hidden_layers: int = 2) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab_size, hidden_size)
        self.position_embeddings = nn.Embedding(64, hidden_size)
        self.LayerNorm = nn.LayerNorm(hidden_size)
        self.layer = nn.ModuleList(Layer(hidden_size, 4) for _ in range(num_hidden_layers))

    def places(self, ids: Tensor) -> Tensor:
        return torch.arange(ids.size(1), device=ids.device)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        x = self.LayerNorm(self.word_embeddings(input_ids) + self.position_embeddings(self.places(input_ids)))
        keep = None if attention_mask is None else attention_mask[:, None, None, :].bool()
        for layer in self.layer:
            x = layer(x, keep)
        return x


class BertModel2(BertModel):
    """ids (B, T); `attention_mask` is 1 at tokens."""

    def places(self, ids: Tensor) -> Tensor:
        return torch.zeros_like(ids)


class BertModel3(BertModel):
    """ids (B, T); `attention_mask` is 1 at tokens."""

    def __init__(self, vocab_size: int = 71, hidden_size: int = 24, num_hidden_layers: int = 2) -> None:
        super().__init__(vocab_size, hidden_size, num_hidden_layers)
        del self.layer
        self.layer = [Layer(hidden_size, 4) for _ in range(num_hidden_layers)]


class TorchEncoder(nn.Module):
    def __init__(self, d_model: int = 32, nhead: int = 4, num_layers: int = 2) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(d_model, nhead, 64, dropout=0.1)
        self.encoder = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x.transpose(0, 1)).transpose(0, 1)


class TorchEncoder2(TorchEncoder):
    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x)


class ViT(nn.Module):
    """Tokens already cut; one learned token at the front, taken off at the end."""

    def __init__(self, dim: int, depth: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embedding = nn.Parameter(torch.randn(1, 65, dim) * 0.1)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.cat((self.cls_token.expand(x.size(0), -1, -1), x), dim=1)
        x = x + self.pos_embedding[:, : x.size(1)]
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)[:, 1:]


class ViT2(ViT):
    def forward(self, x: Tensor) -> Tensor:
        x = torch.cat((self.cls_token.expand(x.size(0), -1, -1), x), dim=1)
        x = x + self.pos_embedding[:, : x.size(1)]
        for layer in self.layers:
            x = layer(x) + 0.05 * torch.randn_like(x)
        return self.norm(x)[:, 1:]


CASES: list[Case] = [
    Case("Encoder", "encoder", guess=True),
    Case("Encoder2", "encoder", "position.every-block"),
    Case("Encoder3", "encoder", "mask.added-as-number", guess=True),
    Case("Encoder4", "encoder", "mask.ignored"),
    Case("Encoder5", "encoder", "blocks.shared"),
    Case("BertModel", "encoder", options={"vocab": 71}),
    Case("BertModel2", "encoder", "position.unused", options={"vocab": 71}),
    Case("BertModel3", "encoder", "parameter.unregistered", options={"vocab": 71}),
    Case("TorchEncoder", "encoder"),
    Case("TorchEncoder2", "encoder", "batch.mixing", guess=True),
    Case("ViT", "encoder", guess=True),
    Case("ViT2", "encoder", "noise.injected"),
]
