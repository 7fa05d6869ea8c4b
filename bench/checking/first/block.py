"""Blocks of submodules: residuals, norms and feed-forwards, with a mistake or right."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from bench.checking.case import Case

D, H = 32, 4


class Attention(nn.Module):
    def __init__(self, d=D, h=H, causal=False):
        super().__init__()
        self.h, self.causal = h, causal
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, keys=None):
        B, T, D = x.shape
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k, v = (t.view(B, T, self.h, -1).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.proj(y.transpose(1, 2).reshape(B, T, D))


class FFN(nn.Module):
    def __init__(self, d=D, act=None):
        super().__init__()
        self.fc1, self.fc2, self.act = nn.Linear(d, 3 * d), nn.Linear(3 * d, d), act or nn.GELU()

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class Base(nn.Module):
    def __init__(self, d=D):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = nn.LayerNorm(d), Attention(d), nn.LayerNorm(d), FFN(d)


class PreNormRight(Base):
    """A pre-norm block."""

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class PostNormRight(Base):
    """A post-norm block, as in the first paper."""

    def forward(self, x):
        x = self.ln_1(x + self.attn(x))
        return self.ln_2(x + self.mlp(x))


class ParallelRight(Base):
    def forward(self, x):
        return x + self.attn(self.ln_1(x)) + self.mlp(self.ln_2(x))


class OneNormParallelRight(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.attn, self.mlp = nn.LayerNorm(D), Attention(), FFN()

    def forward(self, hidden_states):
        h = self.norm(hidden_states)
        return self.attn(h) + self.mlp(h) + hidden_states


class ReorderedRight(Base):
    def forward(self, x):
        x = x + self.ln_1(self.attn(x))
        return x + self.ln_2(self.mlp(x))


class SandwichRight(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.f = Attention(), FFN()
        self.n = nn.ModuleList(nn.RMSNorm(D) for _ in range(4))

    def forward(self, x):
        x = x + self.n[1](self.a(self.n[0](x)))
        x += self.n[3](self.f(self.n[2](x)))
        return x


class LayerScaleRight(Base):
    def __init__(self):
        super().__init__()
        self.gamma_1, self.gamma_2 = nn.Parameter(torch.full((D,), 1e-2)), nn.Parameter(torch.full((D,), 1e-2))

    def forward(self, x):
        x = x + self.gamma_1 * self.attn(self.ln_1(x))
        return x + self.gamma_2 * self.mlp(self.ln_2(x))


class DeepNormRight(Base):
    def __init__(self, layers=2):
        super().__init__()
        self.alpha = (2 * layers) ** 0.25

    def forward(self, x):
        x = self.ln_1(self.alpha * x + self.attn(x))
        return self.ln_2(self.alpha * x + self.mlp(x))


class TwiceTheStreamRight(Base):
    """The sublayers give their own residual back."""

    def attend(self, x):
        return x + self.attn(self.ln_1(x))

    def forward(self, x):
        x = self.attend(x)
        return torch.add(x, self.mlp(self.ln_2(x)))


class NoSkipAttention(Base):
    def forward(self, x):
        x = self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NoSkipFeedForward(Base):
    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return self.mlp(self.ln_2(x))


class PostNoSkip(Base):
    def forward(self, x):
        x = self.ln_1(self.attn(x))
        return self.ln_2(x + self.mlp(x))


class InnerSkipTwice(Base):
    def sub(self, x):
        return x + self.attn(self.ln_1(x))

    def forward(self, x):
        x = x + self.sub(x)
        return x + self.mlp(self.ln_2(x))


class MergedTwice(Base):
    def forward(self, x):
        a = self.attn(self.ln_1(x))
        x = x + a
        x = x + x
        return x + self.mlp(self.ln_2(x))


class SkipFromNorm(Base):
    def forward(self, x):
        x = self.ln_1(x)
        x = x + self.attn(x)
        x = self.ln_2(x)
        return x + self.mlp(x)


class SecondSkipFromNorm(Base):
    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        h = self.ln_2(x)
        return h + self.mlp(h)


class Stale(Base):
    def forward(self, x):
        u = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(u))


class PostStale(Base):
    def forward(self, x):
        u = self.ln_1(x + self.attn(x))
        return self.ln_2(x + self.mlp(u))


class HalfBranch(Base):
    def forward(self, x):
        x = x + 0.5 * self.attn(self.ln_1(x))
        return x + 0.5 * self.mlp(self.ln_2(x))


class RootTwo(Base):
    def forward(self, x):
        x = (x + self.attn(self.ln_1(x))) / math.sqrt(2)
        return x + self.mlp(self.ln_2(x))


class PreNormBlock(Base):
    """Pre-norm."""

    def forward(self, x):
        x = self.ln_1(x + self.attn(x))
        return self.ln_2(x + self.mlp(x))


class ClaimsFirst(Base):
    def __init__(self, norm_first=False):
        super().__init__()
        self.norm_first = norm_first

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NoActivation(Base):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(D, 4 * D), nn.Dropout(0.0), nn.Linear(4 * D, D))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NoActivationCalled(PreNormRight):
    def __init__(self):
        super().__init__()
        self.mlp = FFN(act=nn.Identity())


class SaysGelu(PreNormRight):
    def __init__(self, activation="gelu"):
        super().__init__()
        self.activation = activation
        self.mlp = FFN(act=nn.ReLU())


class SaysExactGelu(PreNormRight):
    """A block whose feed-forward bends with the exact (erf) GELU."""

    def __init__(self):
        super().__init__()
        self.mlp = FFN(act=nn.GELU(approximate="tanh"))


FAULTS = {
    "residual.missing": ("NoSkipAttention", "NoSkipFeedForward", "PostNoSkip"),
    "residual.doubled": ("InnerSkipTwice", "MergedTwice"),
    "residual.from-norm": ("SkipFromNorm", "SecondSkipFromNorm"),
    "residual.stale": ("Stale", "PostStale"),
    "residual.scale": ("HalfBranch", "RootTwo"),
    "norm.placement": ("PreNormBlock", "ClaimsFirst"),
    "activation.missing": ("NoActivation", "NoActivationCalled"),
    "activation.variant": ("SaysGelu", "SaysExactGelu"),
}
RIGHT = (
    "PreNormRight", "PostNormRight", "ParallelRight", "OneNormParallelRight", "ReorderedRight", "SandwichRight", "LayerScaleRight", "DeepNormRight",
    "TwiceTheStreamRight",
)  # fmt: skip
CASES = [Case(name, "block", fault) for fault, names in FAULTS.items() for name in names]
CASES += [Case(name, "block") for name in RIGHT]
