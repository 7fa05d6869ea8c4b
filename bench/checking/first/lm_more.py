"""Further models: windows, states inside the model, tied weights, padding, what is made in place; most with dictionaries as caches."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

from bench.checking.case import Case


class Attn(nn.Module):
    def __init__(self, d, h, window=None):
        super().__init__()
        self.h, self.window = h, window
        self.q, self.k, self.v, self.out = (nn.Linear(d, d) for _ in range(4))

    def near(self, distance):
        seen = distance >= 0
        return seen if self.window is None else seen & (distance < self.window)

    def store(self, cache, k, v):
        if "k" in cache:
            k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
        return {"k": k, "v": v}

    def bias(self, distance):
        return 0.0

    def forward(self, x, cache=None, mask=None):
        b, t, d = x.shape
        q, k, v = (f(x).view(b, t, self.h, d // self.h).transpose(1, 2) for f in (self.q, self.k, self.v))
        new = self.store({} if cache is None else cache, k, v)
        k, v = new["k"], new["v"]
        s = k.shape[2]
        distance = torch.arange(s - t, s, device=x.device)[:, None] - torch.arange(s, device=x.device)
        seen = self.near(distance)
        if mask is not None:
            seen = seen & mask[:, None, None, :].bool()
        scores = torch.einsum("bhtd,bhsd->bhts", q, k) / math.sqrt(d // self.h) + self.bias(distance)
        w = scores.masked_fill(~seen, torch.finfo(scores.dtype).min).softmax(-1)
        return self.out(torch.einsum("bhts,bhsd->bhtd", w, v).transpose(1, 2).flatten(2)), new


class Layer(nn.Module):
    def __init__(self, attn, d, h, window):
        super().__init__()
        self.attn, self.norm1, self.norm2 = attn(d, h, window), nn.LayerNorm(d), nn.LayerNorm(d)
        self.up, self.down = nn.Linear(d, 3 * d), nn.Linear(3 * d, d)

    def forward(self, x, cache, mask):
        a, cache = self.attn(self.norm1(x), cache, mask)
        x = x + a
        return x + self.down(F.gelu(self.up(self.norm2(x)))), cache


class Lm(nn.Module):
    attn, layer, window = Attn, Layer, None

    def __init__(self, vocab=37, d_model=24, n_heads=2, n_layers=2, max_len=20):
        super().__init__()
        self.max_len = max_len
        self.tok = nn.Embedding(vocab, d_model)
        self.pos = nn.Parameter(torch.randn(max_len, d_model))
        self.layers = nn.ModuleList(self.layer(self.attn, d_model, n_heads, self.window) for _ in range(n_layers))
        self.norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, vocab)
        self.setup()

    def setup(self):
        pass

    def embed(self, ids, seen, mask):
        return self.tok(ids) + self.pos[seen : seen + ids.shape[1]]

    def body(self, x, cache, mask):
        new = []
        for index, layer in enumerate(self.layers):
            x, kept = layer(x, None if cache is None else cache[index], mask)
            new.append(kept)
        return self.head(self.norm(x)), new

    def seen(self, cache):
        return 0 if not cache else cache[0]["k"].shape[2]

    def forward(self, ids, cache=None):
        return self.body(self.embed(ids, self.seen(cache), None), cache, None)


class Windowed(Lm):
    window = 4

    def setup(self):
        self.window_size = 4


class OneMore(Attn):
    def near(self, distance):
        return (distance >= 0) & (distance <= self.window)


class OneLess(Attn):
    def near(self, distance):
        return (distance >= 0) & (distance < self.window - 1)


class InPlace(Attn):
    """The caller's dictionary is changed."""

    def store(self, cache, k, v):
        cache.update(super().store(cache, k, v))
        return cache


class Buffered(Attn):
    """New keys are written into the buffer that was given."""

    def store(self, cache, k, v):
        if "k" not in cache:
            shape = (*k.shape[:2], 24, k.shape[3])
            cache = {"n": 0, "K": k.new_zeros(shape), "V": v.new_zeros(shape)}
        n = cache["n"] + k.shape[2]
        cache["K"][:, :, cache["n"] : n], cache["V"][:, :, cache["n"] : n] = k, v
        return {"n": n, "K": cache["K"], "V": cache["V"], "k": cache["K"][:, :, :n], "v": cache["V"][:, :, :n]}


class Rolling(Attn):
    def store(self, cache, k, v):
        new = super().store(cache, k, v)
        return {name: kept[:, :, -21:] for name, kept in new.items()}


class Alibi(Attn):
    def bias(self, distance):
        slopes = torch.tensor([0.5, 0.25], dtype=torch.float64, device=distance.device).to(self.q.weight.dtype)
        return -slopes[:, None, None] * distance.clamp(min=0)


class RelativeOnly(Lm):
    attn = Alibi

    def setup(self):
        del self.pos

    def embed(self, ids, seen, mask):
        return self.tok(ids)


class OneTooMany(RelativeOnly):
    """Keeps 21 keys of a context of 20; positions are relative."""

    attn = type("Attn", (Alibi, Rolling), {})


class Remembering(Lm):
    """What it has read stays in the model."""

    def setup(self):
        self.memory = None

    def forward(self, ids, use_cache=False):
        logits, new = self.body(self.embed(ids, self.seen(self.memory), None), self.memory, None)
        if use_cache:
            self.memory = new
        return logits


def lm(attn, base=Lm):
    return type(base.__name__, (base,), {"attn": attn})


one_more, one_less = lm(OneMore, Windowed), lm(OneLess, Windowed)
in_place, buffered = lm(InPlace), lm(Buffered)

CASES = [
    Case("Lm", "lm"),
    Case("Windowed", "lm"),
    Case("RelativeOnly", "lm"),
    Case("one_more", "lm", "window.off-by-one"),
    Case("one_less", "lm", "window.off-by-one"),
    Case("in_place", "lm", "cache.aliased"),
    Case("buffered", "lm", "cache.aliased"),
    Case("OneTooMany", "lm", "cache.overflow"),
    Case("Remembering", "lm", "cache.stale"),
]
