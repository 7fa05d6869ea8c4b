"""Attention that takes a mask of padding, or a context of its own."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


def masked_softmax(scores: Tensor, keep: Tensor) -> Tensor:
    """Rows of weights; a row that may see nothing is zero."""
    weights = scores.masked_fill(~keep, torch.finfo(scores.dtype).min).softmax(dim=-1)
    return weights.masked_fill(~keep, 0.0)


class BertAttention(nn.Module):
    """Attention over hidden states.

    Args:
        attention_mask: (B, S), 1 for tokens that are real, 0 for padding.
    """

    def __init__(self, hidden_size: int = 24, num_heads: int = 4):
        super().__init__()
        self.num_heads = num_heads
        self.query, self.key, self.value = (nn.Linear(hidden_size, hidden_size) for _ in range(3))
        self.output = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        B, T, D = hidden_states.shape
        q, k, v = (
            f(hidden_states).view(B, T, self.num_heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value)
        )
        scores = q @ k.transpose(-1, -2) / math.sqrt(D // self.num_heads)
        if attention_mask is None:
            weights = scores.softmax(-1)
        else:
            weights = masked_softmax(scores, attention_mask[:, None, None, :] == 0)
        return self.output((weights @ v).transpose(1, 2).reshape(B, T, D))


class FastAttention(nn.Module):
    """`key_padding_mask` (B, S): True marks padding, as in torch.nn.MultiheadAttention."""

    def __init__(self, embed_dim: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.in_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        B, T, D = x.shape
        q, k, v = self.in_proj(x).view(B, T, 3, self.num_heads, D // self.num_heads).permute(2, 0, 3, 1, 4)
        mask = None if key_padding_mask is None else key_padding_mask[:, None, None, :].bool()
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out_proj(out.transpose(1, 2).reshape(B, T, D))


class SelfAttention(nn.Module):
    """`mask` (B, S) is 1 where a token is to be read."""

    def __init__(self, dim: int = 32, heads: int = 4, dim_head: int = 8):
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_q = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_kv = nn.Linear(dim, 2 * heads * dim_head, bias=False)
        self.to_out = nn.Linear(heads * dim_head, dim, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        b, n, _ = x.shape
        q, k, v = (
            t.view(b, n, self.heads, -1).transpose(1, 2) for t in (self.to_q(x), *self.to_kv(x).chunk(2, dim=-1))
        )
        dots = torch.einsum("bhid,bhjd->bhij", q, k) * self.scale
        if mask is not None:
            dots = dots + mask[:, None, None, :]
        return self.to_out((dots.softmax(dim=-1) @ v).transpose(1, 2).reshape(b, n, -1))


class TriangleAttention(nn.Module):
    """Causal self-attention with the fused kernel."""

    def __init__(self, d_model: int = 24, n_heads: int = 3):
        super().__init__()
        self.n_heads = n_heads
        self.causal = True
        self.wqkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.wo = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (t.reshape(B, T, self.n_heads, -1).transpose(1, 2) for t in self.wqkv(x).split(C, dim=-1))
        mask = torch.ones(T, T, device=x.device, dtype=x.dtype).tril()
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.wo(y.transpose(1, 2).reshape(B, T, C))


class AttentionModule(nn.Module):
    """`attention_mask`: 1 keeps a token, 0 hides it."""

    def __init__(self, n_embd: int = 20, n_head: int = 2):
        super().__init__()
        self.n_head = n_head
        self.qkv, self.proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.n_head, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        if attention_mask is not None:
            scores.masked_fill(attention_mask[:, None, None, :] == 0, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(B, T, C))


class FlashOrEager(nn.Module):
    """Causal; `padding_mask` (B, S) is True for real tokens."""

    def __init__(self, hidden_size: int = 24, num_heads: int = 2, use_flash: bool = True):
        super().__init__()
        self.num_heads, self.use_flash = num_heads, use_flash
        self.qkv_proj = nn.Linear(hidden_size, 3 * hidden_size)
        self.o_proj = nn.Linear(hidden_size, hidden_size)

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.num_heads, -1).transpose(1, 2) for t in self.qkv_proj(x).chunk(3, dim=-1))
        if self.use_flash:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            keep = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()[None, None]
            if padding_mask is not None:
                keep = keep & padding_mask[:, None, None, :].bool()
            y = masked_softmax(q @ k.mT / math.sqrt(q.size(-1)), keep.expand(B, 1, T, T)) @ v
        return self.o_proj(y.transpose(1, 2).reshape(B, T, D))


class MultiHeadSelfAttention(nn.Module):
    """`mask` (B, T) is 1 at words and 0 at padding."""

    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        self.n_heads, self.d_k = n_heads, d_model // n_heads
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(4)])

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        B = x.size(0)
        q, k, v = (f(x).view(B, -1, self.n_heads, self.d_k).transpose(1, 2) for f in self.linears[:3])
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is None:
            p_attn = scores.softmax(dim=-1)
        else:
            p_attn = masked_softmax(scores, mask.bool().unsqueeze(1).unsqueeze(-1))
        out = torch.matmul(p_attn, v).transpose(1, 2).contiguous().view(B, -1, self.n_heads * self.d_k)
        return self.linears[-1](out)


class EinsumAttention(nn.Module):
    """Causal attention, `attention_mask` (B, S) with 1 at what counts."""

    def __init__(self, features: int = 24, num_heads: int = 4):
        super().__init__()
        self.num_heads = num_heads
        self.kernel = nn.Parameter(torch.randn(3, features, num_heads, features // num_heads) / features**0.5)
        self.out_kernel = nn.Parameter(torch.randn(num_heads, features // num_heads, features) / features**0.5)

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        T = x.shape[1]
        q, k, v = torch.einsum("btm,cmhd->cbthd", x, self.kernel)
        logits = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        keep = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()[None]
        if attention_mask is not None:
            keep = keep & (attention_mask[:, :, None] > 0)
        weights = masked_softmax(logits, keep[:, None])
        return torch.einsum("bhqk,bkhd,hdm->bqm", weights, v, self.out_kernel)


class PaddedAttention(nn.Module):
    """`padding_mask` (B, S): True at padding."""

    def __init__(self, dim: int = 16, num_heads: int = 2):
        super().__init__()
        self.num_heads = num_heads
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        B, T, D = x.shape
        q, k, v = (f(x).view(B, T, self.num_heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = q @ k.mT / math.sqrt(q.size(-1))
        if padding_mask is not None:
            scores = scores.masked_fill(padding_mask[:, None, None, :].bool(), -float("inf"))
        return self.o((F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, D))


class CausalPaddedAttention(nn.Module):
    """Causal; `attention_mask` (B, S) is 1 at real tokens."""

    def __init__(self, hidden_size: int = 32, num_heads: int = 4):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(hidden_size, 3 * hidden_size, bias=False)
        self.dense = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        B, T, D = hidden_states.shape
        q, k, v = (t.reshape(B, T, self.num_heads, -1).transpose(1, 2) for t in self.qkv(hidden_states).chunk(3, -1))
        keep = torch.tril(torch.ones(T, T, dtype=torch.bool, device=q.device))[None, None]
        if attention_mask is not None:
            keep = keep & attention_mask.bool()[:, None, None, :]
        scores = torch.where(keep, q @ k.mT * q.size(-1) ** -0.5, torch.finfo(q.dtype).min)
        weights = scores.softmax(-1)
        return self.dense((weights @ v).transpose(1, 2).reshape(B, T, D)), weights


class FoldedAttention(nn.Module):
    """Heads folded into the batch; `mask` (B, S) is True at what may be read."""

    def __init__(self, d_model: int = 24, num_heads: int = 3):
        super().__init__()
        self.num_heads = num_heads
        self.q_linear, self.k_linear, self.v_linear = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.out = nn.Linear(d_model, d_model)

    def fold(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        return x.view(B, T, self.num_heads, -1).transpose(1, 2).reshape(B * self.num_heads, T, D // self.num_heads)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        B, T, D = x.shape
        q, k, v = self.fold(self.q_linear(x)), self.fold(self.k_linear(x)), self.fold(self.v_linear(x))
        scores = torch.bmm(q, k.transpose(1, 2)) / (D // self.num_heads) ** 0.5
        if mask is None:
            weights = scores.softmax(-1)
        else:
            weights = masked_softmax(scores, mask.bool().repeat(self.num_heads, 1).unsqueeze(1))
        out = torch.bmm(weights, v).view(B, self.num_heads, T, -1).transpose(1, 2).reshape(B, T, D)
        return self.out(out)


class HeadsFirst(nn.Module):
    """Heads in front of the batch, as older code has it; `key_padding_mask` (B, S) is True at padding."""

    def __init__(self, n_model: int = 16, n_head: int = 2):
        super().__init__()
        self.n_head = n_head
        self.w_qs, self.w_ks, self.w_vs = (nn.Linear(n_model, n_model) for _ in range(3))
        self.fc = nn.Linear(n_model, n_model)

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        b, t, d = x.shape
        h = self.n_head
        q, k, v = (
            f(x).view(b, t, h, d // h).permute(2, 0, 1, 3).reshape(h * b, t, d // h)
            for f in (self.w_qs, self.w_ks, self.w_vs)
        )
        attn = q @ k.transpose(1, 2) / (d // h) ** 0.5
        if key_padding_mask is None:
            attn = attn.softmax(-1)
        else:
            keep = ~key_padding_mask.bool()
            attn = masked_softmax(attn, keep[:, None, :].repeat_interleave(h, dim=0))
        return self.fc((attn @ v).view(h, b, t, d // h).permute(1, 2, 0, 3).reshape(b, t, d))


CASES = [
    Case("BertAttention", "attention", "mask.polarity"),
    Case("FastAttention", "attention", "mask.polarity"),
    Case("SelfAttention", "attention", "mask.added-as-number", guess=True),
    Case("TriangleAttention", "attention", "mask.added-as-number"),
    Case("AttentionModule", "attention", "mask.ignored"),
    Case("FlashOrEager", "attention", "mask.ignored"),
    Case("MultiHeadSelfAttention", "attention", "mask.query-axis"),
    Case("EinsumAttention", "attention", "mask.query-axis"),
    Case("PaddedAttention", "attention", "mask.empty-row"),
    Case("CausalPaddedAttention", "attention", "mask.empty-row"),
    Case("FoldedAttention", "attention", "mask.wrong-row"),
    Case("HeadsFirst", "attention", "mask.wrong-row"),
]
