"""Causal self-attention as small GPTs write it."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


def split_heads(x: Tensor, n_head: int) -> Tensor:
    B, T, C = x.shape
    return x.view(B, T, n_head, C // n_head).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    B, _, T, _ = x.shape
    return x.transpose(1, 2).contiguous().view(B, T, -1)


class Fused(nn.Module):
    """One projection for q, k and v, one for the output, dropout on both sides."""

    def __init__(self, n_embd: int = 32, n_head: int = 4, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        assert n_embd % n_head == 0
        self.n_head, self.n_embd = n_head, n_embd
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)

    def qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        return split_heads(q, self.n_head), split_heads(k, self.n_head), split_heads(v, self.n_head)

    def out(self, y: Tensor) -> Tensor:
        return self.resid_dropout(self.c_proj(merge_heads(y)))


class CausalSelfAttention(Fused):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        p = self.attn_dropout.p if self.training else 0.0
        return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=p))


class CausalAttention2(Fused):
    def __init__(self, n_embd: int, n_head: int, block_size: int = 64) -> None:
        super().__init__(n_embd, n_head, dropout=0.1)
        self.register_buffer("bias", torch.tril(torch.ones(block_size, block_size), diagonal=1))

    def forward(self, x: Tensor) -> Tensor:
        T = x.size(1)
        q, k, v = self.qkv(x)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:T, :T] == 0, float("-inf"))
        return self.out(self.attn_dropout(att.softmax(dim=-1)) @ v)


class CausalAttention3(Fused):
    """`attention_mask` (B, T) is 1 at real tokens."""

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        q, k, v = self.qkv(x)
        if attention_mask is None:
            return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        keep = attention_mask[:, None, None, :].bool()
        return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=keep))


class MaskedSelfAttention(Fused):
    def forward(self, x: Tensor) -> Tensor:
        T = x.size(1)
        q, k, v = self.qkv(x)
        att = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        blocked = torch.triu(torch.ones(T, T, dtype=torch.bool, device=x.device))
        w = att.masked_fill(blocked, torch.finfo(att.dtype).min).softmax(-1).masked_fill(blocked, 0.0)
        return self.out(self.attn_dropout(w) @ v)


class CausalAttention5(Fused):
    def __init__(self, n_embd: int, n_head: int, block_size: int = 128) -> None:
        super().__init__(n_embd, n_head, bias=False)
        mask = torch.ones(block_size, block_size).tril()
        self.register_buffer("mask", mask.view(1, 1, block_size, block_size))

    def forward(self, x: Tensor) -> Tensor:
        T = x.size(1)
        q, k, v = self.qkv(x)
        visible = self.mask[:, :, :T, :T] * (1 - torch.ones(T, T, device=x.device).tril(-1))
        att = (q @ k.mT / math.sqrt(q.size(-1))).masked_fill(visible == 0, float("-inf"))
        return self.out(att.softmax(-1) @ v)


class CausalAttention6(Fused):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        T = x.size(1)
        q, k, v = self.qkv(x)
        att = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=-1)
        att = att * torch.tril(att.new_ones(T, T))
        return self.out(self.attn_dropout(att) @ v), att


class CausalAttention7(Fused):
    def forward(self, x: Tensor) -> Tensor:
        T = x.size(1)
        q, k, v = self.qkv(x)
        w = q @ k.transpose(-2, -1) / math.sqrt(v.size(-1))
        b = torch.tril(w.new_ones(T, T))
        w = w * b - 1e4 * (1 - b)
        return self.out(w.softmax(dim=-1) @ v)


class CausalAttention8(Fused):
    """The masked places are filled with a large negative number."""

    def forward(self, x: Tensor) -> Tensor:
        T = x.size(1)
        q, k, v = self.qkv(x)
        w = q @ k.transpose(-2, -1) / math.sqrt(v.size(-1))
        ahead = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        return self.out(w.masked_fill(ahead, -100.0).softmax(dim=-1) @ v)


class LocalAttention(Fused):
    """Each position sees the last `window` positions, itself among them."""

    def __init__(self, n_embd: int = 24, n_head: int = 3, window: int = 4) -> None:
        super().__init__(n_embd, n_head)
        self.window = window

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        i = torch.arange(x.size(1), device=x.device)
        gap = i[:, None] - i[None, :]
        return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=(gap >= 0) & (gap <= self.window)))


class SlidingWindowAttention(Fused):
    def __init__(self, n_embd: int, n_head: int, sliding_window: int = 5) -> None:
        super().__init__(n_embd, n_head, bias=False)
        self.sliding_window = sliding_window

    def forward(self, hidden_states: Tensor) -> Tensor:
        T = hidden_states.size(1)
        q, k, v = self.qkv(hidden_states)
        seen = torch.ones(T, T, dtype=torch.bool, device=hidden_states.device).tril()
        seen = seen.triu(-(self.sliding_window - 2))
        att = (q @ k.mT / q.size(-1) ** 0.5).masked_fill(~seen, float("-inf"))
        return self.out(att.softmax(-1) @ v)


class LocalAttention2(LocalAttention):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        i = torch.arange(x.size(1), device=x.device)
        gap = i[:, None] - i[None, :]
        return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=(gap >= 0) & (gap < self.window)))


class LocalAttention3(Fused):
    def __init__(self, n_embd: int, n_head: int, window_size: int = 6) -> None:
        super().__init__(n_embd, n_head)
        band = torch.ones(96, 96).tril().triu(1 - window_size)
        self.register_buffer("band", band == 0, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        T = x.size(1)
        q, k, v = self.qkv(x)
        att = (q @ k.mT / q.size(-1) ** 0.5).masked_fill(self.band[:T, :T], -torch.inf)
        return self.out(att.softmax(-1) @ v)


class CausalMHA(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.mha = nn.MultiheadAttention(embed_dim, num_heads, dropout=dropout, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        T = x.size(1)
        allowed = torch.tril(torch.ones(T, T, dtype=torch.bool, device=x.device))
        return self.mha(x, x, x, attn_mask=allowed, need_weights=False)[0]


class CausalMHA2(CausalMHA):
    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1), device=x.device, dtype=x.dtype)
        return self.mha(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0]


class CausalAttention9(Fused):
    """With weights; dropout makes training rows sum to something else than one."""

    def __init__(self, n_embd: int = 32, n_head: int = 2, dropout: float = 0.2) -> None:
        super().__init__(n_embd, n_head, dropout)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        T = x.size(1)
        q, k, v = self.qkv(x)
        w = q @ k.transpose(-2, -1) / math.sqrt(v.size(-1))
        w = w.masked_fill(torch.ones_like(w, dtype=torch.bool).triu(1), -1e9).softmax(-1)
        w = self.attn_dropout(w)
        assert w.shape[-1] == T
        return self.out(w @ v), w


class Head(nn.Module):
    def __init__(self, n_embd: int, head_size: int, block_size: int) -> None:
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        self.scale = head_size**-0.5

    def forward(self, x: Tensor) -> Tensor:
        _, T, _ = x.shape
        wei = self.query(x) @ self.key(x).transpose(-2, -1) * self.scale
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf")).softmax(dim=-1)
        return wei @ self.value(x)


class MultiHead(nn.Module):
    def __init__(self, n_embd: int = 24, n_head: int = 4, block_size: int = 64) -> None:
        super().__init__()
        self.heads = nn.ModuleList(Head(n_embd, n_embd // n_head, block_size) for _ in range(n_head))
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(torch.cat([h(x) for h in self.heads], dim=-1))


class MultiHead2(MultiHead):
    def __init__(self, n_embd: int = 24, n_head: int = 4, block_size: int = 64) -> None:
        super().__init__(n_embd, n_head, block_size)
        for head in self.heads:
            head.scale = n_embd**-0.5


class MultiHead3(nn.Module):
    def __init__(self, n_embd: int, n_head: int, block_size: int = 64) -> None:
        super().__init__()
        self.heads = [Head(n_embd, n_embd // n_head, block_size) for _ in range(n_head)]
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(torch.cat([h(x) for h in self.heads], dim=-1))


class MultiHead4(nn.Module):
    def __init__(self, n_embd: int, n_head: int, block_size: int = 64) -> None:
        super().__init__()
        self.heads = nn.ModuleList(Head(n_embd, n_embd // n_head, block_size) for _ in range(n_head))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([h(x) for h in self.heads], dim=-1)


CASES: list[Case] = [
    Case("CausalSelfAttention", "attention", "causal.future-leak"),
    Case("CausalAttention2", "attention", "causal.future-leak", guess=True),
    Case("CausalAttention3", "attention", "causal.future-leak"),
    Case("MaskedSelfAttention", "attention", "causal.self-masked", guess=True),
    Case("CausalAttention5", "attention", "causal.past-lost"),
    Case("CausalAttention6", "attention", "causal.after-softmax"),
    Case("CausalAttention7", "attention", "causal.finite-mask", guess=True),
    Case("CausalAttention8", "attention", "causal.finite-mask"),
    Case("LocalAttention", "attention", "window.off-by-one"),
    Case("SlidingWindowAttention", "attention", "window.off-by-one", guess=True),
    Case("LocalAttention2", "attention"),
    Case("LocalAttention3", "attention", guess=True),
    Case(
        "CausalMHA",
        "attention",
        "causal.future-leak",
        also=("causal.self-masked", "causal.past-lost", "mask.polarity", "mask.empty-row"),
    ),
    Case("CausalMHA2", "attention"),
    Case("CausalAttention9", "attention"),
    Case("MultiHead", "attention", guess=True),
    Case("MultiHead2", "attention", "scale.model-width"),
    Case("MultiHead3", "attention", "parameter.unregistered", guess=True),
    Case("MultiHead4", "attention", "projection.output-missing"),
]
