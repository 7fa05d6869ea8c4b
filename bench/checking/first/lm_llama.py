"""LLaMA-like models: RMSNorm, rotary positions, grouped keys and values, caches inside the model or the caller's own."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

from bench.checking.case import Case


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotate(x, places):
    half = x.shape[-1] // 2
    freqs = 100.0 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angles = (places[:, None].float() * freqs).to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)


class Attention(nn.Module):
    """Keys and values in buffers of its own."""

    def __init__(self, dim, n_heads, n_kv_heads, max_seq_len):
        super().__init__()
        self.h, self.k, self.d = n_heads, n_kv_heads, dim // n_heads
        self.wq = nn.Linear(dim, n_heads * self.d, bias=False)
        self.wk = nn.Linear(dim, n_kv_heads * self.d, bias=False)
        self.wv = nn.Linear(dim, n_kv_heads * self.d, bias=False)
        self.wo = nn.Linear(n_heads * self.d, dim, bias=False)
        self.register_buffer("cache_k", torch.zeros(4, max_seq_len, n_kv_heads, self.d), persistent=False)
        self.register_buffer("cache_v", torch.zeros(4, max_seq_len, n_kv_heads, self.d), persistent=False)

    def places(self, start, length, device):
        return torch.arange(start, start + length, device=device)

    def keep(self, start, xk, xv):
        b, t = xk.shape[:2]
        self.cache_k = self.cache_k.to(xk).detach().clone()
        self.cache_v = self.cache_v.to(xv).detach().clone()
        self.cache_k[:b, start : start + t], self.cache_v[:b, start : start + t] = xk.detach(), xv.detach()
        if start == 0:
            return xk, xv
        return self.cache_k[:b, : start + t], self.cache_v[:b, : start + t]

    def mask(self, t, s, device):
        return torch.full((t, s), float("-inf"), device=device).triu(s - t + 1)

    def forward(self, x, start):
        b, t, _ = x.shape
        places = self.places(start, t, x.device)
        q = rotate(self.wq(x).view(b, t, self.h, self.d).transpose(1, 2), places)
        k = rotate(self.wk(x).view(b, t, self.k, self.d).transpose(1, 2), places).transpose(1, 2)
        k, v = self.keep(start, k, self.wv(x).view(b, t, self.k, self.d))
        k, v = (z.transpose(1, 2).repeat_interleave(self.h // self.k, 1) for z in (k, v))
        scores = q @ k.transpose(2, 3) / math.sqrt(self.d) + self.mask(t, k.shape[2], x.device).to(x.dtype)
        return self.wo((F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(b, t, -1))


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.w1, self.w3 = nn.Linear(dim, hidden_dim, bias=False), nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Layer(nn.Module):
    def __init__(self, attention, dim, n_heads, n_kv_heads, max_seq_len):
        super().__init__()
        self.attention = attention(dim, n_heads, n_kv_heads, max_seq_len)
        self.feed_forward = FeedForward(dim, 2 * dim)
        self.attention_norm, self.ffn_norm = RMSNorm(dim), RMSNorm(dim)

    def forward(self, x, start):
        h = x + self.attention(self.attention_norm(x), start)
        return h + self.feed_forward(self.ffn_norm(h))


class Llama(nn.Module):
    attention = Attention

    def __init__(self, vocab_size=47, dim=24, n_heads=6, n_kv_heads=2, max_seq_len=24):
        super().__init__()
        self.max_seq_len = max_seq_len
        self.tok_embeddings = nn.Embedding(vocab_size, dim)
        self.layers = nn.ModuleList(Layer(self.attention, dim, n_heads, n_kv_heads, max_seq_len) for _ in range(2))
        self.norm = RMSNorm(dim)
        self.output = nn.Linear(dim, vocab_size, bias=False)

    def forward(self, tokens, start_pos: int = 0):
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h, start_pos)
        return self.output(self.norm(h))


class FromZero(Attention):
    def places(self, start, length, device):
        return torch.arange(length, device=device)


class PastUnmasked(Attention):
    def mask(self, t, s, device):
        return torch.zeros(t, s, device=device) if t > 1 and s > t else super().mask(t, s, device)


class FirstKeys(Attention):
    """The triangle of one forward, also where there are more keys than queries."""

    def mask(self, t, s, device):
        return torch.full((t, s), float("-inf"), device=device).triu(1)


class AllKept(Attention):
    """Everything that was ever written is seen."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.past = None

    def keep(self, start, xk, xv):
        if (start == 0 and self.past is None) or start == 0:
            self.past = (xk, xv)
        else:
            self.past = (torch.cat([self.past[0], xk], 1), torch.cat([self.past[1], xv], 1))
        return self.past


class NeverEmptied(AllKept):
    def keep(self, start, xk, xv):
        if self.past is not None and self.past[0].shape[0] == xk.shape[0]:
            xk, xv = torch.cat([self.past[0], xk], 1), torch.cat([self.past[1], xv], 1)
        self.past = (xk, xv)
        return self.past


class Ring(Attention):
    """When it is full, the last place is overwritten again and again."""

    def keep(self, start, xk, xv):
        last = self.cache_k.shape[1] - xk.shape[1]
        return super().keep(min(start, last), xk, xv)


class Loud(Attention):
    def mask(self, t, s, device):
        return torch.full((t, s), -10000.0, device=device).triu(s - t + 1)


def llama(attention):
    return type("Llama", (Llama,), {"attention": attention})


kept_all = llama(AllKept)
restarting = llama(FromZero)
unmasked_past = llama(PastUnmasked)
first_keys = llama(FirstKeys)
never_emptied = llama(NeverEmptied)
ring = llama(Ring)
loud = llama(Loud)


class Cache:
    """Keys and values of all layers, the caller's."""

    def __init__(self, n_layers):
        self.keys, self.values = [None] * n_layers, [None] * n_layers

    def length(self):
        return 0 if self.keys[0] is None else self.keys[0].shape[2]

    def update(self, layer, k, v):
        if self.keys[layer] is not None:
            k, v = torch.cat([self.keys[layer], k], 2), torch.cat([self.values[layer], v], 2)
        self.keys[layer], self.values[layer] = k, v
        return k, v


class Fused(nn.Module):
    """SDPA, one matrix for q, k and v, a cache of the caller's, ALiBi-free rotary, no biases."""

    def __init__(self, dim, heads, index):
        super().__init__()
        self.heads, self.index = heads, index
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def kept(self, cache, k, v):
        return (k, v) if cache is None else cache.update(self.index, k, v)

    def first(self, cache):
        return 0 if cache is None or cache.keys[self.index] is None else cache.keys[self.index].shape[2]

    def attend(self, q, k, v):
        t, s = q.shape[2], k.shape[2]
        visible = torch.ones(t, s, dtype=torch.bool, device=q.device).tril(s - t)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=visible)

    def forward(self, x, cache):
        b, t, c = x.shape
        q, k, v = self.to_qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        start = self.first(cache)
        places = torch.arange(start, start + t, device=x.device)
        k, v = self.kept(cache, rotate(k, places), v)
        return self.to_out(self.attend(rotate(q, places), k, v).transpose(1, 2).reshape(b, t, c))


class Owned(nn.Module):
    part = Fused

    def __init__(self, num_tokens=43, dim=32, depth=2, heads=4):
        super().__init__()
        self.depth = depth
        self.token_emb = nn.Embedding(num_tokens, dim)
        self.attns = nn.ModuleList(self.part(dim, heads, index) for index in range(depth))
        self.ffs = nn.ModuleList(FeedForward(dim, 3 * dim) for _ in range(depth))
        self.norms = nn.ModuleList(RMSNorm(dim) for _ in range(2 * depth + 1))
        self.to_logits = nn.Linear(dim, num_tokens, bias=False)

    def new_cache(self):
        return Cache(self.depth)

    def forward(self, ids, cache=None):
        x = self.token_emb(ids)
        for index, (attn, ff) in enumerate(zip(self.attns, self.ffs, strict=True)):
            x = x + attn(self.norms[2 * index](x), cache)
            x = x + ff(self.norms[2 * index + 1](x))
        return self.to_logits(self.norms[-1](x))


class IsCausal(Fused):
    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class OneSlot(Fused):
    def kept(self, cache, k, v):
        return (k, v) if cache is None else cache.update(0, k, v)


class LateStart(Fused):
    """Its place is read off the first layer, which has moved on already."""

    def first(self, cache):
        return 0 if cache is None else cache.length()


class NoTurn(Fused):
    def first(self, cache):
        return 0


def owned(part):
    return type("Owned", (Owned,), {"part": part})


is_causal, one_slot, late_start, no_turn = owned(IsCausal), owned(OneSlot), owned(LateStart), owned(NoTurn)

CASES = [
    Case("Llama", "lm"),
    Case("kept_all", "lm"),
    Case("Owned", "lm", guess=True),
    Case("restarting", "lm", "position.offset"),
    Case("unmasked_past", "lm", "cache.prefill-unmasked"),
    Case("first_keys", "lm", "causal.top-left"),
    Case("never_emptied", "lm", "cache.stale"),
    Case("ring", "lm", "cache.overflow"),
    Case("loud", "lm", "causal.finite-mask"),
    Case("is_causal", "lm", "causal.top-left"),
    Case("one_slot", "lm", "cache.shared-between-blocks"),
    Case("late_start", "lm", "position.offset"),
    Case("no_turn", "lm", "position.offset"),
]
