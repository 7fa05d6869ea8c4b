"""A small GPT written as people write it, each habit and each mistake an option; and the same written in another style."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH, HEADS, KV_HEADS, HIDDEN, VOCAB, CONTEXT = 24, 4, 2, 40, 37, 19


@dataclass(frozen=True)
class Habits:
    """What the author does."""

    activation: str = "erf"
    norm: str = "layer"
    eps: float = 1e-5
    scale: str = "1/sqrt(d)"
    mask: str = "causal"
    window: int = 0
    softcap: float = 0.0
    axis: int = -1
    pairing: str = "half"
    base: float = 100.0
    turning: int = 6
    start: int = 0
    grouped: str = "repeat"
    order: str = "qkv"
    placement: str = "pre"
    residual: str = "both"
    final: bool = True
    embedding: float = 1.0
    positions: int = 1
    shift: int = 0
    cap: float = 0.0
    gate: str = "gate"
    drop: bool = False
    split: str = "transpose"
    bias: bool = True
    layers: int = 1


class Norm(nn.Module):
    def __init__(self, habits: Habits) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + 0.3 * torch.randn(WIDTH))
        self.bias = nn.Parameter(0.2 * torch.randn(WIDTH))
        self.habits = habits

    def forward(self, x: Tensor) -> Tensor:
        kind, eps = self.habits.norm, self.habits.eps
        if kind == "torch":
            return F.layer_norm(x, (WIDTH,), self.weight, self.bias, eps)
        if kind in ("rms", "offset"):
            gain = 1 + self.weight if kind == "offset" else self.weight
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * gain
        axis = 1 if kind == "tokens" else -1
        c = x - x.mean(axis, keepdim=True)
        var = x.var(axis, keepdim=True, unbiased=kind == "unbiased")
        c = c / (var.sqrt() + eps) if kind == "outside" else c / torch.sqrt(var + eps)
        return c * self.weight + (0 if kind == "unshifted" else self.bias)


def turned(x: Tensor, habits: Habits) -> Tensor:
    """(B,H,T,d) rotated."""
    r, half = habits.turning, habits.turning // 2
    speeds = habits.base ** (-2 * torch.arange(half, dtype=x.dtype) / r)
    angles = (torch.arange(x.shape[2], dtype=x.dtype) + habits.start)[:, None] * speeds
    part = x[..., :r]
    if habits.pairing == "half":
        one, other = part[..., :half], part[..., half:]
        cos, sin = angles.cos(), angles.sin()
        made = torch.cat((one * cos - other * sin, one * sin + other * cos), -1)
    else:
        pairs = torch.view_as_complex(part.reshape(*part.shape[:-1], half, 2).contiguous())
        made = torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)
    return torch.cat((made, x[..., r:]), -1)


class Attention(nn.Module):
    def __init__(self, habits: Habits) -> None:
        super().__init__()
        d = WIDTH // HEADS
        self.q = nn.Linear(WIDTH, WIDTH)
        self.k = nn.Linear(WIDTH, KV_HEADS * d)
        self.v = nn.Linear(WIDTH, KV_HEADS * d)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.habits = habits

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        d, habits = D // HEADS, self.habits
        q, k, v = self.q(x), self.k(x), self.v(x)
        q = q.view(B, T, HEADS, d).transpose(1, 2) if habits.split == "transpose" else q.view(B, HEADS, T, d)
        k, v = (y.view(B, T, KV_HEADS, d).transpose(1, 2) for y in (k, v))
        if habits.order == "qvk":
            k, v = v, k
        q, k = turned(q, habits), turned(k, habits)
        if habits.grouped == "repeat":
            k, v = (y.repeat_interleave(HEADS // KV_HEADS, 1) for y in (k, v))
        else:
            k, v = (y.repeat(1, HEADS // KV_HEADS, 1, 1) for y in (k, v))
        scores = q @ k.transpose(-2, -1)
        scores = (
            scores
            * {"1/sqrt(d)": d**-0.5, "1": 1.0, "1/sqrt(D)": D**-0.5, "sqrt(d)": d**0.5, "1/d": 1 / d}[habits.scale]
        )
        if habits.softcap:
            scores = habits.softcap * torch.tanh(scores / habits.softcap)
        distance = torch.arange(T)[:, None] - torch.arange(T)
        seen = distance >= {"causal": 0, "strict": 1, "none": -T}[habits.mask]
        if habits.window:
            seen = seen & (distance < habits.window)
        seen[0, 0] = True
        weights = scores.masked_fill(~seen, float("-inf")).softmax(habits.axis).nan_to_num()
        mixed = weights @ v
        return self.out(mixed.transpose(1, 2).reshape(B, T, D))


class FeedForward(nn.Module):
    def __init__(self, habits: Habits) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(WIDTH, HIDDEN), nn.Linear(WIDTH, HIDDEN)
        self.down = nn.Linear(HIDDEN, WIDTH)
        self.habits = habits

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate(x), self.up(x)
        if self.habits.gate == "up":
            gate, up = up, gate
        bent = {
            "erf": F.gelu,
            "tanh": lambda z: 0.5 * z * (1 + torch.tanh(0.7978845608028654 * (z + 0.044715 * z**3))),
            "silu": F.silu,
            "relu": F.relu,
            "quick": lambda z: z * torch.sigmoid(1.702 * z),
        }[self.habits.activation](gate)
        y = bent * up
        y = F.dropout(y, 0.5) if self.habits.drop else y
        return self.down(y) if self.habits.bias else F.linear(y, self.down.weight)


class Block(nn.Module):
    def __init__(self, habits: Habits) -> None:
        super().__init__()
        self.norm1, self.attention = Norm(habits), Attention(habits)
        self.norm2, self.feedforward = Norm(habits), FeedForward(habits)
        self.habits = habits

    def forward(self, x: Tensor) -> Tensor:
        kind = self.habits.residual
        if self.habits.placement == "post":
            u = self.norm1(x + self.attention(x))
            return self.norm2(u + self.feedforward(u))
        n = self.norm1(x)
        f = self.attention(n)
        if self.habits.placement == "parallel":
            return x + f + self.feedforward(self.norm2(x))
        u = {"both": lambda: x + f, "missing": lambda: f, "norm": lambda: n + f, "scaled": lambda: x + 0.5 * f}[
            kind if kind != "stale" else "both"
        ]()
        g = self.feedforward(self.norm2(u))
        return (x if kind == "stale" else u) + g


class Gpt(nn.Module):
    def __init__(self, habits: Habits) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCAB, WIDTH), nn.Embedding(CONTEXT + 2, WIDTH)
        self.blocks = nn.ModuleList(Block(habits) for _ in range(habits.layers))
        self.norm, self.head = Norm(habits), nn.Linear(WIDTH, VOCAB, bias=False)
        self.habits = habits

    def forward(self, ids: Tensor) -> Tensor:
        places = self.places(torch.arange(ids.shape[1]) + self.habits.shift)
        x = self.tokens(ids)
        if self.habits.embedding != 1:
            x = x * self.habits.embedding
        for _ in range(self.habits.positions):
            x = x + places
        for block in self.blocks:
            x = block(x)
        x = self.norm(x) if self.habits.final else x
        logits = self.head(x)
        return self.habits.cap * torch.tanh(logits / self.habits.cap) if self.habits.cap else logits


class Other(nn.Module):
    """The same model by another hand: one fused projection, the fused kernel, queries scaled first, other norms and names."""

    def __init__(self, habits: Habits) -> None:
        super().__init__()
        d = WIDTH // HEADS
        self.wte, self.wpe = nn.Embedding(VOCAB, WIDTH), nn.Embedding(CONTEXT + 2, WIDTH)
        self.h = nn.ModuleList()
        for _ in range(habits.layers):
            parts: dict[str, Any] = {
                "ln_1": nn.LayerNorm(WIDTH, habits.eps),
                "c_attn": nn.Linear(WIDTH, WIDTH + 2 * KV_HEADS * d),
                "c_proj": nn.Linear(WIDTH, WIDTH),
                "ln_2": nn.LayerNorm(WIDTH, habits.eps),
                "fc": nn.Linear(WIDTH, 2 * HIDDEN),
                "proj": nn.Linear(HIDDEN, WIDTH),
            }
            self.h.append(nn.ModuleDict(parts))
        self.ln_f, self.lm_head = nn.LayerNorm(WIDTH, habits.eps), nn.Linear(WIDTH, VOCAB, bias=False)
        self.habits = habits

    def attend(self, part: Any, x: Tensor) -> Tensor:
        B, T, D = x.shape
        d, habits = D // HEADS, self.habits
        q, k, v = part["c_attn"](x).split([D, KV_HEADS * d, KV_HEADS * d], -1)
        q = turned(torch.einsum("bthd->bhtd", q.reshape(B, T, HEADS, d)), habits)
        k = turned(k.reshape(B, T, KV_HEADS, d).permute(0, 2, 1, 3), habits)
        v = v.reshape(B, T, KV_HEADS, d).permute(0, 2, 1, 3)
        mask = torch.ones(T, T, dtype=torch.bool).tril()
        if habits.window:
            mask = mask.triu(1 - habits.window)
        mask = mask if habits.mask == "causal" else None
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        return part["c_proj"](y.transpose(1, 2).contiguous().view(B, T, D))

    def forward(self, ids: Tensor) -> Tensor:
        habits = self.habits
        x = self.wte(ids) + self.wpe.weight[habits.shift : ids.shape[1] + habits.shift]
        for part in self.h:
            x = x + self.attend(part, part["ln_1"](x))
            gate, up = part["fc"](part["ln_2"](x)).chunk(2, -1)
            bent = F.gelu(gate, approximate="none" if habits.activation == "erf" else "tanh")
            x = part["proj"](up * bent) + x
        x = self.ln_f(x) if habits.final else x
        return self.lm_head(x)


def gpt(**habits: Any) -> Gpt:
    """A model with these habits; the weights of all are the same."""
    torch.manual_seed(3)
    return Gpt(Habits(**habits))


def other(**habits: Any) -> Other:
    """The same weights in the other's hands."""
    ours, made = gpt(**habits).state_dict(), Other(Habits(**habits))
    names = {"ln_1": "norm1", "ln_2": "norm2", "c_proj": "attention.out", "proj": "feedforward.down"}
    with torch.no_grad():
        for n in range(made.habits.layers):
            for end in ("weight", "bias"):
                for theirs, mine in names.items():
                    getattr(made.h[n][theirs], end).copy_(ours[f"blocks.{n}.{mine}.{end}"])
                qkv = [ours[f"blocks.{n}.attention.{letter}.{end}"] for letter in "qkv"]
                getattr(made.h[n]["c_attn"], end).copy_(torch.cat(qkv))
                both = [ours[f"blocks.{n}.feedforward.{part}.{end}"] for part in ("gate", "up")]
                getattr(made.h[n]["fc"], end).copy_(torch.cat(both))
        for end in ("weight", "bias"):
            getattr(made.ln_f, end).copy_(ours[f"norm.{end}"])
        made.wte.weight.copy_(ours["tokens.weight"])
        made.wpe.weight.copy_(ours["places.weight"])
        made.lm_head.weight.copy_(ours["head.weight"])
    return made
