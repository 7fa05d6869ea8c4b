"""Attention of given q, k and v with a planted fault, in many styles."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case


def unscaled(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1), dim=-1) @ v


def unscaled_einsum(query, key, value, attn_mask=None):
    scores = torch.einsum("bhtd,bhsd->bhts", query, key)
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(-1)
    if attn_mask is not None:
        weights = weights * attn_mask.any(-1, keepdim=True)
    return torch.einsum("bhts,bhsd->bhtd", weights, value)


def width_scaled(q, k, v):
    model_width = q.size(1) * q.size(-1)
    return (q @ k.mT / math.sqrt(model_width)).softmax(-1) @ v


def width_scaled_loop(q, k, v):
    _B, H, _T, d = q.shape
    out = [F.softmax(q[:, h] @ k[:, h].transpose(1, 2) * (H * d) ** -0.5, -1) @ v[:, h] for h in range(H)]
    return torch.stack(out, 1)


def length_scaled(q, k, v):
    return torch.softmax(q @ k.mT / math.sqrt(k.size(-2)), -1) @ v


class LengthScaled(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, scale=1 / q.shape[2] ** 0.5)


def multiplied(q, k, v):
    return F.softmax(q @ k.mT * math.sqrt(q.size(-1)), -1) @ v


def multiplied_first(q, k, v):
    q = q * q.shape[-1] ** 0.5
    return torch.matmul(F.softmax(torch.matmul(q, k.permute(0, 1, 3, 2)), dim=3), v)


def twice(q, k, v):
    return F.scaled_dot_product_attention(q / math.sqrt(q.shape[-1]), k, v)


def twice_by_hand(q, k, v):
    return (q @ k.mT / q.shape[-1]).softmax(-1) @ v


def over_queries(q, k, v):
    return F.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=2) @ v


def over_heads(query, key, value):
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) * query.shape[-1] ** -0.5
    return torch.einsum("bhqk,bhkd->bhqd", scores.softmax(dim=1), value)


def key_viewed(q, k, v):
    B, H, S, d = k.shape
    return (q @ k.reshape(B, H, d, S) / d**0.5).softmax(-1) @ v


class KeyViewed(nn.Module):
    def forward(self, query, key, value):
        scores = torch.matmul(query, key.contiguous().view(*key.shape[:2], key.shape[3], key.shape[2]))
        return torch.matmul(torch.softmax(scores / math.sqrt(query.size(-1)), dim=-1), value)


def causal_attention(q, k, v, strict=False):
    T, S = q.shape[-2], k.shape[-2]
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return scores.masked_fill(torch.ones(T, S).triu(1).bool(), -torch.inf).softmax(-1) @ v


def top_left_flag(q, k, v, is_causal=False):
    return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)


def strict_flag(q, k, v, causal=True):
    T, S = q.shape[-2], k.shape[-2]
    s = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        s = s.masked_fill(torch.ones(T, S).triu(S - T).bool(), -1e30)
    return s.softmax(-1) @ v


def strict_attention_causal(q, k, v):
    T, S = q.shape[-2], k.shape[-2]
    seen = torch.tril(torch.ones(T, S), diagonal=S - T - 1).bool()
    return torch.nan_to_num(torch.softmax((q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~seen, -torch.inf), -1)) @ v


def leaking_flag(q, k, v, is_causal=True):
    T, S = q.shape[-2], k.shape[-2]
    s = q @ k.mT / q.shape[-1] ** 0.5
    if is_causal:
        s = s + torch.full((T, S), -torch.inf).triu(S - T + 2)
    return s.softmax(-1) @ v


def causal_forgotten(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def zeroed_after(q, k, v, causal=True):
    T, S = q.shape[-2], k.shape[-2]
    w = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return (w.tril(S - T) if causal else w) @ v


def masked_after(q, k, v, mask=None):
    """mask: True where a key may be seen."""
    w = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return (w if mask is None else w * mask) @ v


def weak_causal(q, k, v, is_causal=False):
    T, S = q.shape[-2], k.shape[-2]
    s = q @ k.mT / q.shape[-1] ** 0.5
    if is_causal:
        s = s.masked_fill(~torch.ones(T, S).tril(S - T).bool(), -1e4)
    return s.softmax(-1) @ v


def weak_mask(q, k, v, attn_mask=None):
    s = q @ k.mT / q.shape[-1] ** 0.5
    if attn_mask is not None:
        s = s.masked_fill(attn_mask == 0, -1e4)
    return s.softmax(-1) @ v


def windowed(q, k, v, window=4):
    i, j = torch.arange(q.shape[-2])[:, None] + k.shape[-2] - q.shape[-2], torch.arange(k.shape[-2])
    s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill((j > i) | (i - j > window), -torch.inf)
    return s.softmax(-1) @ v


class Windowed(nn.Module):
    def __init__(self, window_size=3):
        super().__init__()
        self.window_size = window_size

    def forward(self, q, k, v):
        T = q.shape[2]
        i, j = torch.arange(T)[:, None], torch.arange(T)
        seen = (j <= i) & (j > i - self.window_size + 1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)


def polarity(q, k, v, attn_mask=None):
    """attn_mask: bool, True means that the key takes part."""
    s = q @ k.mT / math.sqrt(q.size(-1))
    if attn_mask is not None:
        s = s.masked_fill(attn_mask, float("-inf"))
    return torch.softmax(s, -1) @ v


def polarity_where(q, k, v, mask=None):
    """mask: True = keep."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=None if mask is None else ~mask)


def added(q, k, v, mask=None):
    s = q @ k.mT / math.sqrt(q.size(-1))
    return torch.softmax(s if mask is None else s + mask, -1) @ v


def added_float(q, k, v, attn_mask=None):
    mask = None if attn_mask is None else attn_mask.to(q.dtype)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def ignored(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v)


def ignored_result(q, k, v, attn_mask=None):
    s = q @ k.mT / math.sqrt(q.size(-1))
    if attn_mask is not None:
        s.masked_fill(~attn_mask, -torch.inf)
    return s.softmax(-1) @ v


CASES = [
    Case(name, "sdpa", fault)
    for fault, names in {
        "scale.missing": ("unscaled", "unscaled_einsum"),
        "scale.model-width": ("width_scaled", "width_scaled_loop"),
        "scale.length": ("length_scaled", "LengthScaled"),
        "scale.inverted": ("multiplied", "multiplied_first"),
        "scale.twice": ("twice", "twice_by_hand"),
        "softmax.axis": ("over_queries", "over_heads"),
        "scores.key-reshaped": ("key_viewed", "KeyViewed"),
        "causal.top-left": ("causal_attention", "top_left_flag"),
        "causal.self-masked": ("strict_flag", "strict_attention_causal"),
        "causal.future-leak": ("leaking_flag", "causal_forgotten"),
        "causal.after-softmax": ("zeroed_after", "masked_after"),
        "causal.finite-mask": ("weak_causal", "weak_mask"),
        "window.off-by-one": ("windowed", "Windowed"),
        "mask.polarity": ("polarity", "polarity_where"),
        "mask.added-as-number": ("added", "added_float"),
        "mask.ignored": ("ignored", "ignored_result"),
    }.items()
    for name in names
]
