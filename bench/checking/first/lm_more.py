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
        places = torch.arange(ids.shape[1], device=ids.device).expand(ids.shape) if mask is None else (mask.long().cumsum(1) - 1).clamp(min=0)
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
        for index, layer in enumerate(self.layers):
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


def lm(attn, base=Lm):
    return type(base.__name__, (base,), {"attn": attn})


one_more, one_less = lm(OneMore, Windowed), lm(OneLess, Windowed)
in_place, buffered = lm(InPlace), lm(Buffered)

CASES = [
    Case("Lm", "lm"),
    Case("Windowed", "lm"),
    Case("RelativeOnly", "lm"),
    Case("Tied", "lm"),
    Case("Counted", "lm"),
    Case("one_more", "lm", "window.off-by-one"),
    Case("one_less", "lm", "window.off-by-one"),
    Case("in_place", "lm", "cache.aliased"),
    Case("buffered", "lm", "cache.aliased"),
    Case("OneTooMany", "lm", "cache.overflow"),
    Case("Remembering", "lm", "cache.stale"),
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
