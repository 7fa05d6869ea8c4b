"""Attention whose rotary positions are wrong."""

import math

import torch
from torch import nn

from bench.checking.case import Case
from bench.checking.first.attention_formula_b import Grouped
from bench.checking.first.attention_formula_right import rotated


class ValuesTurned(Grouped):
    def forward(self, x):
        q, k, v = (rotated(t) for t in self.projected(x))
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        return self.out((q @ k.mT * self.head_dim**-0.5).softmax(-1) @ v)


def interleaved(x, places, base=50.0):
    d = x.shape[-1]
    angle = places[:, None] * base ** (-torch.arange(0, d, 2).to(x) / d)
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).flatten(-2)


class FusedRotary(nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def turned(self, q, k, v, places):
        return interleaved(q, places), interleaved(k, places), v

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = self.turned(q, k, v, torch.arange(T).to(x))
        w = torch.softmax(torch.einsum("bhtd,bhsd->bhts", q, k) / math.sqrt(q.shape[-1]), -1)
        return self.out(torch.einsum("bhts,bhsd->bthd", w, v).reshape(B, T, D))


class ValuesTurnedToo(FusedRotary):
    def turned(self, q, k, v, places):
        return tuple(interleaved(t, places) for t in (q, k, v))


class QueriesOnly(FusedRotary):
    def turned(self, q, k, v, places):
        return interleaved(q, places), k, v


class KeysOnly(Grouped):
    def forward(self, x):
        q, k, v = self.projected(x)
        k = rotated(k).repeat_interleave(2, 1)
        return self.out((q @ k.mT / math.sqrt(self.head_dim)).softmax(-1) @ v.repeat_interleave(2, 1))


class AlongHeads(FusedRotary):
    def turned(self, q, k, v, places):
        q, k = (interleaved(t.transpose(1, 2), torch.arange(self.heads).to(t)).transpose(1, 2) for t in (q, k))
        return q, k, v


class AlongHeadsEarly(Grouped):
    def forward(self, x):
        B, T, _ = x.shape
        q = rotated(self.wq(x).view(B, T, self.n_heads, -1)).transpose(1, 2)
        k = rotated(self.wk(x).view(B, T, self.n_kv_heads, -1)).transpose(1, 2)
        v = self.wv(x).view(B, T, self.n_kv_heads, -1).transpose(1, 2)
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        return self.out((q @ k.mT / math.sqrt(self.head_dim)).softmax(-1) @ v)


class OtherBase(FusedRotary):
    def turned(self, q, k, v, places):
        return interleaved(q, places), interleaved(k, places, base=1000.0), v


class OppositeTurns(FusedRotary):
    def turned(self, q, k, v, places):
        return interleaved(q, places), interleaved(k, -places), v


CASES = [
    Case("ValuesTurned", "attention", "rotary.values"),
    Case("ValuesTurnedToo", "attention", "rotary.values"),
    Case("QueriesOnly", "attention", "rotary.one-side"),
    Case("KeysOnly", "attention", "rotary.one-side"),
    Case("AlongHeads", "attention", "rotary.axis"),
    Case("AlongHeadsEarly", "attention", "rotary.axis"),
    Case("OtherBase", "attention", "rotary.not-relative"),
    Case("OppositeTurns", "attention", "rotary.not-relative"),
    Case("FusedRotary", "attention"),
]
