"""Blocks whose parts are made in other ways: gates, norms in 32 bits, convolutions, memories with masks, units that sleep."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from bench.checking.case import Case


class RMSNorm(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(d))

    def forward(self, x):
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight


class CausalAttention(nn.Module):
    def __init__(self, d, heads, causal=True):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.q, self.kv, self.o = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)

    def split(self, x, other):
        q, (k, v) = self.q(x), self.kv(other).chunk(2, -1)
        return [t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, k, v)]

    def forward(self, x, memory=None, keep=None):
        q, k, v = self.split(x, x if memory is None else memory)
        keep = None if keep is None else keep.bool()[:, None, None]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep, is_causal=self.causal)
        return self.o(y.transpose(1, 2).flatten(2))


class GatedAttention(CausalAttention):
    def __init__(self, d, heads):
        super().__init__(d, heads)
        self.gate, self.nq, self.nk = nn.Linear(d, d), RMSNorm(d // heads), RMSNorm(d // heads)

    def forward(self, x):
        T = x.shape[1]
        q, k, v = self.split(x, x)
        scores = 20 * torch.tanh(self.nq(q) @ self.nk(k).mT / math.sqrt(q.shape[-1]) / 20)
        scores = torch.where(torch.ones(T, T, dtype=torch.bool).tril(), scores, scores.new_tensor(-math.inf))
        y = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return self.o(y * torch.sigmoid(self.gate(x)))


class SwiGLU(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w12, self.w3 = nn.Linear(d, 4 * d, bias=False), nn.Linear(2 * d, d, bias=False)

    def act(self, x):
        return F.silu(x)

    def forward(self, x):
        a, b = self.w12(x).chunk(2, -1)
        return self.w3(self.act(a) * b)


class SwiGLUBare(SwiGLU):
    def act(self, x):
        return x


class Bilinear(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        return self.down(self.gate(x) * self.up(x))


class Block(nn.Module):
    attention, feed_forward = CausalAttention, SwiGLU

    def __init__(self, dim=24, heads=3):
        super().__init__()
        self.n1, self.n2 = RMSNorm(dim), RMSNorm(dim)
        self.a, self.f = self.attention(dim, heads), self.feed_forward(dim)

    def forward(self, x):
        x = x + self.a(self.n1(x))
        return x + self.f(self.n2(x))


class GatedRight(Block):
    attention = GatedAttention


class BilinearRight(Block):
    feed_forward = Bilinear


class GateUnbent(Block):
    feed_forward = SwiGLUBare


class GateOption(BilinearRight):
    def __init__(self, dim=24, heads=3, hidden_act="silu"):
        super().__init__(dim, heads)
        self.hidden_act = hidden_act


class SecondFromNorm(Block):
    def forward(self, x):
        x = self.n2(x + self.a(self.n1(x)))
        return x + self.f(x)


class NormSkipped(Block):
    def forward(self, x):
        x = x + self.a(self.n1(x))
        return x + self.f(self.n1(x))


class Mixed(nn.Module):
    def __init__(self, dim=24, heads=3):
        super().__init__()
        self.n1, self.n2, self.a = nn.LayerNorm(dim), nn.LayerNorm(dim), CausalAttention(dim, heads, causal=False)
        self.up, self.down = nn.Linear(dim, 64), nn.Linear(64, dim)

    def ff(self, x):
        return self.down(F.relu(self.up(x)))

    def forward(self, x):
        x = x + self.a(self.n1(x))
        return self.n2(x + self.ff(x))


class MixedTheOtherWay(Mixed):
    def forward(self, x):
        x = self.n1(x + self.a(x))
        return x + self.ff(self.n2(x))


class SwitchedOff(Mixed):
    """Post-norm; its attention sees everything."""

    def forward(self, x):
        x = self.n1(x + self.a(x))
        return self.n2(x + self.ff(x))


class ConvRight(nn.Module):
    """A convolution that looks back alone."""

    causal, pad = True, (2, 0)

    def __init__(self, dim=24, heads=3):
        super().__init__()
        self.n1, self.n2, self.a = nn.LayerNorm(dim), nn.LayerNorm(dim), CausalAttention(dim, heads, self.causal)
        self.c1, self.c2 = nn.Conv1d(dim, 48, 3), nn.Conv1d(48, dim, 1)

    def forward(self, x):
        x = x + self.a(self.n1(x))
        return x + self.c2(F.relu(self.c1(F.pad(self.n2(x).mT, self.pad)))).mT


class ConvAhead(ConvRight):
    pad = (1, 1)


class ConvBothWays(ConvAhead):
    causal = False


class CrossMasked(nn.Module):
    """encoder_attention_mask (B,S) is 1 at real tokens."""

    masked = True

    def __init__(self, hidden_size=24, heads=3):
        super().__init__()
        self.n = nn.ModuleList(nn.LayerNorm(hidden_size) for _ in range(3))
        self.a, self.c = CausalAttention(hidden_size, heads), CausalAttention(hidden_size, heads, causal=False)
        self.f = SwiGLU(hidden_size)

    def kept(self, marks):
        return marks if self.masked else None

    def forward(self, hidden_states, encoder_hidden_states, encoder_attention_mask=None):
        x = hidden_states + self.a(self.n[0](hidden_states))
        x = x + self.c(self.n[1](x), encoder_hidden_states, self.kept(encoder_attention_mask))
        return x + self.f(self.n[2](x))


class CrossMaskDropped(CrossMasked):
    masked = False


class CrossMaskTurned(CrossMasked):
    def kept(self, marks):
        return None if marks is None else marks == 0


def asleep():
    module = SwitchedOff()
    with torch.no_grad():
        module.up.bias[:9] = -50.0
    return module


FAULTS = {
    "activation.missing": ("GateUnbent", "GateOption"),
    "residual.from-norm": ("SecondFromNorm",),
    "parameter.unused": ("NormSkipped",),
    "norm.placement": ("Mixed", "MixedTheOtherWay"),
    "feedforward.mixes-positions": ("ConvAhead",),
    "mask.ignored": ("CrossMaskDropped",),
    "mask.polarity": ("CrossMaskTurned",),
    "weights.dead-units": ("asleep",),
}
RIGHT = ("GatedRight", "BilinearRight", "SwitchedOff", "ConvRight", "ConvBothWays", "CrossMasked")
CASES = [Case(name, "block", fault) for fault, names in FAULTS.items() for name in names]
CASES += [Case(name, "block") for name in RIGHT]
