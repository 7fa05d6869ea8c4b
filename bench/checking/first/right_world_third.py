"""Right code as published packages write it, each once taken for a mistake or not run: the third file of it."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case
from bench.checking.first.right_world_more import FeedForward, Plain


class OneFactor(nn.Module):
    """A norm whose only weight is one number, stored as its distance from one; the width is nobody's business."""

    def __init__(self, dim=24):
        super().__init__()
        self.scale, self.g = dim**0.5, nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return F.normalize(x, dim=-1) * self.scale * (self.g + 1)


class Silenced(nn.Module):
    """Branches that begin as nothing: their factors are one more than what is stored."""

    def __init__(self, dim=32):
        super().__init__()
        self.attention, self.feed, self.norm = Masked(dim), FeedForward(dim), nn.LayerNorm(dim)
        self.gammas = nn.ParameterList([nn.Parameter(torch.full((dim,), -1.0)) for _ in range(2)])

    def forward(self, x, mask=None):
        x = x + self.attention(self.norm(x), mask) * (self.gammas[0] + 1)
        return x + self.feed(x) * (self.gammas[1] + 1)


class Masked(Plain):
    """Mask is (B,T), or (B,T,T): 1 for what is seen. It is read again in subsequent calls."""

    def forward(self, x, mask):
        q, k, v = self.split(self.to_q(x), self.to_k(x), self.to_v(x))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        seen = mask[:, None] if mask is not None and mask.dim() == 3 else mask[:, None, None] if mask is not None else 1
        return self.merge(scores.masked_fill(torch.as_tensor(seen) == 0, -1e30).softmax(-1) @ v)


class GatedPreNorm(nn.Module):
    """pre_norm=True, and a gated cell in place of each sum; a norm follows the last."""

    def __init__(self, dim=32, pre_norm=True):
        super().__init__()
        self.pre_norm = pre_norm
        self.attention, self.first, self.second = Plain(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.up, self.down, self.last = nn.Linear(dim, 48), nn.Linear(48, dim), nn.LayerNorm(dim)
        self.cells = nn.ModuleList([nn.GRUCell(dim, dim) for _ in range(2)])

    def gated(self, cell, y, x):
        return cell(y.flatten(0, 1), x.flatten(0, 1)).reshape_as(x)

    def forward(self, x):
        n = self.first(x)
        a = self.attention
        q, k, v = a.split(a.to_q(n), a.to_k(n), a.to_v(n))
        x = self.gated(self.cells[0], a.merge(F.scaled_dot_product_attention(q, k, v)), x)
        x = self.gated(self.cells[1], self.down(F.gelu(self.up(self.second(x)))), x)
        return self.last(x)


class Bottleneck(nn.Module):
    """A narrow stream with skips of its own inside, and the wide one around it."""

    def __init__(self, dim=32, narrow=16):
        super().__init__()
        self.into, self.back = nn.Linear(dim, narrow), nn.Linear(narrow, dim)
        self.attention, self.up, self.down = Masked(narrow), nn.Linear(narrow, 24), nn.Linear(24, narrow)
        self.norms, self.last = nn.ModuleList([nn.LayerNorm(narrow) for _ in range(2)]), nn.LayerNorm(dim)

    def forward(self, x):
        n = self.into(x)
        n = self.norms[0](n + self.attention(n, None))
        n = self.norms[1](n + self.down(F.relu(self.up(n))))
        return self.last(x + self.back(n))


class OtherForm(nn.Module):
    """Masks of another form of attention are taken by name, and not read by this one."""

    def __init__(self, dim=32):
        super().__init__()
        self.attention, self.feed, self.norm = Masked(dim), FeedForward(dim), nn.LayerNorm(dim)

    def forward(self, x, attention_mask=None, band_mask=None, from_mask=None, blocked_encoder_mask=None):
        x = x + self.attention(self.norm(x), attention_mask)
        return x + self.feed(x)


class TiedHead(nn.Module):
    """The head is a function that reads the embedding; vectors may be put before the text, with a mask of their own."""

    def __init__(self, vocab=61, dim=32):
        super().__init__()
        self.embedding, self.position = nn.Embedding(vocab, dim), nn.Embedding(64, dim)
        self.attention, self.feed, self.norm = Masked(dim), FeedForward(dim), nn.LayerNorm(dim)
        self.last, self.to_logits = nn.LayerNorm(dim), lambda x: x @ self.embedding.weight.mT

    def forward(self, ids, mask=None, before_embeds=None, before_mask=None):
        x = self.embedding(ids) + self.position.weight[: ids.shape[1]]
        if before_embeds is not None:
            x, mask = torch.cat([before_embeds, x], 1), torch.cat([before_mask, mask], 1)
        x = x + self.attention(self.norm(x), mask)
        return self.to_logits(self.last(x + self.feed(x)))


CASES = [
    Case("OneFactor", "norm"),
    Case("Silenced", "block"),
    Case("Masked", "attention"),
    Case("GatedPreNorm", "encoder"),
    Case("Bottleneck", "block"),
    Case("OtherForm", "block"),
    Case("TiedHead", "encoder"),
]
