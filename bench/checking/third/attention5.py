"""Attention with dropout, buffers and weights in the states that training leaves them in."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


class SelfAttention(nn.Module):
    """Plain: four matrices, softmax over the keys."""

    def __init__(self, embed_dim: int = 32, num_heads: int = 4, dropout: float = 0.0) -> None:
        super().__init__()
        self.num_heads, self.head_dim, self.dropout = num_heads, embed_dim // num_heads, dropout
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def drop(self, w: Tensor) -> Tensor:
        return F.dropout(w, self.dropout, training=self.training)

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        return self.drop((q @ k.mT / math.sqrt(self.head_dim)).softmax(dim=-1))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(self.q_proj(x)), self.heads(self.k_proj(x)), self.heads(self.v_proj(x))
        return self.out_proj((self.weights(q, k) @ v).transpose(1, 2).flatten(2))


class SelfAttention2(SelfAttention):
    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.1) -> None:
        super().__init__(embed_dim, num_heads, dropout)

    def drop(self, w: Tensor) -> Tensor:
        return F.dropout(w, self.dropout)


class SelfAttention3(SelfAttention):
    def __init__(self, embed_dim: int, num_heads: int, dropout_p: float = 0.2) -> None:
        super().__init__(embed_dim, num_heads, dropout_p)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(self.q_proj(x)), self.heads(self.k_proj(x)), self.heads(self.v_proj(x))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)
        return self.out_proj(y.transpose(1, 2).flatten(2))


class SelfAttention4(SelfAttention):
    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.25) -> None:
        super().__init__(embed_dim, num_heads, dropout)

    def drop(self, w: Tensor) -> Tensor:
        F.dropout(w, self.dropout, training=self.training)
        return w


class SelfAttention5(SelfAttention):
    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.3) -> None:
        super().__init__(embed_dim, num_heads, dropout)

    def drop(self, w: Tensor) -> Tensor:
        if not self.training:
            return w
        return w * (torch.rand_like(w) >= self.dropout).to(w.dtype)


class SelfAttention6(SelfAttention):
    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.3) -> None:
        super().__init__(embed_dim, num_heads, dropout)

    def drop(self, w: Tensor) -> Tensor:
        if not self.training:
            return w
        return w * (torch.rand_like(w) >= self.dropout).to(w.dtype) / (1.0 - self.dropout)


class SelfAttention7(SelfAttention):
    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.2) -> None:
        super().__init__(embed_dim, num_heads, dropout)

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        return self.drop(q @ k.mT / math.sqrt(self.head_dim)).softmax(dim=-1)


class SelfAttention8(SelfAttention):
    """Scores and weights in half precision, to save memory."""

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        scores = (q.half() @ k.half().mT) / math.sqrt(self.head_dim)
        return self.drop(scores.softmax(dim=-1).to(q.dtype))


class SelfAttention9(SelfAttention):
    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        scores = q @ k.mT / math.sqrt(self.head_dim)
        return (scores + 0.1 * torch.randn_like(scores)).softmax(dim=-1)


class SelfAttention10(SelfAttention):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).squeeze()


class SelfAttention11(SelfAttention):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__(embed_dim, num_heads)
        del self.out_proj

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(self.q_proj(x)), self.heads(self.k_proj(x)), self.heads(self.v_proj(x))
        y = (self.weights(q, k) @ v).transpose(1, 2).flatten(2)
        out = nn.Linear(y.size(-1), y.size(-1), device=y.device, dtype=y.dtype)
        return out(y)


class SelfAttention12(SelfAttention):
    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        with torch.no_grad():
            scores = q @ k.mT / math.sqrt(self.head_dim)
        return self.drop(scores.softmax(dim=-1))


class SelfAttention13(SelfAttention):
    """Causal; the mask is kept for the lengths seen."""

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__(embed_dim, num_heads)
        self.cached = torch.empty(0, 0, dtype=torch.bool)

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        T = q.size(-2)
        if self.cached.size(0) < T:
            self.cached = torch.ones(T, T, dtype=torch.bool, device=torch.device("cpu")).triu(1)
        scores = q @ k.mT / math.sqrt(self.head_dim)
        return scores.masked_fill(self.cached[:T, :T], float("-inf")).softmax(dim=-1)


class SelfAttention14(SelfAttention):
    """Causal; the mask is kept for the lengths seen."""

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__(embed_dim, num_heads)
        self.register_buffer("cached", torch.empty(0, 0, dtype=torch.bool), persistent=False)

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        T = q.size(-2)
        if self.cached.size(0) < T:
            self.cached = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
        scores = q @ k.mT / math.sqrt(self.head_dim)
        return scores.masked_fill(self.cached[:T, :T], float("-inf")).softmax(dim=-1)


class SelfAttention15(SelfAttention):
    """The softmax in float32 whatever the rest is in."""

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        scores = torch.matmul(q, k.mT) / math.sqrt(self.head_dim)
        return self.drop(scores.float().softmax(dim=-1).to(q.dtype))


class SelfAttention16(SelfAttention):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(self.q_proj(x)), self.heads(self.k_proj(x)), self.heads(self.v_proj(x))
        p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=p)
        return self.out_proj(y.transpose(1, 2).flatten(2))


class SelfAttention17(SelfAttention):
    """Queries and keys of length one."""

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        return self.drop((F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT * 10.0).softmax(dim=-1))


def attention_a() -> nn.Module:
    m = SelfAttention(32, 4)
    nn.init.zeros_(m.v_proj.weight)
    nn.init.zeros_(m.v_proj.bias)
    return m


def attention_b() -> nn.Module:
    m = SelfAttention(32, 4)
    with torch.no_grad():
        for lin in (m.q_proj, m.k_proj, m.v_proj):
            lin.weight.copy_(lin.weight[:8].repeat(4, 1))
            lin.bias.copy_(lin.bias[:8].repeat(4))
    return m


def attention_c() -> nn.Module:
    m = SelfAttention(24, 3)
    for p in m.k_proj.parameters():
        p.requires_grad = False
    m.q_proj.weight.requires_grad_(False)
    return m


def attention_d() -> nn.Module:
    m = SelfAttention(24, 4)
    with torch.no_grad():
        m.out_proj.bias[5] = float("nan")
    return m


def attention_e() -> nn.Module:
    m = SelfAttention(24, 4, dropout=0.1)
    for name, p in m.named_parameters():
        if name.endswith("weight"):
            nn.init.normal_(p, std=0.02)
        else:
            nn.init.zeros_(p)
    return m


CASES: list[Case] = [
    Case("SelfAttention", "attention", guess=True),
    Case("SelfAttention2", "attention", "dropout.active-in-eval"),
    Case("SelfAttention3", "attention", "dropout.active-in-eval", guess=True),
    Case("SelfAttention4", "attention", "dropout.never-active"),
    Case("SelfAttention5", "attention", "dropout.no-rescale"),
    Case("SelfAttention6", "attention"),
    Case("SelfAttention7", "attention", "score.dropout"),
    Case("SelfAttention8", "attention", "score.precision"),
    Case("SelfAttention9", "attention", "noise.injected", guess=True),
    Case("SelfAttention10", "attention", "shape.squeezed"),
    Case("SelfAttention11", "attention", "parameter.recreated"),
    Case("SelfAttention12", "attention", "parameter.unused", also=("weights.frozen",)),
    Case("SelfAttention13", "attention", "device.hard-coded"),
    Case("SelfAttention14", "attention"),
    Case("SelfAttention15", "attention", guess=True),
    Case("SelfAttention16", "attention"),
    Case("SelfAttention17", "attention"),
    Case("attention_a", "attention", "weights.zero"),
    Case("attention_b", "attention", "weights.heads-tied"),
    Case("attention_c", "attention", "weights.frozen", guess=True),
    Case("attention_d", "attention", "weights.non-finite"),
    Case("attention_e", "attention"),
]
