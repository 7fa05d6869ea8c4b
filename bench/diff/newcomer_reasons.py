"""The third trial, a newcomer's: pairs whose parting was found, and whose reason was false, missing, or two. Mended on these very pairs: no blind count."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench.diff.cases import PLAIN, ROPE, Trial, Written, moved, ours
from bench.diff.cases import Layer as Whole
from bench.diff.hands import HIDDEN, LAYERS, LONGEST, D, H, K, V

d = D // H


class Norm(nn.Module):
    """RMSNorm, in float32 inside, as a known library has it."""

    def __init__(self, wrong: frozenset[str], eps: float = 1e-5) -> None:
        super().__init__()
        self.wrong, self.eps = wrong, eps
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x: Tensor) -> Tensor:
        y = x.float() if "island" in self.wrong else x
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        gain = 1 + self.weight if "offset" in self.wrong else self.weight
        return gain * y.to(x.dtype)


def turned(x: Tensor) -> Tensor:
    """The halves of each head (B,H,T,d) turned."""
    width = x.shape[-1]
    speeds = 10000.0 ** (-torch.arange(0, width, 2, dtype=x.dtype) / width)
    angles = torch.outer(torch.arange(x.shape[-2], dtype=x.dtype), speeds).repeat(1, 2)
    one, other = x.chunk(2, -1)
    return x * angles.cos() + torch.cat((-other, one), -1) * angles.sin()


class Grouped(nn.Module):
    """Attention with fewer keys than queries, a mask of -inf that is added."""

    def __init__(self, wrong: frozenset[str]) -> None:
        super().__init__()
        self.wrong = wrong
        self.q_proj, self.o_proj = nn.Linear(D, D, bias=False), nn.Linear(D, D, bias=False)
        self.k_proj, self.v_proj = nn.Linear(D, K * d, bias=False), nn.Linear(D, K * d, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        q, k, v = (part(x).view(B, T, -1, d).transpose(1, 2) for part in (self.q_proj, self.k_proj, self.v_proj))
        if "partial" in self.wrong:
            half = d // 2 // 2 * 2
            q, k = (torch.cat((turned(z[..., :half]), z[..., half:]), -1) for z in (q, k))
        else:
            q, k = turned(q), turned(k)
        k, v = (z.repeat_interleave(H // K, 1) for z in (k, v))
        scores = q @ k.transpose(2, 3) * (D if "width" in self.wrong else d) ** -0.5
        scores = 0.5 * (scores / 0.5).tanh() if "cap" in self.wrong else scores
        scores = scores + torch.full((T, T), float("-inf"), dtype=x.dtype).triu(1)
        return self.o_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, -1))


class Layer(nn.Module):
    """A block of it."""

    def __init__(self, wrong: frozenset[str]) -> None:
        super().__init__()
        self.bend = F.gelu if "gelu" in wrong else F.silu
        self.input_layernorm, self.self_attn = Norm(wrong), Grouped(wrong)
        self.post_attention_layernorm = Norm(wrong, 1e-2 if "eps" in wrong else 1e-5)
        self.gate_proj, self.up_proj = nn.Linear(D, HIDDEN, bias=False), nn.Linear(D, HIDDEN, bias=False)
        self.down_proj = nn.Linear(HIDDEN, D, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x))
        y = self.post_attention_layernorm(x)
        return x + self.down_proj(self.bend(self.gate_proj(y)) * self.up_proj(y))


class Llama(nn.Module):
    """Rotary, grouped, gated; each mistake a word."""

    def __init__(self, *words: str) -> None:
        super().__init__()
        wrong = frozenset(words)
        self.wrong = wrong
        self.embed_tokens = nn.Embedding(V, D)
        self.layers = nn.ModuleList(Layer(wrong) for _ in range(LAYERS))
        self.norm, self.lm_head = Norm(wrong, 1e-2 if "last" in wrong else 1e-5), nn.Linear(D, V, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(x if "bare" in self.wrong else self.norm(x))


class Part(nn.Module):
    """Pre-norm, q, k and v from one product."""

    def __init__(self, wrong: frozenset[str]) -> None:
        super().__init__()
        self.wrong = wrong
        self.ln_1, self.ln_2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.c_attn, self.c_proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.c_fc, self.c_out = nn.Linear(D, HIDDEN), nn.Linear(HIDDEN, D)

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        z = self.c_attn(self.ln_1(x))
        if "neox" in self.wrong:
            q, k, v = z.view(B, T, H, 3, -1).transpose(2, 3).reshape(B, T, 3, D).unbind(2)
        else:
            q, k, v = z.split(D, 2)
        q, k = (k, q) if "exchanged" in self.wrong else (q, k)
        q, k, v = (each.view(B, T, H, -1).transpose(1, 2) for each in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, D)
        x = x + (y @ self.c_proj.weight + self.c_proj.bias if "turned" in self.wrong else self.c_proj(y))
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x))))


class Gpt(nn.Module):
    """Learned positions; each mistake a word."""

    def __init__(self, *words: str) -> None:
        super().__init__()
        self.wrong = frozenset(words)
        self.wte, self.wpe = nn.Embedding(V, D), nn.Embedding(LONGEST + 1, D)
        self.h = nn.ModuleList(Part(self.wrong) for _ in range(LAYERS))
        self.ln_f, self.lm_head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1])
        x = (4.0 if "four" in self.wrong else 1.0) * self.wte(ids) + self.wpe(places)
        x = x + self.wpe(places) if "twice" in self.wrong else x
        for each in self.h:
            x = each(x)
        return self.lm_head(self.ln_f(x))


class Post(nn.Module):
    """A block around PyTorch's own attention, with its norms before or after."""

    def __init__(self, *words: str) -> None:
        super().__init__()
        self.wrong = frozenset(words)
        self.ln1, self.ln2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attn = nn.MultiheadAttention(D, H, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(D, 3 * D), nn.ReLU(), nn.Linear(3 * D, D))

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        if "post" in self.wrong:
            x = self.ln1(x + self.attn(x, x, x, attn_mask=hidden, need_weights=False)[0])
            return self.ln2(x + self.mlp(x))
        y = self.ln1(x)
        x = x + self.attn(y, y, y, attn_mask=hidden, need_weights=False)[0]
        return x + self.mlp(self.ln2(x))


class Hand(Written):
    """PyTorch's attention by hand, each head with every H-th feature."""

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        z = F.linear(x, self.attention.in_proj_weight, self.attention.in_proj_bias)
        q, k, v = (y.view(B, T, d, H).transpose(2, 3) for y in z.chunk(3, -1))
        scores = torch.einsum("bihd,bjhd->bhij", q, k) / d**0.5
        weights = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -torch.inf).softmax(-1)
        return self.attention.out_proj(torch.einsum("bhij,bjhd->bihd", weights, v).reshape(B, T, D))


def _right(kind: Callable[..., nn.Module], *words: str) -> Callable[[], nn.Module]:
    def made() -> nn.Module:
        torch.manual_seed(11)
        return moved(kind(*words))

    return made


def _code(kind: Callable[..., nn.Module], words: str, ids: str, at: str, *then: str, both: str = "") -> Trial:
    one, other = both.split(), [*both.split(), *words.split()]
    name = f"newcomer's code: {kind.__name__} {' '.join(other)}"
    return Trial(
        name, _right(kind, *one), lambda: partial(kind, *other), frozenset(ids.split()), tuple(at.split()), then
    )


def _model(config: Any, kind: Callable[..., nn.Module], words: str, ids: str, at: str) -> Trial:
    name = f"newcomer's MODEL: {kind.__name__} {words}"
    return Trial(name, ours(config), lambda: partial(kind, *words.split()), frozenset(ids.split()), tuple(at.split()))


def _attention() -> nn.Module:
    torch.manual_seed(11)
    return moved(Whole())


TRIALS = [
    _model(ROPE, Llama, "cap", "attention.softcap", "weights tanh softmax"),
    _model(PLAIN, Gpt, "four", "embedding.scale", "input add"),
    _model(PLAIN, Gpt, "exchanged", "qkv.layout", "weights scores"),
    _code(Llama, "eps", "norm.eps-value", "mean add rsqrt norm", both="island"),
    _code(Llama, "last", "norm.eps-value", "mean add rsqrt norm", both="island"),
    _code(Llama, "offset", "norm.offset", "mul norm"),
    _code(Llama, "partial", "rotary.partial", "mul cat add"),
    _code(Llama, "gelu", "activation.variant", "silu gelu"),
    _code(Llama, "width bare", "scale.model-width", "mul matmul softmax", "norm.final-missing"),
    _code(Gpt, "twice", "position.twice", "add"),
    _code(Gpt, "neox", "qkv.layout", "split unbind"),
    _code(Gpt, "turned", "load.transposed", "c_proj matmul"),
    _code(Post, "post", "norm.placement", "ln1 q"),
    Trial(
        "newcomer's code: grouping beside MultiheadAttention",
        _attention,
        lambda: Hand,
        frozenset(("heads.grouping",)),
        ("scores", "einsum"),
    ),
]
