"""GPTs with learned positions, whose keys and values come back as `past_key_values`."""

from __future__ import annotations

import math
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional as F

from bench.checking.case import Case


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.head_dim = heads, width // heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def visible(self, t, s, past, device):
        return torch.ones(t, s, dtype=torch.bool, device=device).tril(s - t)

    def join(self, past, k, v):
        if past is None:
            return k, v
        return torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)

    def weigh(self, scores, seen):
        return scores.masked_fill(~seen, float("-inf")).softmax(-1)

    def forward(self, x, past=None, keep=None):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.c_attn(x).split(c, dim=2))
        k, v = self.join(past, k, v)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        seen = self.visible(t, k.shape[2], past, x.device)
        if keep is not None:
            # A pad sees itself, so that no row is empty.
            own = torch.eye(k.shape[2], dtype=torch.bool, device=x.device)[-t:]
            seen = seen & (keep[:, None, None, :] | own)
        y = self.weigh(scores, seen) @ v
        return self.c_proj(y.transpose(1, 2).reshape(b, t, c)), (k, v)


class Block(nn.Module):
    def __init__(self, width, heads, attention):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, past=None, keep=None):
        y, present = self.attn(self.ln_1(x), past, keep)
        x = x + y
        return x + self.mlp(self.ln_2(x)), present


class Gpt(nn.Module):
    """A pre-norm GPT."""

    attention = SelfAttention

    def __init__(self, vocab_size=53, n_embd=24, n_head=3, n_layer=2, block_size=32):
        super().__init__()
        self.block_size = block_size
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.h = self.blocks(n_embd, n_head, n_layer)
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)

    def blocks(self, width, heads, layers):
        return nn.ModuleList(Block(width, heads, self.attention) for _ in range(layers))

    def places(self, ids, seen, keep):
        if keep is not None:
            return (keep.long().cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        return torch.arange(seen, seen + ids.shape[1], device=ids.device)

    def past(self, past_key_values, index):
        return None if past_key_values is None else past_key_values[index]

    def embed(self, ids, places):
        return self.wte(ids) + self.wpe(places)

    def between(self, x, places):
        return x

    def final(self, x):
        return self.ln_f(x)

    def loss(self, logits, labels):
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())

    def forward(self, input_ids, attention_mask=None, past_key_values=None, labels=None, use_cache=False):
        seen = 0 if past_key_values is None else past_key_values[0][0].shape[2]
        keep = None if attention_mask is None else attention_mask.bool()
        places = self.places(input_ids, seen, keep)
        x, presents = self.embed(input_ids, places), []
        for index, block in enumerate(self.h):
            x, present = block(self.between(x, places) if index else x, self.past(past_key_values, index), keep)
            presents.append(present)
        logits = self.lm_head(self.final(x))
        loss = None if labels is None else self.loss(logits, labels)
        return SimpleNamespace(logits=logits, loss=loss, past_key_values=tuple(presents) if use_cache else None)


class Leaking(SelfAttention):
    def visible(self, t, s, past, device):
        return torch.ones(t, s, dtype=torch.bool, device=device)


class OneAhead(SelfAttention):
    def visible(self, t, s, past, device):
        return torch.ones(t, s, dtype=torch.bool, device=device).tril(s - t + 1)


class Strict(SelfAttention):
    def visible(self, t, s, past, device):
        seen = torch.ones(t, s, dtype=torch.bool, device=device).tril(s - t - 1)
        seen[:, 0] = True
        return seen


class Alone(SelfAttention):
    def visible(self, t, s, past, device):
        return torch.eye(s, dtype=torch.bool, device=device)[-t:]


class Weak(SelfAttention):
    def weigh(self, scores, seen):
        return scores.masked_fill(~seen, -1e4).softmax(-1)


class TopLeft(SelfAttention):
    def visible(self, t, s, past, device):
        return torch.ones(t, s, dtype=torch.bool, device=device).tril()


class OpenChunks(SelfAttention):
    """No mask where there is a past."""

    def visible(self, t, s, past, device):
        if past is not None:
            return torch.ones(t, s, dtype=torch.bool, device=device)
        return super().visible(t, s, past, device)


class LateValues(SelfAttention):
    """The newest value is not kept."""

    def join(self, past, k, v):
        if past is None:
            return k, v
        return torch.cat([past[0], k], dim=2), torch.cat([past[1], past[1][:, :, -1:].expand_as(v)], dim=2)


class Normed(SelfAttention):
    """Keys that come from the past are scaled once more."""

    def join(self, past, k, v):
        if past is None:
            return k, v
        return torch.cat([past[0] * 0.9, k], dim=2), torch.cat([past[1], v], dim=2)


class Mixing(SelfAttention):
    """Softmax over keys of all rows' mean scores."""

    def weigh(self, scores, seen):
        scores = scores + 0.1 * scores.mean(0, keepdim=True)
        return scores.masked_fill(~seen, float("-inf")).softmax(-1)


def gpt(attention=SelfAttention, **methods):
    return type("Gpt", (Gpt,), {"attention": attention, **methods})


leak = gpt(Leaking)
one_ahead = gpt(OneAhead)
strict = gpt(Strict)
alone = gpt(Alone)
weak = gpt(Weak)
top_left = gpt(TopLeft)
open_chunks = gpt(OpenChunks)
late_values = gpt(LateValues)
scaled_past = gpt(Normed)
mixing = gpt(Mixing)


def from_zero(self, ids, seen, keep):
    return Gpt.places(self, ids, 0, keep)


def one_behind(self, ids, seen, keep):
    return Gpt.places(self, ids, max(seen - 1, 0), keep)


restart = gpt(places=from_zero)
drift = gpt(places=one_behind)
no_places = gpt(embed=lambda self, ids, places: self.wte(ids))
same_place = gpt(embed=lambda self, ids, places: self.wte(ids) + self.wpe(torch.zeros_like(places)))
again = gpt(between=lambda self, x, places: x + self.wpe(places))
first_past = gpt(past=lambda self, past, index: None if past is None else past[0])
no_final = gpt(final=lambda self, x: x)
from_pad = gpt(places=lambda self, ids, seen, keep: torch.arange(seen, seen + ids.shape[1], device=ids.device))
unshifted = gpt(loss=lambda self, logits, labels: F.cross_entropy(logits.flatten(0, 1), labels.flatten()))
two_ahead = gpt(
    loss=lambda self, logits, labels: F.cross_entropy(logits[:, :-2].flatten(0, 1), labels[:, 2:].flatten())
)
probabilities = gpt(
    loss=lambda self, logits, labels: F.cross_entropy(logits.softmax(-1)[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
)


def row_means(self, logits, labels):
    each = F.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:], reduction="none")
    real = labels[:, 1:] != -100
    return (each.sum(1) / real.sum(1)).mean()


def divided_by_all(self, logits, labels):
    each = F.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:], reduction="none")
    return each.mean()


means = gpt(loss=row_means)
all_counted = gpt(loss=divided_by_all)


class OneBlock(Gpt):
    def blocks(self, width, heads, layers):
        return nn.ModuleList([Block(width, heads, self.attention)] * layers)


class MaskUnused(Gpt):
    def forward(self, input_ids, attention_mask=None, labels=None):
        return super().forward(input_ids, labels=labels).logits


class Dropping(Gpt):
    def final(self, x):
        return F.dropout(self.ln_f(x), 0.1)


CASES = [
    Case("Gpt", "lm"),
    Case("Gpt", "lm", guess=True),
    Case("leak", "lm", "causal.future-leak"),
    Case("one_ahead", "lm", "causal.future-leak"),
    Case("strict", "lm", "causal.self-masked"),
    Case("alone", "lm", "causal.past-lost"),
    Case("weak", "lm", "causal.finite-mask"),
    Case("top_left", "lm", "causal.top-left"),
    Case("open_chunks", "lm", "cache.prefill-unmasked"),
    Case("late_values", "lm", "cache.mismatch"),
    Case("scaled_past", "lm", "cache.mismatch"),
    Case("mixing", "lm", "batch.mixing"),
    Case("restart", "lm", "position.offset"),
    Case("drift", "lm", "position.offset"),
    Case("no_places", "lm", "position.unused"),
    Case("same_place", "lm", "position.unused"),
    Case("again", "lm", "position.every-block"),
    Case("first_past", "lm", "cache.shared-between-blocks"),
    Case("no_final", "lm", "norm.final-missing"),
    Case("from_pad", "lm", "position.left-padding"),
    Case("unshifted", "lm", "loss.unshifted"),
    Case("two_ahead", "lm", "loss.shifted-twice"),
    Case("probabilities", "lm", "loss.double-softmax"),
    Case("means", "lm", "loss.mean-of-means"),
    Case("all_counted", "lm", "loss.pads-counted"),
    Case("OneBlock", "lm", "blocks.shared"),
    Case("MaskUnused", "lm", "mask.ignored"),
    Case("Dropping", "lm", "dropout.active-in-eval"),
]
