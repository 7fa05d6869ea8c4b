"""Tied weights, padding, positions, rows and devices: models without a cache, or whose cache is not the point."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from bench.checking.case import Case
from bench.checking.first.lm_more import Lm


class Tied(Lm):
    """Tied embeddings."""

    def setup(self):
        nn.init.normal_(self.tok.weight, std=0.02)
        self.head.weight = self.tok.weight


class Parted(Lm):
    """Weight tying: head and embedding share their weights."""

    def setup(self):
        self.head.weight = nn.Parameter(self.tok.weight.clone())


class Retied(Lm):
    def setup(self):
        self.tie_weights()
        self.tok.weight = nn.Parameter(torch.randn_like(self.tok.weight) * 0.02)

    def tie_weights(self):
        self.head.weight = self.tok.weight


class InitAfter(Lm):
    """Tied, then initialised as an embedding."""

    def setup(self):
        self.head.weight = self.tok.weight  # tied
        nn.init.normal_(self.tok.weight)


class InitAll(Lm):
    def setup(self):
        self.tie_weights()
        self.apply(self._init_weights)
        self.tok.reset_parameters()

    def tie_weights(self):
        self.head.weight = self.tok.weight

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.02)


class Counted(Lm):
    """Positions count the real tokens."""

    def embed(self, ids, seen, mask):
        places = (
            torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)
            if mask is None
            else (mask.long().cumsum(1) - 1).clamp(min=0)
        )
        return self.tok(ids) + self.pos[places]

    def forward(self, tokens, attention_mask=None):
        return self.body(self.embed(tokens, 0, attention_mask), None, attention_mask)[0]


class CountsPads(Counted):
    def embed(self, ids, seen, mask):
        return self.tok(ids) + self.pos[: ids.shape[1]]


class Upside(Counted):
    def forward(self, tokens, attention_mask=None):
        flipped = None if attention_mask is None else 1 - attention_mask.long()
        return super().forward(tokens, flipped)


class OnlyFirstBlock(Counted):
    def body(self, x, cache, mask):
        x, _ = self.layers[0](x, None, mask)
        return self.head(self.norm(self.layers[1](x, None, None)[0])), None


class EveryLayer(Lm):
    def body(self, x, cache, mask):
        new = []
        for layer in self.layers:
            x, kept = layer(x + self.pos[: x.shape[1]], None, mask)
            new.append(kept)
        return self.head(self.norm(x)), new

    def forward(self, ids):
        return self.body(self.tok(ids), None, None)[0]


class RowMixer(Lm):
    def body(self, x, cache, mask):
        return super().body(x - 0.3 * x.mean(0, keepdim=True), cache, mask)


class SharedList(Lm):
    def setup(self):
        self.layers = nn.ModuleList([self.layers[0]] * 3)


class NoisyTop(Lm):
    def body(self, x, cache, mask):
        return super().body(F.dropout(x, 0.2, training=True), cache, mask)


class Polar(Counted):
    """Its mask is 1 for real tokens, and real tokens are hidden."""

    def body(self, x, cache, mask):
        return super().body(x, cache, None if mask is None else mask == 0)


class HardZeros(Lm):
    def forward(self, ids):
        x = self.embed(ids, 0, None)
        return self.body(x + torch.zeros(x.shape, device="cpu", dtype=x.dtype), None, None)[0]


class FixedMask(Lm):
    def setup(self):
        self.open = torch.ones(20, dtype=torch.bool)

    def forward(self, ids):
        return self.body(self.embed(ids, 0, None), None, self.open[: ids.shape[1]].expand(ids.shape))[0]


CASES = [
    Case("Tied", "lm"),
    Case("Counted", "lm"),
    Case("Parted", "lm", "tying.lost"),
    Case("Retied", "lm", "tying.lost"),
    Case("InitAfter", "lm", "init.after-tying"),
    Case("InitAll", "lm", "init.after-tying"),
    Case("CountsPads", "lm", "position.left-padding"),
    Case("Upside", "lm", "mask.polarity"),
    Case("OnlyFirstBlock", "lm", "mask.ignored"),
    Case("EveryLayer", "lm", "position.every-block"),
    Case("RowMixer", "lm", "batch.mixing"),
    Case("SharedList", "lm", "blocks.shared"),
    Case("NoisyTop", "lm", "dropout.active-in-eval"),
    Case("Polar", "lm", "mask.polarity"),
    Case("HardZeros", "lm", "device.hard-coded"),
    Case("FixedMask", "lm", "device.hard-coded", also=("parameter.unregistered",)),
]
