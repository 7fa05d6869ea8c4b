"""Right code as published packages write it, each once taken for a mistake."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case


class Luong(nn.Module):
    """Attention over a context.

    general: score(h, q) = h^T W q
    """

    def __init__(self, dim=32):
        super().__init__()
        self.dim = dim
        self.inner, self.outer = nn.Linear(dim, dim, bias=False), nn.Linear(2 * dim, dim, bias=False)

    def forward(self, query, context):
        query = self.inner(query)
        mix = (query @ context.transpose(1, 2)).softmax(-1) @ context
        return torch.tanh(self.outer(torch.cat((mix, query), 2)))


class Activated(nn.Module):
    """Attention.

    :param activation: the activation after each linear transformation.
    """

    def __init__(self, dim=32, heads=4, activation=F.relu):
        super().__init__()
        self.heads, self.activation = heads, activation
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    @staticmethod
    def history_mask(x):
        """A mask that only uses history data; the future is hidden."""
        length = x.shape[1]
        return torch.tril(torch.ones(length, length)).repeat(x.shape[0], 1, 1)

    def forward(self, q, k, v, mask=None):
        B, T, D = q.shape
        q, k, v = (
            self.activation(f(x)).view(B, -1, self.heads, D // self.heads).transpose(1, 2)
            for f, x in ((self.q, q), (self.k, k), (self.v, v))
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask[:, None] == 0, -1e9)
        return self.activation(self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D)))


class TimeFirstByWord(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.num_heads, self.head_dim = heads, dim // heads
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, query, key, value):
        """Input shape: Time x Batch x Channel."""
        T, B, D = query.shape
        q, k, v = (
            f(x).view(-1, B * self.num_heads, self.head_dim).transpose(0, 1)
            for f, x in ((self.q, query), (self.k, key), (self.v, value))
        )
        weights = (q @ k.mT * self.head_dim**-0.5).softmax(-1)
        return self.o((weights @ v).transpose(0, 1).reshape(T, B, D))


class Sub(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attention = Activated(dim, heads, nn.Identity())
        self.one, self.two = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.feed = nn.Sequential(nn.Linear(dim, 48), nn.GELU(), nn.Linear(48, dim))

    def forward(self, x, memory, mask):
        n = self.one(x)
        x = x + self.attention(n, n if memory is None else memory, n if memory is None else memory, mask)
        return x + self.feed(self.two(x))


class ReadsItself(nn.Module):
    """A causal language model whose second half begins with the embeddings again and attends to what the first half made of them."""

    def __init__(self, vocab=61, dim=32, heads=4):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(vocab, dim), nn.Embedding(64, dim)
        self.first, self.second = Sub(dim, heads), Sub(dim, heads)
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.embedding(ids) + self.positions.weight[: ids.shape[1]]
        mask = torch.ones(1, ids.shape[1], ids.shape[1]).tril()
        memory = self.first(x, None, mask)
        return self.head(self.norm(self.second(x, memory, mask)))


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


class OwnGelu(nn.Module):
    def __init__(self, dim=32, heads=4, afn="gelu"):
        super().__init__()
        self.activation, self.function = afn, {"gelu": gelu, "relu": F.relu}[afn]
        self.attention = Activated(dim, heads, nn.Identity())
        self.one, self.two = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.w1, self.w2 = nn.Linear(dim, 48), nn.Linear(48, dim)

    def forward(self, x):
        n = self.one(x)
        x = x + self.attention(n, n, n)
        return x + self.w2(self.function(self.w1(self.two(x))))


class AttentionEmbedding(nn.Module):
    """Queries, keys and values have embeddings of their own."""

    def __init__(self, vocab=61, dim=32):
        super().__init__()
        self.query, self.key, self.value = (nn.Embedding(vocab, dim) for _ in range(3))
        self.position_embedding = nn.Embedding(64, dim)

    def forward(self, ids):
        places = self.position_embedding.weight[: ids.shape[1]]
        q, k = self.query(ids) + places, self.key(ids) + places
        return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ self.value(ids)


class FrozenTable(nn.Module):
    """Sinusoids whose columns turn at speeds of their own."""

    def __init__(self, dim=32, length=64):
        super().__init__()
        j = torch.arange(dim)
        angle = torch.arange(length)[:, None] / 10000 ** (2 * j / dim)
        self.table = nn.Embedding.from_pretrained(torch.where(j % 2 == 0, angle.sin(), angle.cos()), freeze=True)

    def forward(self, ids):
        return self.table(torch.arange(ids.shape[-1]))[None]


CASES = [
    Case("Luong", "attention", options={"heads": 1}),
    Case("Activated", "attention"),
    Case("TimeFirstByWord", "attention"),
    Case("ReadsItself", "lm"),
    Case("OwnGelu", "block"),
    Case("AttentionEmbedding", "encoder"),
    Case("FrozenTable", "positions", fault="sinusoid.frequency"),
]
