"""Language models with `start_pos`: keys and values are kept in the layers while decoding."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


def precompute_freqs_cis(dim: int, end: int, theta: float = 10000.0) -> Tensor:
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2).float() / dim))
    return torch.polar(torch.ones(end, dim // 2), torch.outer(torch.arange(end).float(), freqs))


def apply_rotary_emb(x: Tensor, freqs_cis: Tensor) -> Tensor:
    """Turn x (B, T, H, d)."""
    z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) * freqs_cis[:, None, :]
    return torch.view_as_real(z).flatten(3).type_as(x)


class Attention(nn.Module):
    def __init__(self, dim: int, n_heads: int, n_kv_heads: int) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads, self.head_dim = n_heads, n_kv_heads, dim // n_heads
        self.wq = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, dim, bias=False)
        self.cache: tuple[Tensor, Tensor] | None = None

    def turn(self, xq: Tensor, xk: Tensor, xv: Tensor, freqs_cis: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return apply_rotary_emb(xq, freqs_cis), apply_rotary_emb(xk, freqs_cis), xv

    def spread(self, x: Tensor) -> Tensor:
        B, S, K, d = x.shape
        g = self.n_heads // K
        return x[:, :, :, None, :].expand(B, S, K, g, d).reshape(B, S, K * g, d)

    def forward(self, x: Tensor, start_pos: int, freqs_cis: Tensor, mask: Tensor | None) -> Tensor:
        B, T, _ = x.shape
        xq = self.wq(x).view(B, T, self.n_heads, self.head_dim)
        xk = self.wk(x).view(B, T, self.n_kv_heads, self.head_dim)
        xv = self.wv(x).view(B, T, self.n_kv_heads, self.head_dim)
        xq, xk, xv = self.turn(xq, xk, xv, freqs_cis)
        if start_pos > 0 and self.cache is not None:
            xk = torch.cat((self.cache[0][:, :start_pos], xk), dim=1)
            xv = torch.cat((self.cache[1][:, :start_pos], xv), dim=1)
        self.cache = (xk.detach(), xv.detach())
        q, k, v = xq.transpose(1, 2), self.spread(xk).transpose(1, 2), self.spread(xv).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(2, 3)) / self.head_dim**0.5
        if mask is not None:
            scores = scores + mask
        scores = F.softmax(scores.float(), dim=-1).type_as(q)
        return self.wo(torch.matmul(scores, v).transpose(1, 2).reshape(B, T, -1))


class Attention2(Attention):
    def turn(self, xq: Tensor, xk: Tensor, xv: Tensor, freqs_cis: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return tuple(apply_rotary_emb(t, freqs_cis) for t in (xq, xk, xv))


class Attention3(Attention):
    def spread(self, x: Tensor) -> Tensor:
        return x.repeat(1, 1, self.n_heads // self.n_kv_heads, 1)


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight


class TransformerBlock(nn.Module):
    def __init__(self, attention: nn.Module, dim: int) -> None:
        super().__init__()
        self.attention = attention
        self.w1, self.w3 = nn.Linear(dim, 2 * dim, bias=False), nn.Linear(dim, 2 * dim, bias=False)
        self.w2 = nn.Linear(2 * dim, dim, bias=False)
        self.attention_norm, self.ffn_norm = RMSNorm(dim), RMSNorm(dim)

    def forward(self, x: Tensor, start_pos: int, freqs_cis: Tensor, mask: Tensor | None) -> Tensor:
        h = x + self.attention(self.attention_norm(x), start_pos, freqs_cis, mask)
        n = self.ffn_norm(h)
        return h + self.w2(F.silu(self.w1(n)) * self.w3(n))


class Llama(nn.Module):
    """m(tokens, start_pos=0); a start of 0 forgets what was kept."""

    attention: type[Attention] = Attention

    def __init__(self, vocab_size: int = 73, dim: int = 32, n_heads: int = 4, n_kv_heads: int = 2, n_layers: int = 2):
        super().__init__()
        self.tok_embeddings = nn.Embedding(vocab_size, dim)
        self.layers = nn.ModuleList(
            TransformerBlock(self.attention(dim, n_heads, n_kv_heads), dim) for _ in range(n_layers)
        )
        self.norm = RMSNorm(dim)
        self.output = nn.Linear(dim, vocab_size, bias=False)
        self.freqs_cis = precompute_freqs_cis(dim // n_heads, 256)

    def forward(self, tokens: Tensor, start_pos: int = 0) -> Tensor:
        T = tokens.size(1)
        h = self.tok_embeddings(tokens)
        freqs_cis = self.freqs_cis[start_pos : start_pos + T].to(h.device)
        mask = None
        if T > 1:
            mask = torch.full((T, start_pos + T), float("-inf"), device=h.device, dtype=h.dtype)
            mask = torch.triu(mask, diagonal=start_pos + 1)
        for layer in self.layers:
            h = layer(h, start_pos, freqs_cis, mask)
        return self.output(self.norm(h))


class Llama2(Llama):
    """m(tokens, start_pos=0); a start of 0 forgets what was kept."""

    attention = Attention2


class Llama3(Llama):
    """m(tokens, start_pos=0); a start of 0 forgets what was kept."""

    attention = Attention3


class Llama4(Llama):
    """m(tokens, start_pos=0); a start of 0 forgets what was kept."""

    def forward(self, tokens: Tensor, start_pos: int = 0) -> Tensor:
        T = tokens.size(1)
        h = self.tok_embeddings(tokens)
        freqs_cis = self.freqs_cis[start_pos : start_pos + T].to(h.device)
        mask = None
        if T > 1:
            mask = torch.full((T, start_pos + T), float("-inf"), device=h.device, dtype=h.dtype)
            mask = torch.triu(mask, diagonal=start_pos + 2)
        for layer in self.layers:
            h = layer(h, start_pos, freqs_cis, mask)
        return self.output(self.norm(h))


CASES: list[Case] = [
    Case("Llama", "lm", options={"vocab": 73}),
    Case("Llama2", "lm", "rotary.values", options={"vocab": 73}),
    Case("Llama3", "lm", "heads.kv-tiled", guess=True),
    Case("Llama4", "lm", "causal.future-leak", guess=True),
]
