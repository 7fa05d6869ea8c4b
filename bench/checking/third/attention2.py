"""Attention over a padded sequence, and over another one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


def masked_softmax(scores: Tensor, keep: Tensor) -> Tensor:
    """Weights over the kept keys; zeros where nothing is kept."""
    w = scores.masked_fill(~keep, torch.finfo(scores.dtype).min).softmax(dim=-1)
    return w.masked_fill(~keep, 0.0)


@dataclass
class AttentionConfig:
    hidden_size: int = 32
    num_attention_heads: int = 4
    attention_probs_dropout_prob: float = 0.1


class BertAttention(nn.Module):
    """`attention_mask` (B, S): 1 for tokens, 0 for padding."""

    def __init__(self, config: AttentionConfig | None = None) -> None:
        super().__init__()
        config = config or AttentionConfig()
        self.heads = config.num_attention_heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def shape(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return masked_softmax(scores, mask[:, None, None, :].bool())

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        q, k, v = (self.shape(f(hidden_states)) for f in (self.query, self.key, self.value))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        w = scores.softmax(-1) if attention_mask is None else self.weights(scores, attention_mask)
        y = (self.dropout(w) @ v).transpose(1, 2).flatten(2)
        return self.dense(y)


class BertAttention2(BertAttention):
    """`attention_mask` (B, S): 1 for tokens, 0 for padding."""

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return masked_softmax(scores, mask[:, None, None, :] == 0)


class BertAttention3(BertAttention):
    """`attention_mask` (B, S): 1 for tokens, 0 for padding."""

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return (scores + mask[:, None, None, :].to(scores.dtype)).softmax(-1)


class BertAttention4(BertAttention):
    """`attention_mask` (B, S): 1 for tokens, 0 for padding."""

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return masked_softmax(scores, mask[:, None, :, None].bool().expand_as(scores))


class BertAttention5(BertAttention):
    """`attention_mask` (B, S): 1 for tokens, 0 for padding."""

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(mask[:, None, None, :] == 0, float("-inf")).softmax(-1)


class BertAttention6(BertAttention):
    """`attention_mask` (B, S): 1 for tokens, 0 for padding."""

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.softmax(-1) * mask[:, None, None, :].to(scores.dtype)


class BertAttention7(BertAttention):
    """`attention_mask` (B, S): 1 for tokens, 0 for padding."""

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        keep = mask[:, None, None, :].to(scores.dtype)
        return (scores + (1.0 - keep) * -1000.0).softmax(-1) * keep.amax(-1, keepdim=True)


class MultiHeadedAttention(nn.Module):
    """h heads of d_model // h; `mask` (B, S) is nonzero at the keys to look at."""

    def __init__(self, h: int, d_model: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.d_k, self.h = d_model // h, h
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(4)])
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None, mask=None) -> Tensor:
        key = query if key is None else key
        value = key if value is None else value
        n = query.size(0)
        query, key, value = (
            lin(x).view(n, -1, self.h, self.d_k).transpose(1, 2)
            for lin, x in zip(self.linears, (query, key, value), strict=False)
        )
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.d_k)
        p = scores.softmax(dim=-1)
        x = torch.matmul(self.dropout(p), value)
        return self.linears[-1](x.transpose(1, 2).contiguous().view(n, -1, self.h * self.d_k))


class MultiHeadedAttention2(MultiHeadedAttention):
    """h heads of d_model // h; `mask` (B, S) is nonzero at the keys to look at."""

    def forward(self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None, mask=None) -> Tensor:
        key = query if key is None else key
        value = key if value is None else value
        n = query.size(0)
        query, key, value = (
            lin(x).view(n, -1, self.h, self.d_k).transpose(1, 2)
            for lin, x in zip(self.linears, (query, key, value), strict=False)
        )
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.d_k)
        keep = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask[:, None, None, :].bool()
        x = torch.matmul(self.dropout(masked_softmax(scores, keep)), value)
        return self.linears[-1](x.transpose(1, 2).contiguous().view(n, -1, self.h * self.d_k))


class FoldedAttention(nn.Module):
    """Heads folded into the batch; key_padding_mask (B, S) is True at padding."""

    def __init__(self, embed_dim: int = 32, num_heads: int = 4) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

    def fold(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        x = x.view(B, T, self.num_heads, D // self.num_heads).transpose(1, 2)
        return x.reshape(B * self.num_heads, T, D // self.num_heads)

    def rows(self, mask: Tensor) -> Tensor:
        return mask[:, None, :].repeat_interleave(self.num_heads, dim=0)

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        B, T, D = x.shape
        q, k, v = self.fold(self.q_proj(x)), self.fold(self.k_proj(x)), self.fold(self.v_proj(x))
        scores = torch.bmm(q, k.transpose(1, 2)) * (D // self.num_heads) ** -0.5
        if key_padding_mask is None:
            w = scores.softmax(-1)
        else:
            w = masked_softmax(scores, ~self.rows(key_padding_mask.bool()).expand_as(scores))
        y = torch.bmm(w, v).view(B, self.num_heads, T, -1).transpose(1, 2).reshape(B, T, D)
        return self.out_proj(y)


class FoldedAttention2(FoldedAttention):
    """Heads folded into the batch; key_padding_mask (B, S) is True at padding."""

    def rows(self, mask: Tensor) -> Tensor:
        return mask[:, None, :].repeat(self.num_heads, 1, 1)


class TorchMHA(nn.Module):
    """key_padding_mask (B, S): True where the key is padding."""

    def __init__(self, d_model: int = 32, nhead: int = 4, dropout: float = 0.0) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=True)

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        return self.attn(x, x, x, key_padding_mask=key_padding_mask, need_weights=False)[0]


class TorchMHA2(TorchMHA):
    """key_padding_mask (B, S): True where the key is padding."""

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        if key_padding_mask is None:
            return self.attn(x, x, x, need_weights=False)[0]
        pad = key_padding_mask.bool()
        nothing = pad.all(dim=1, keepdim=True)
        y = self.attn(x, x, x, key_padding_mask=pad & ~nothing, need_weights=False)[0]
        return y.masked_fill(nothing[..., None], 0.0)


class TorchMHA3(nn.Module):
    def __init__(self, d_model: int, nhead: int) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(d_model, nhead)

    def forward(self, x: Tensor) -> Tensor:
        return self.attn(x, x, x)[0]


class SdpaAttention(nn.Module):
    """key_padding_mask (B, S): True where the key is padding."""

    def __init__(self, dim: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.to_qkv(x).chunk(3, -1))
        mask = None if key_padding_mask is None else key_padding_mask[:, None, None, :].bool()
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.to_out(y.transpose(1, 2).flatten(2))


class SdpaAttention2(SdpaAttention):
    """key_padding_mask (B, S): True where the key is padding."""

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.to_qkv(x).chunk(3, -1))
        mask = None if key_padding_mask is None else ~key_padding_mask[:, None, None, :].bool()
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.to_out(y.transpose(1, 2).flatten(2))


class CrossAttention(nn.Module):
    """Queries from x, keys and values from `context`; `mask` (B, S) is True at real context."""

    def __init__(self, dim: int, heads: int = 2, dim_head: int = 16) -> None:
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_q = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_kv = nn.Linear(dim, 2 * heads * dim_head, bias=False)
        self.to_out = nn.Linear(heads * dim_head, dim)

    def forward(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        context = x if context is None else context
        k, v = self.to_kv(context).chunk(2, dim=-1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (self.to_q(x), k, v))
        sim = torch.einsum("bhid,bhjd->bhij", q, k) * self.scale
        keep = torch.ones_like(sim, dtype=torch.bool) if mask is None else mask[:, None, None, :].bool()
        out = torch.einsum("bhij,bhjd->bhid", masked_softmax(sim, keep), v)
        return self.to_out(out.transpose(1, 2).flatten(2))


class CrossAttention2(CrossAttention):
    """Queries from x, keys and values from `context`; `mask` (B, S) is True at real context."""

    def forward(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        context = x if context is None else context
        k, v = self.to_kv(context).chunk(2, dim=-1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (self.to_q(x), k, v))
        sim = torch.einsum("bhid,bhjd->bhij", q, k) * self.scale
        keep = torch.ones_like(sim, dtype=torch.bool)
        if mask is not None:
            keep = keep | mask[:, None, None, :].bool()
        out = torch.einsum("bhij,bhjd->bhid", masked_softmax(sim, keep), v)
        return self.to_out(out.transpose(1, 2).flatten(2))


CASES: list[Case] = [
    Case("BertAttention", "attention"),
    Case("BertAttention2", "attention", "mask.polarity"),
    Case("BertAttention3", "attention", "mask.added-as-number", guess=True),
    Case("BertAttention4", "attention", "mask.query-axis"),
    Case("BertAttention5", "attention", "mask.empty-row"),
    Case("BertAttention6", "attention", "causal.after-softmax", guess=True),
    Case("BertAttention7", "attention", "causal.finite-mask"),
    Case("MultiHeadedAttention", "attention", "mask.ignored"),
    Case("MultiHeadedAttention2", "attention", guess=True),
    Case("FoldedAttention", "attention", guess=True),
    Case("FoldedAttention2", "attention", "mask.wrong-row"),
    Case("TorchMHA", "attention", "mask.empty-row", guess=True),
    Case("TorchMHA2", "attention"),
    Case("TorchMHA3", "attention", "batch.mixing"),
    Case("SdpaAttention", "attention", "mask.polarity"),
    Case("SdpaAttention2", "attention"),
    Case("CrossAttention", "attention", guess=True),
    Case("CrossAttention2", "attention", "mask.ignored"),
]
