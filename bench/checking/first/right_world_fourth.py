"""Right code as published packages write it, each once taken for a mistake: the fourth file of it."""

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case
from bench.checking.first.right_world_more import FeedForward, Plain


class TwoMasks(Plain):
    """Attention that takes its mask in either of two meanings."""

    causal = False

    def hides(self, length):
        """Creates causal attention mask. Float mask where 1.0 indicates masked, 0.0 indicates not-masked."""
        return torch.zeros(length)

    def forward(self, x, attention_mask=None, input_mask=None):
        r"""Scores, and what they are summed with.

        input_mask (`Tensor` of shape `(rows, positions)`, *optional*):
            Mask to avoid looking at padding. Negative of `attention_mask`, i.e. with 0 for real tokens and 1 for padding.

            Mask values selected in `[0, 1]`:

            - 1 for tokens that are **masked**,
            - 0 for tokens that are **not masked**.
        """
        q, k, v = self.split(self.to_q(x), self.to_k(x), self.to_v(x))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if input_mask is None and attention_mask is not None:
            input_mask = 1.0 - attention_mask.to(x.dtype)
        if input_mask is not None:
            scores = scores - 1e30 * input_mask[:, None, None].to(x.dtype)
        return self.merge(scores.softmax(-1) @ v)


class OptionFirst(Plain):
    """The first weights belong to an option that is off, and their type is asked for."""

    def __init__(self, dim=32, heads=4, shorter=False):
        super().__init__(dim, heads)
        self.shorten = nn.Linear(dim, dim)
        self._modules = {"shorten": self._modules.pop("shorten"), **self._modules}
        self.shorter = shorter

    def forward(self, x):
        first = next(self.parameters())
        x = x.to(device=first.device, dtype=first.dtype)
        q, k, v = self.split(self.to_q(x), self.to_k(x), self.to_v(x))
        if self.shorter:
            k = self.split(self.shorten(x))[0]
        return self.merge(F.scaled_dot_product_attention(q, k, v))


class Mixer(nn.Module):
    """Each position mixes the states of all layers before, in shares of its own."""

    def __init__(self, dim, layers):
        super().__init__()
        self.norm, self.to_shares = nn.LayerNorm(dim), nn.Linear(dim, layers)

    def forward(self, x, states):
        shares = self.to_shares(self.norm(x)).softmax(-1)
        return torch.einsum("lbnd,bnl->bnd", torch.stack(states), shares)


class Mixed(nn.Module):
    """Layers that read a mixture of all states before them; the first has one."""

    def __init__(self, dim=32, depth=3):
        super().__init__()
        self.mixers = nn.ModuleList([Mixer(dim, layer + 1) for layer in range(depth)])
        self.feeds = nn.ModuleList([FeedForward(dim) for _ in range(depth)])

    def forward(self, x):
        states = [x]
        for mixer, feed in zip(self.mixers, self.feeds, strict=True):
            read = mixer(x, states)
            x = x + feed(read)
            states.append(x)
        return x


def in_eval(function):
    def inner(self, *args, **kwargs):
        with torch.no_grad():
            return function(self, *args, **kwargs)

    return inner


class Pieces(nn.Module):
    """A causal language model that goes through its text piece by piece, and keeps the keys and values of the piece before."""

    def __init__(self, vocab=61, dim=32, piece=4):
        super().__init__()
        self.piece, self.embedding = piece, nn.Embedding(vocab, dim)
        self.attention, self.feed, self.norm = Plain(dim), FeedForward(dim), nn.LayerNorm(dim)
        self.last, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab, bias=False)

    def attend(self, x, kept):
        a, n = self.attention, self.norm(x)
        q, k, v = a.split(a.to_q(n), a.to_k(n), a.to_v(n))
        both = (k, v) if kept is None else (torch.cat([kept[0], k], -2), torch.cat([kept[1], v], -2))
        hidden = torch.ones(q.shape[-2], both[0].shape[-2], dtype=torch.bool).triu(1 + both[0].shape[-2] - q.shape[-2])
        scores = (q @ both[0].mT / q.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf)
        return a.merge(scores.softmax(-1) @ both[1]), (k, v)

    def skipped(self, x, seen):
        return x + seen

    def forward(self, ids):
        x = self.embedding(ids)
        out, kept = x.new_empty(x.shape[0], 0, x.shape[2]), None
        for piece in x.split(self.piece, dim=1):
            seen, kept = self.attend(piece, kept)
            y = self.skipped(piece, seen)
            out = torch.cat((out, y + self.feed(y)), dim=1)
        return self.head(self.last(out))

    @torch.no_grad()
    @in_eval
    def generate(self, prompt, length, temperature=1.0, filter_thres=0.9):
        while prompt.shape[1] < length:
            logits = self(prompt)[:, -1]
            best = logits.topk(max(1, int((1 - filter_thres) * logits.shape[-1])))
            chosen = torch.multinomial((best.values / temperature).softmax(-1), 1)
            prompt = torch.cat([prompt, best.indices.gather(1, chosen)], 1)
        return prompt


CASES = [
    Case("TwoMasks", "attention"),
    Case("OptionFirst", "attention"),
    Case("Mixed", "encoder"),
    Case("Pieces", "lm"),
]
