"""Right code as published packages write it, each once taken for a mistake or not run: more of it."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case


class Plain(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.heads = heads
        self.to_q, self.to_k, self.to_v, self.to_out = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def split(self, *streams):
        return tuple(s.unflatten(-1, (self.heads, -1)).transpose(1, 2) for s in streams)

    def merge(self, x):
        return self.to_out(x.transpose(1, 2).flatten(2))


class AlongPositions(Plain):
    """Keys and values are made fewer along the sequence, of one length."""

    def __init__(self, dim=32, heads=4, context=11, few=6):
        super().__init__(dim, heads)
        self.shorten_k, self.shorten_v = nn.Linear(context, few), nn.Linear(context, few)

    def forward(self, x):
        q, k, v = self.split(self.to_q(x), self.to_k(x), self.to_v(x))
        k, v = self.shorten_k(k.mT), self.shorten_v(v.mT)
        return self.merge((q @ k / math.sqrt(q.shape[-1])).softmax(-1) @ v.mT)


class TakesTheRest(Plain):
    """The stream comes among whatever is given by place."""

    def attend(self, x):
        q, k, v = self.split(self.to_q(x), self.to_k(x), self.to_v(x))
        return self.merge(F.scaled_dot_product_attention(q, k, v))

    def forward(self, *args, context=None):
        assert context is None
        return self.attend(*args)


class ValuesFirst(Plain):
    def forward(self, value, key, query):
        q, k, v = self.split(self.to_q(query), self.to_k(key), self.to_v(value))
        return self.merge(F.scaled_dot_product_attention(q, k, v))


class Clamped(Plain):
    """Values are kept within bounds before they are raised to powers."""

    def forward(self, x, bound=15.0):
        q, k, v = self.split(self.to_q(x), self.to_k(x), self.to_v(x))
        v = (v / bound).tanh() * bound
        return self.merge((q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v)


class OneForBoth(Plain):
    """Queries are keys, so that a position must not attend to itself while there is another."""

    def __init__(self, dim=32, heads=4):
        super().__init__(dim, heads)
        self.to_qk = self.to_q
        del self.to_q, self.to_k

    def forward(self, x):
        q, v = self.split(self.to_qk(x), self.to_v(x))
        scores = q @ F.normalize(q, dim=-1).mT / math.sqrt(q.shape[-1])
        places = torch.arange(x.shape[1])
        scores[..., places, places] = -5e9
        future = places[:, None] < places
        return self.merge(scores.masked_fill(future, -torch.finfo(scores.dtype).max).softmax(-1) @ v)


class LinearAttention(Plain):
    """Causal without scores: sums of keys times values so far."""

    def forward(self, x):
        q, k, v = self.split(self.to_q(x), self.to_k(x), self.to_v(x))
        q, k = q.softmax(-1), k.exp()
        context = torch.einsum("bhnd,bhne->bhnde", k, v).cumsum(2)
        total = torch.einsum("bhnd,bhnd->bhn", q, k.cumsum(2))
        return self.merge(torch.einsum("bhnde,bhnd->bhne", context, q) / total[..., None])


class FeedForward(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(dim), nn.Linear(dim, 48), nn.Linear(48, dim)

    def forward(self, x):
        return self.down(F.gelu(self.up(self.norm(x))))


class LinearLM(nn.Module):
    """A causal language model without scores."""

    def __init__(self, vocab=61, dim=32, depth=2):
        super().__init__()
        self.embedding, self.position = nn.Embedding(vocab, dim), nn.Embedding(64, dim)
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(depth)])
        self.attentions = nn.ModuleList([LinearAttention(dim) for _ in range(depth)])
        self.feeds = nn.ModuleList([FeedForward(dim) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.embedding(ids) + self.position.weight[: ids.shape[1]]
        for norm, attention, feed in zip(self.norms, self.attentions, self.feeds, strict=True):
            x = x + attention(norm(x))
            x = x + feed(x)
        return self.head(self.norm(x))


class InParts(nn.Module):
    """A reversible block: two halves of the stream, each with a skip of its own."""

    def __init__(self, dim=32):
        super().__init__()
        self.norm, self.attention, self.feed = nn.LayerNorm(dim // 2), ValuesFirst(dim // 2), FeedForward(dim // 2)

    def forward(self, x):
        one, other = x.chunk(2, -1)
        n = self.norm(other)
        one = one + self.attention(n, n, n)
        return torch.cat([one, other + self.feed(one)], -1)


class WholeText(nn.Module):
    """The whole text is given each time; beside a cache the last token alone is read."""

    def __init__(self, vocab=61, dim=32):
        super().__init__()
        self.embedding, self.position = nn.Embedding(vocab, dim), nn.Embedding(64, dim)
        self.attention, self.head = Plain(dim), nn.Linear(dim, vocab)
        self.norm, self.last = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, ids, cache=None):
        x = self.embedding(ids) + self.position.weight[: ids.shape[1]]
        if cache is not None:
            x = x[:, -1:]
        a, n = self.attention, self.norm(x)
        q, k, v = a.split(a.to_q(n), a.to_k(n), a.to_v(n))
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        return self.head(self.last(x + a.merge(y))), (k, v)


class CallersTriangle(nn.Module):
    """tgt_mask: True where a position is not to be seen."""

    def __init__(self, vocab=61, dim=32):
        super().__init__()
        self.source, self.target = nn.Embedding(vocab, dim), nn.Embedding(vocab, dim)
        self.encoder = nn.TransformerEncoderLayer(dim, 4, 48, batch_first=True)
        self.decoder = nn.TransformerDecoderLayer(dim, 4, 48, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, src, tgt, tgt_mask=None):
        return self.head(self.decoder(self.target(tgt), self.encoder(self.source(src)), tgt_mask=tgt_mask))


class Speeds(nn.Module):
    """Sines and cosines from the frequencies alone."""

    def __init__(self, dim=24):
        super().__init__()
        self.register_buffer("inv_freq", 10000 ** (-torch.arange(0, dim, 2).float() / dim))

    def forward(self, x):
        angles = torch.arange(x.shape[1]).type_as(self.inv_freq)[:, None] * self.inv_freq
        return torch.cat((angles.sin(), angles.cos()), -1)[None]


CASES = [
    Case("AlongPositions", "attention", options={"values": {"context": 11}}),
    Case("TakesTheRest", "attention"),
    Case("ValuesFirst", "attention"),
    Case("Clamped", "attention"),
    Case("OneForBoth", "attention"),
    Case("LinearLM", "lm"),
    Case("InParts", "block"),
    Case("WholeText", "lm"),
    Case("CallersTriangle", "seq2seq"),
    Case("Speeds", "positions"),
]
