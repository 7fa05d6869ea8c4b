"""Caches that are objects, models without positions, norms that are none, and what is planted inside: variants of the models beside."""

from __future__ import annotations

import copy

import torch
from torch import nn

from bench.checking.case import Case
from bench.checking.first.lm_gpt import Block, Gpt, SelfAttention
from bench.checking.first.lm_more import Attn, Layer, Lm, Windowed


class Grown:
    """Keys and values of all layers, changed in place."""

    def __init__(self):
        self.kept = {}

    def add(self, layer, k, v):
        if layer in self.kept:
            k, v = (torch.cat([old, new], 2) for old, new in zip(self.kept[layer], (k, v), strict=True))
        self.kept[layer] = (k, v)
        return k, v

    def seen(self):
        return 0 if 0 not in self.kept else self.kept[0][0].shape[2]


class Clinging(Grown):
    """A deep copy of it shares what it holds."""

    def __deepcopy__(self, memo):
        return copy.copy(self)


class ReadsObject(Attn):
    def forward(self, x, cache=None, mask=None):
        self.held, self.place = cache if cache is not None else (None, 0)
        return super().forward(x, {}, mask)

    def store(self, cache, k, v):
        k, v = (k, v) if self.held is None else self.held.add(self.place, k, v)
        self.held = None
        return {"k": k, "v": v}


class Object(Lm):
    """The cache is made in the model where none is given, changed in place and given back."""

    attn, cache_of = ReadsObject, Grown

    def slot(self, index):
        return index

    def forward(self, ids, cache=None, use_cache=False):
        cache = self.cache_of() if use_cache and cache is None else cache
        x = self.embed(ids, 0 if cache is None else cache.seen(), None)
        for index, layer in enumerate(self.layers):
            x, _ = layer(x, None if cache is None else (cache, self.slot(index)), None)
        return self.head(self.norm(x)), cache


class ClingingObject(Object):
    cache_of = Clinging


class AlwaysOne(Object):
    """A cache is made where none is given, and each layer writes to the same place."""

    def slot(self, index):
        return 0

    def forward(self, ids, cache=None, use_cache=True):
        return super().forward(ids, cache, True)


class PlainIdentity(Gpt):
    """The last norm was taken out."""

    def final(self, x):
        return self.norm_f(x)

    def blocks(self, width, heads, layers):
        self.norm_f = nn.Sequential()
        return super().blocks(width, heads, layers)


class CausalOnly(Lm):
    """The order comes from who sees whom."""

    def setup(self):
        del self.pos

    def embed(self, ids, seen, mask):
        return self.tok(ids)


class Forgotten(Lm):
    """Has a table and does not read it."""

    def embed(self, ids, seen, mask):
        return self.tok(ids)


class FarOne(Attn):
    """A step with a past sees one key more than the window."""

    def near(self, distance):
        return super().near(distance) if distance.shape[0] > 1 else (distance >= 0) & (distance <= self.window)


far_one = type("Windowed", (Windowed,), {"attn": FarOne})


class Memory(SelfAttention):
    """Three learned keys and values stand before those of the text."""

    def __init__(self, width, heads):
        super().__init__(width, heads)
        self.memory = nn.Parameter(0.3 * torch.randn(2, 1, heads, 3, width // heads))

    def join(self, past, k, v):
        if past is not None:
            return super().join(past, k, v)
        rows = self.memory.expand(2, k.shape[0], *self.memory.shape[2:])
        return torch.cat([rows[0], k], 2), torch.cat([rows[1], v], 2)


class Remembered(Gpt):
    attention = Memory

    def places(self, ids, seen, keep):
        return super().places(ids, max(seen - 3, 0), keep)

    def forward(self, input_ids, past_key_values=None, use_cache=False):
        return super().forward(input_ids, past_key_values=past_key_values, use_cache=use_cache)


class NoSkip(Block):
    def forward(self, x, past=None, keep=None):
        y, present = self.attn(self.ln_1(x), past, keep)
        x = x + y
        return self.mlp(self.ln_2(x)), present


class Stale(Block):
    def forward(self, x, past=None, keep=None):
        y, present = self.attn(self.ln_1(x), past, keep)
        return x + self.mlp(self.ln_2(x + y)), present


def stack(block):
    made = {"blocks": lambda self, d, h, n: nn.ModuleList(block(d, h, self.attention) for _ in range(n))}
    return type("Gpt", (Gpt,), made)


no_skip, stale = stack(NoSkip), stack(Stale)


class StaleLayer(Layer):
    def forward(self, x, cache, mask):
        a, cache = self.attn(self.norm1(x), cache, mask)
        y = x + a
        return x + self.down(torch.relu(self.up(self.norm2(y)))), cache


class SkipLess(Layer):
    """What the feed-forward gives replaces the stream."""

    def forward(self, x, cache, mask):
        a, cache = self.attn(self.norm1(x), cache, mask)
        return self.down(torch.relu(self.up(self.norm2(x + a)))), cache


stale_dict, no_skip_dict = (type("Lm", (Lm,), {"layer": layer}) for layer in (StaleLayer, SkipLess))


class OverQueries(SelfAttention):
    def weigh(self, scores, seen):
        return scores.masked_fill(~seen, float("-inf")).softmax(-2).nan_to_num()


class OverHeads(SelfAttention):
    def weigh(self, scores, seen):
        return scores.masked_fill(~seen, float("-inf")).softmax(1).nan_to_num()


over_heads, over_queries = (type("Gpt", (Gpt,), {"attention": each}) for each in (OverHeads, OverQueries))


CASES = [
    Case("Object", "lm"),
    Case("ClingingObject", "lm", "cache.aliased"),
    Case("AlwaysOne", "lm", "cache.shared-between-blocks"),
    Case("PlainIdentity", "lm", "norm.final-missing", ("parameter.unused",)),
    Case("CausalOnly", "lm"),
    Case("Forgotten", "lm", "position.unused", ("parameter.unused",)),
    Case("far_one", "lm", "cache.overflow", ("window.off-by-one",)),
    Case("Remembered", "lm"),
    Case("no_skip", "lm", "residual.missing"),
    Case("stale", "lm", "residual.stale"),
    Case("no_skip_dict", "lm", "residual.missing"),
    Case("stale_dict", "lm", "residual.stale"),
    Case("over_heads", "lm", "softmax.axis"),
    Case("over_queries", "lm", "softmax.axis"),
]
