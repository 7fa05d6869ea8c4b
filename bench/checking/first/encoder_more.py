"""Encoders: what is added, shared, made or left out between the blocks."""

import torch
from torch import nn
from torch.nn import functional as F

from bench.checking.case import Case
from bench.checking.first.encoder import Layer


class Placed(nn.Module):
    def __init__(self, dim=32, heads=4, depth=2):
        super().__init__()
        self.pe = nn.Parameter(torch.randn(1, 64, dim) * 0.1)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)

    def stream(self, x):
        x = x + self.pe[:, : x.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return x

    def forward(self, x):
        return self.norm(self.stream(x))


class AddedBetween(Placed):
    def stream(self, x):
        for layer in self.layers:
            x = layer(x + self.pe[:, : x.shape[1]])
        return x


class SharedTrunk(Placed):
    def __init__(self, dim=32, heads=4, num_layers=3):
        super().__init__(dim, heads)
        self.layers = nn.ModuleList(num_layers * [Layer(dim, heads)])


class SharedByIntent(SharedTrunk):
    """All layers share one set of weights."""


class NormForgotten(Placed):
    def forward(self, x):
        return self.stream(x)


class Open(Placed):
    """The next part brings its own."""

    def __init__(self, dim=32, heads=4):
        super().__init__(dim, heads)
        self.norm = None

    def forward(self, x):
        return self.stream(x)


class Tokens(nn.Module):
    """`attention_mask` (B,T) is 1 at real tokens."""

    def __init__(self, vocab_size=40, dim=32, heads=4):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab_size, dim), nn.Embedding(64, dim)
        self.layer = Layer(dim, heads, False)

    def embed(self, input_ids):
        return self.tokens(input_ids) + self.places(torch.arange(input_ids.shape[1], device=input_ids.device))

    def forward(self, input_ids, attention_mask=None):
        return self.layer(self.embed(input_ids), None if attention_mask is None else attention_mask == 0)


class Loud(Tokens):
    def embed(self, input_ids):
        return F.dropout(super().embed(input_ids), 0.1)


class OnProcessor(Tokens):
    def embed(self, input_ids):
        return self.tokens(input_ids) + self.places(torch.arange(input_ids.shape[1], device="cpu"))


FAULTS = {
    "position.every-block": "AddedBetween",
    "blocks.shared": "SharedTrunk",
    "norm.final-missing": "NormForgotten",
    "dropout.active-in-eval": "Loud",
    "device.hard-coded": "OnProcessor",
}
CASES = [Case(name, "encoder", fault) for fault, name in FAULTS.items()]
CASES += [Case(name, "encoder") for name in ("Placed", "SharedByIntent", "Open", "Tokens")]
