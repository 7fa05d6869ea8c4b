"""Attention of given q, k and v: further planted faults, and right ones in many styles."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case


def query_axis(q, k, v, key_padding_mask=None):
    """key_padding_mask (B, S): True for padding."""
    s = q @ k.mT / math.sqrt(q.size(-1))
    if key_padding_mask is not None:
        s = s.masked_fill(key_padding_mask[:, None, :, None], -1e30)
    return s.softmax(-1) @ v


def query_axis_transposed(q, k, v, attn_mask=None):
    s = q @ k.mT / math.sqrt(q.size(-1))
    if attn_mask is not None:
        s = s.masked_fill(~attn_mask.transpose(-2, -1), -1e30)
    return s.softmax(-1) @ v


def folded_rows(q, k, v, attn_mask=None):
    B, H, T, d = q.shape
    q, k, v = (t.flatten(0, 1) for t in (q, k, v))
    s = torch.bmm(q, k.transpose(1, 2)) * d**-0.5
    if attn_mask is not None:
        s = s.masked_fill(~attn_mask[:, 0].repeat(H, 1, 1), -1e30)
    return torch.bmm(s.softmax(-1), v).view(B, H, T, -1)


def next_row(q, k, v, mask=None):
    s = q @ k.mT / math.sqrt(q.size(-1))
    if mask is not None:
        s = torch.where(mask.roll(1, 0), s, torch.tensor(-1e30, dtype=s.dtype))
    return s.softmax(-1) @ v


def empty_rows(q, k, v, mask=None):
    s = q @ k.mT / math.sqrt(q.size(-1))
    return (s if mask is None else s.masked_fill(~mask, -torch.inf)).softmax(-1) @ v


def empty_rows_mean(query, key, value, mask=None):
    """mask (B, 1, 1, S): False at padding; a text may be empty."""
    s = query @ key.mT / math.sqrt(query.size(-1))
    if mask is not None:
        s = s.masked_fill(mask == 0, -1e9)
    w = s.softmax(-1)
    return w @ value, w


def dropping(q, k, v, dropout_p=0.1):
    return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_p)


class Dropping(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.dropout = dropout

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)


def half(q, k, v):
    s = q.half() @ k.half().mT / math.sqrt(q.size(-1))
    return s.softmax(-1).to(v.dtype) @ v


def half_weights(q, k, v):
    s = q @ k.mT / math.sqrt(q.size(-1))
    return F.softmax(s, -1, dtype=torch.bfloat16).to(v) @ v


def tiled(q, k, v):
    n = q.shape[1] // k.shape[1]
    return F.scaled_dot_product_attention(q, k.repeat(1, n, 1, 1), v.repeat(1, n, 1, 1))


def tiled_by_view(q, k, v):
    B, H, T, d = q.shape
    K = k.shape[1]
    s = torch.einsum("bgktd,bksd->bgkts", q.view(B, H // K, K, T, d), k) / d**0.5
    return torch.einsum("bgkts,bksd->bgktd", s.softmax(-1), v).reshape(B, H, T, d)


def summed(q, k, v):
    B, H, T, d = q.shape
    q = q.reshape(B, k.shape[1], -1, T, d).mean(2)
    return F.scaled_dot_product_attention(q, k, v).repeat_interleave(H // k.shape[1], 1)


def summed_scores(q, k, v):
    B, H, T, d = q.shape
    K = k.shape[1]
    s = torch.einsum("bkgtd,bksd->bkts", q.view(B, K, H // K, T, d), k) / d**0.5
    return (s.softmax(-1) @ v).repeat_interleave(H // K, 1)


def triangle_added(q, k, v, causal=True):
    T, S = q.shape[-2], k.shape[-2]
    s = q @ k.mT / math.sqrt(q.size(-1))
    return (s + torch.ones(T, S).tril(S - T) if causal else s).softmax(-1) @ v


def triangle_to_kernel(q, k, v, is_causal=True):
    T, S = q.shape[-2], k.shape[-2]
    mask = torch.ones(T, S, dtype=q.dtype).tril(S - T) if is_causal else None
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def unscaled_and_strict(q, k, v, is_causal=True):
    T, S = q.shape[-2], k.shape[-2]
    s = q @ k.mT
    return (s.masked_fill(torch.ones(T, S).triu(S - T).bool(), -1e30) if is_causal else s).softmax(-1) @ v


def capped_unscaled(q, k, v):
    return (50 * torch.tanh(q @ k.mT / 50)).softmax(-1) @ v


def right(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), -1) @ v


def right_flag(q, k, v, attn_mask=None, *, is_causal=False, scale=None):
    T, S = q.shape[-2], k.shape[-2]
    seen = torch.ones(T, S, dtype=torch.bool).tril(S - T) if is_causal else torch.ones(T, S, dtype=torch.bool)
    seen = seen if attn_mask is None else seen & attn_mask
    s = (q @ k.mT * (scale or q.shape[-1] ** -0.5)).masked_fill(~seen, torch.finfo(q.dtype).min)
    w = s.softmax(-1) * seen.any(-1, keepdim=True)
    return w @ v, w


def right_kernel(query, key, value, attn_mask=None):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask)


def right_dropped(q, k, v, mask=None):
    """mask: True where a key is hidden."""
    s = q @ k.mT / math.sqrt(q.size(-1))
    if mask is None:
        return s.softmax(-1) @ v
    w = s.masked_fill(mask, -1e30).softmax(-1).masked_fill(mask, 0)
    return w @ v


def right_annotated(query, key, value, mask=None):
    s = query @ key.mT / math.sqrt(query.size(-1))
    if mask is not None:
        s = s.masked_fill(mask == 0, -1e9)
    w = s.softmax(-1)
    return w @ value, w


def right_pattern(q, k, v, mask=None):
    """mask (T, S): True where a key is seen, the same for all rows."""
    s = q @ k.mT / math.sqrt(q.size(-1))
    if mask is not None:
        s = s.masked_fill(~mask.view(s.shape[-2:]), -torch.inf)
    return s.softmax(-1) @ v


def right_kernel_adds(q, k, v, mask=None):
    """mask: True where a key is seen."""
    if mask is None:
        return F.scaled_dot_product_attention(q, k, v)
    bias = torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, -torch.inf)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def right_added(q, k, v, mask=None):
    """mask: additive, 0 or -inf, added to the scores."""
    s = q @ k.mT / math.sqrt(q.size(-1))
    return (s if mask is None else s + mask).softmax(-1) @ v


def right_capped(q, k, v):
    s = q @ k.mT / math.sqrt(q.size(-1))
    return (30 * torch.tanh(s / 30)).softmax(-1) @ v


def right_off_by_one(q, k, v):
    e = torch.exp(q @ k.mT / math.sqrt(q.size(-1)))
    return e / (1 + e.sum(-1, keepdim=True)) @ v


def right_sink(q, k, v):
    s = q @ k.mT / math.sqrt(q.size(-1))
    return torch.cat([s, torch.zeros_like(s[..., :1])], -1).softmax(-1)[..., :-1] @ v


def right_float32(q, k, v):
    s = (q @ k.mT).float() / math.sqrt(q.size(-1))
    return s.softmax(-1).to(v.dtype) @ v


def right_grouped(q, k, v, is_causal=False):
    n = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(n, 1), v.repeat_interleave(n, 1)
    s = torch.einsum("bhtd,bhsd->bhts", q, k) * q.shape[-1] ** -0.5
    if is_causal:
        T, S = s.shape[-2:]
        s = s + torch.full((T, S), -torch.inf).triu(S - T + 1)
    return torch.einsum("bhts,bhsd->bhtd", s.softmax(-1), v)


def right_window(q, k, v, window=4):
    i, j = torch.arange(q.shape[-2])[:, None] + k.shape[-2] - q.shape[-2], torch.arange(k.shape[-2])
    s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill((j > i) | (j <= i - window), -torch.inf)
    return s.softmax(-1) @ v


class RightDropping(nn.Module):
    def __init__(self, dropout=0.1):
        super().__init__()
        self.dropout = dropout

    def forward(self, q, k, v, key_padding_mask=None):
        keep = None if key_padding_mask is None else ~key_padding_mask[:, None, None]
        return F.scaled_dot_product_attention(q, k, v, keep, self.dropout if self.training else 0.0)


CASES = [
    Case(name, "sdpa", fault)
    for fault, names in {
        "mask.query-axis": ("query_axis", "query_axis_transposed"),
        "mask.wrong-row": ("folded_rows", "next_row"),
        "mask.empty-row": ("empty_rows", "empty_rows_mean"),
        "dropout.active-in-eval": ("dropping", "Dropping"),
        "score.precision": ("half", "half_weights"),
        "heads.kv-tiled": ("tiled", "tiled_by_view"),
        "heads.grouped-summed": ("summed", "summed_scores"),
        "mask.added-as-number": ("triangle_added", "triangle_to_kernel"),
        "scale.missing": ("capped_unscaled",),
    }.items()
    for name in names
]
CASES += [Case("unscaled_and_strict", "sdpa", "scale.missing", also=("causal.self-masked",))]
CASES += [Case(name, "sdpa") for name, value in list(globals().items()) if name.lower().startswith("right")]
