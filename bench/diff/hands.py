"""The same small Transformers by two hands that have little in common, each difference of the trial an option."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

V, D, H, K, HIDDEN, LONGEST, LAYERS = 31, 40, 4, 2, 52, 24, 2
d = D // H


@dataclass(frozen=True)
class Spec:
    """What is built: a stack with rotary positions, RMSNorm and gates, or with learned positions, LayerNorm and GELU; and what is wrong in it."""

    rope: bool = True
    pairs: bool = False
    base: float = 10000.0
    turning: int = d
    eps: float = 1e-5
    offset: bool = False
    unbiased: bool = False
    tiled: bool = False
    window: int = 0
    bend: str = ""
    crossed: bool = False
    last_norm: bool = True
    out_bias: bool = True
    transposed: bool = False
    start: int = 0
    order: str = "qkv"
    post: bool = False
    scale: float = d**-0.5
    embedding: float = 1.0
    cap: float = 0.0
    twice: bool = False
    from_norm: bool = False
    tied: bool = False
    query_bias: bool = True
    single: bool = False

    @property
    def keys(self) -> int:
        """Key/value heads."""
        return K if self.rope else H

    def bent(self, x: Tensor) -> Tensor:
        """The activation."""
        name = self.bend or ("silu" if self.rope else "gelu")
        bends = {"silu": F.silu, "relu": F.relu, "gelu": F.gelu, "tanh": lambda z: F.gelu(z, approximate="tanh")}
        return bends[name](x)


class Gain(nn.Module):
    """A norm by PyTorch's functions."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec = spec
        self.weight = nn.Parameter(torch.ones(D))
        if not spec.rope:
            self.bias = nn.Parameter(torch.zeros(D))

    def forward(self, x: Tensor) -> Tensor:
        spec = self.spec
        gain = 1 + self.weight if spec.offset else self.weight
        if spec.rope:
            kind = x.dtype
            x = x.float() if spec.single else x
            return (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + spec.eps)).to(kind) * gain
        if spec.unbiased:
            return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + spec.eps) * gain + self.bias
        return F.layer_norm(x, (D,), gain, self.bias, spec.eps)


class OneBlock(nn.Module):
    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec = spec
        self.input_norm, self.middle_norm = Gain(spec), Gain(spec)
        self.query = nn.Linear(D, D, bias=not spec.rope and spec.query_bias)
        self.key = nn.Linear(D, spec.keys * d, bias=not spec.rope)
        self.value = nn.Linear(D, spec.keys * d, bias=not spec.rope)
        self.merge = nn.Linear(D, D, bias=not spec.rope and spec.out_bias)
        if spec.rope:
            self.gate = nn.Linear(D, HIDDEN, bias=False)
        self.up = nn.Linear(D, HIDDEN, bias=not spec.rope)
        self.down = nn.Linear(HIDDEN, D, bias=not spec.rope)

    def turned(self, x: Tensor) -> Tensor:
        spec = self.spec
        r = spec.turning
        speeds = 1.0 / spec.base ** (torch.arange(0, r, 2, dtype=torch.float64) / r)
        angles = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64) + spec.start, speeds)
        head, rest = x[..., :r], x[..., r:]
        if spec.pairs:
            cos, sin = (each.repeat_interleave(2, -1).to(x.dtype) for each in (angles.cos(), angles.sin()))
            other = torch.stack((-head[..., 1::2], head[..., ::2]), -1).flatten(-2)
        else:
            cos, sin = (torch.cat((each, each), -1).to(x.dtype) for each in (angles.cos(), angles.sin()))
            other = torch.cat((-head[..., r // 2 :], head[..., : r // 2]), -1)
        return torch.cat((head * cos + other * sin, rest), -1)

    def attend(self, x: Tensor) -> Tensor:
        spec, (B, T, _) = self.spec, x.shape
        q, k, v = (part(x).unflatten(-1, (-1, d)).transpose(1, 2) for part in (self.query, self.key, self.value))
        if spec.order == "qvk":
            k, v = v, k
        if spec.rope:
            q, k = self.turned(q), self.turned(k)
        times = H // spec.keys
        k, v = ((y.repeat(1, times, 1, 1) if spec.tiled else y.repeat_interleave(times, 1)) for y in (k, v))
        seen = torch.ones(T, T, dtype=torch.bool).tril()
        if spec.window:
            seen = seen & torch.ones(T, T, dtype=torch.bool).triu(1 - spec.window)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, scale=spec.scale)
        y = y.transpose(1, 2).reshape(B, T, D)
        return y @ self.merge.weight if spec.transposed else self.merge(y)

    def feed(self, x: Tensor) -> Tensor:
        if not self.spec.rope:
            return self.down(self.spec.bent(self.up(x)))
        gate, up = self.gate(x), self.up(x)
        return self.down(self.spec.bent(up) * gate if self.spec.crossed else self.spec.bent(gate) * up)

    def forward(self, x: Tensor) -> Tensor:
        if self.spec.post:
            x = self.input_norm(x + self.attend(x))
            return self.middle_norm(x + self.feed(x))
        n = self.input_norm(x)
        x = (n if self.spec.from_norm else x) + self.attend(n)
        return x + self.feed(self.middle_norm(x))


class One(nn.Module):
    """Separate projections, the fused kernel, angles as they are needed."""

    def __init__(self, spec: Spec = Spec()) -> None:
        super().__init__()
        self.spec = spec
        self.words = nn.Embedding(V, D)
        if not spec.rope:
            self.places = nn.Embedding(LONGEST + 1, D)
        self.layers = nn.ModuleList(OneBlock(spec) for _ in range(LAYERS))
        self.last_norm = Gain(spec)
        self.head = nn.Linear(D, V, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        spec = self.spec
        x = self.words(tokens) * spec.embedding
        if not spec.rope:
            places = self.places(torch.arange(tokens.shape[1]) + spec.start)
            x = x + places + places if spec.twice else x + places
        for layer in self.layers:
            x = layer(x)
        x = self.last_norm(x) if spec.last_norm else x
        y = F.linear(x, self.words.weight) if spec.tied else self.head(x)
        return spec.cap * torch.tanh(y / spec.cap) if spec.cap else y


class Two(nn.Module):
    """One fused projection, einsum, a finite mask, complex turns, a loop over dictionaries of parts."""

    def __init__(self, spec: Spec = Spec()) -> None:
        super().__init__()
        self.spec, bias = spec, not spec.rope
        self.emb = nn.Embedding(V, D)
        self.pos = None if spec.rope else nn.Parameter(torch.randn(LONGEST + 1, D))
        norm = Gain if spec.rope or spec.unbiased else lambda each: nn.LayerNorm(D, eps=each.eps)
        self.blocks = nn.ModuleList()
        for _ in range(LAYERS):
            wide = 2 * HIDDEN if spec.rope else HIDDEN
            parts = {
                "ln1": norm(spec),
                "qkv": nn.Linear(D, D + 2 * spec.keys * d, bias=bias),
                "proj": nn.Linear(D, D, bias=bias and spec.out_bias),
                "ln2": norm(spec),
                "fc1": nn.Linear(D, wide, bias=bias),
                "fc2": nn.Linear(HIDDEN, D, bias=bias),
            }
            self.blocks.append(nn.ModuleDict(parts))
        self.ln = norm(spec)
        self.lm_head = nn.Linear(D, V, bias=False)

    def turned(self, x: Tensor) -> Tensor:
        """(B,T,H,d)."""
        spec = self.spec
        r = spec.turning
        angles = (torch.arange(x.shape[1]) + spec.start)[:, None] * torch.exp(
            -math.log(spec.base) * torch.arange(r // 2, dtype=torch.float64) * 2 / r
        )
        turns = torch.polar(torch.ones_like(angles), angles)[:, None]
        head = x[..., :r].double()
        if spec.pairs:
            y = torch.view_as_real(torch.view_as_complex(head.unflatten(-1, (-1, 2))) * turns).flatten(-2)
        else:
            z = torch.complex(head[..., : r // 2], head[..., r // 2 :]) * turns
            y = torch.cat((z.real, z.imag), -1)
        return torch.cat((y.to(x.dtype), x[..., r:]), -1)

    def attend(self, part: nn.ModuleDict, x: Tensor) -> Tensor:
        spec = self.spec
        q, k, v = part["qkv"](x).split([D, spec.keys * d, spec.keys * d], -1)
        q, k, v = (y.unflatten(-1, (-1, d)) for y in (q, k, v))
        if spec.order == "qvk":
            k, v = v, k
        if spec.rope:
            q, k = self.turned(q), self.turned(k)
        B, T = x.shape[:2]
        q = q.reshape(B, T, spec.keys, H // spec.keys, d) * spec.scale
        if spec.tiled:
            q = q.reshape(B, T, H // spec.keys, spec.keys, d).transpose(2, 3)
        scores = torch.einsum("btkgd,bskd->bkgts", q, k)
        later = torch.arange(T)[:, None] - torch.arange(T)
        hidden = (later < 0) | (later >= spec.window) if spec.window else later < 0
        weights = (scores + torch.where(hidden, -1e30, 0.0)).softmax(-1)
        y = torch.einsum("bkgts,bskd->btkgd", weights, v)
        y = y.transpose(2, 3) if spec.tiled else y
        y = y.reshape(B, T, D)
        return y @ part["proj"].weight if spec.transposed else part["proj"](y)

    def feed(self, part: nn.ModuleDict, x: Tensor) -> Tensor:
        z = part["fc1"](x)
        if self.spec.rope:
            gate, up = z.tensor_split(2, -1)
            return part["fc2"](self.spec.bent(up) * gate if self.spec.crossed else up * self.spec.bent(gate))
        return part["fc2"](self.spec.bent(z))

    def forward(self, ids: Tensor) -> Tensor:
        spec = self.spec
        x = spec.embedding * self.emb.weight[ids]
        if self.pos is not None:
            rows = self.pos[spec.start : spec.start + ids.shape[1]]
            x = x + (2 if spec.twice else 1) * rows
        for part in self.blocks:
            if spec.post:
                x = part["ln1"](self.attend(part, x) + x)
                x = part["ln2"](self.feed(part, x) + x)
                continue
            n = part["ln1"](x)
            x = self.attend(part, n) + (n if spec.from_norm else x)
            x = self.feed(part, part["ln2"](x)) + x
        x = self.ln(x) if spec.last_norm else x
        y = x @ self.emb.weight.T if spec.tied else self.lm_head(x)
        return torch.tanh(y / spec.cap) * spec.cap if spec.cap else y
