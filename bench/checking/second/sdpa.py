"""Attention as a function of q (B, H, T, d), k and v (B, K, S, d)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.checking.case import Case


def aligned(T: int, S: int, device: torch.device) -> Tensor:
    """Query i sees keys up to i + S - T."""
    return torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T)


def weigh(scores: Tensor, keep: Tensor | None) -> Tensor:
    if keep is None:
        return scores.softmax(-1)
    return scores.masked_fill(~keep, torch.finfo(scores.dtype).min).softmax(-1).masked_fill(~keep, 0.0)


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    T, S = q.size(-2), k.size(-2)
    keep = torch.ones(T, S, dtype=torch.bool, device=q.device).tril()
    return weigh(q @ k.mT / math.sqrt(q.size(-1)), keep) @ v


def fused_causal_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def dot_product_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    return weigh(torch.einsum("bhqd,bhkd->bhqk", q, k), mask) @ v


def wide_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    d_model = q.size(1) * q.size(-1)
    return (q @ k.mT / math.sqrt(d_model)).softmax(-1) @ v


def length_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    weights = weigh(q @ k.mT / math.sqrt(k.shape[2]), mask)
    return weights @ v, weights


def inverted_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    factor = query.size(-1) ** -0.5
    return torch.softmax(query @ key.transpose(-2, -1) / factor, dim=-1) @ value


def prescaled_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q = q * q.size(-1) ** -0.5
    scores = q @ k.transpose(-2, -1)
    return (scores / math.sqrt(k.size(-1))).softmax(-1) @ v


def head_softmax_attention(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(dim=1)
    return weights @ v, weights


def grouped_tiled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    groups = q.shape[1] // k.shape[1]
    k, v = torch.cat([k] * groups, dim=1), torch.cat([v] * groups, dim=1)
    keep = aligned(q.shape[2], k.shape[2], q.device)
    return weigh(q @ k.mT / math.sqrt(q.size(-1)), keep) @ v


def grouped_summed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    B, H, T, d = q.shape
    K = k.shape[1]
    q = q.view(B, K, H // K, T, d).sum(dim=2)
    out = (q @ k.mT / math.sqrt(d)).softmax(-1) @ v
    return out.repeat_interleave(H // K, dim=1)


def key_view_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    B, H, S, d = k.shape
    scores = q @ k.reshape(B, H, d, S) / math.sqrt(d)
    return scores.softmax(-1) @ v


def late_masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ v


def float_masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    scores = q @ k.mT / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores + mask.to(scores.dtype)
    return scores.softmax(-1) @ v


def inverted_mask_attention(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """`attn_mask` as in F.scaled_dot_product_attention: True takes part."""
    return weigh(q @ k.mT / math.sqrt(q.size(-1)), None if attn_mask is None else ~attn_mask) @ v


def nan_row_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    scores = q @ k.mT * q.size(-1) ** -0.5
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def small_mask_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    keep = aligned(q.size(-2), k.size(-2), q.device)
    scores = (q @ k.mT / math.sqrt(q.size(-1))).masked_fill(~keep, -1e4)
    return scores.softmax(-1) @ v


def windowed_attention(q: Tensor, k: Tensor, v: Tensor, window: int = 4) -> Tensor:
    T, S = q.size(-2), k.size(-2)
    keep = aligned(T, S, q.device) & ~torch.ones(T, S, dtype=torch.bool, device=q.device).tril(S - T - window - 1)
    return weigh(q @ k.mT / math.sqrt(q.size(-1)), keep) @ v


def always_dropping(q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.1, training: bool = False) -> Tensor:
    weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)
    return F.dropout(weights, dropout_p) @ v


def half_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = (q.to(torch.float16) @ k.to(torch.float16).mT) * q.size(-1) ** -0.5
    return scores.softmax(-1).to(v.dtype) @ v


def batch_major_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = (q @ k.mT / math.sqrt(q.size(-1))).softmax(dim=0)
    return scores @ v


def right_causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
    return weigh(q @ k.mT / math.sqrt(q.size(-1)), aligned(q.size(-2), k.size(-2), q.device)) @ v


def right_kernel(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, enable_gqa=q.size(1) != k.size(1))


def right_blocks(q: Tensor, k: Tensor, v: Tensor, block: int = 3) -> Tensor:
    """Keys in blocks, the sum carried along, nothing as wide as all keys kept."""
    T, S = q.size(-2), k.size(-2)
    top = q.new_full((*q.shape[:-1], 1), -math.inf)
    total, out = torch.zeros_like(top), torch.zeros_like(q)
    keep = aligned(T, S, q.device)
    for start in range(0, S, block):
        part = slice(start, start + block)
        scores = (q @ k[:, :, part].mT / math.sqrt(q.size(-1))).masked_fill(~keep[:, part], -math.inf)
        new = torch.maximum(top, scores.amax(-1, keepdim=True))
        safe = new.masked_fill(new == -math.inf, 0.0)
        shrink, e = (top - safe).exp(), (scores - safe).exp()
        total, out, top = total * shrink + e.sum(-1, keepdim=True), out * shrink + e @ v[:, :, part], new
    return out / total


def right_weights(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    weights = weigh(query @ key.mT / math.sqrt(query.size(-1)), mask)
    return weights @ value, weights


def right_window(q: Tensor, k: Tensor, v: Tensor, window: int = 4) -> Tensor:
    T, S = q.size(-2), k.size(-2)
    distance = torch.arange(S - T, S, device=q.device)[:, None] - torch.arange(S, device=q.device)
    return weigh(q @ k.mT / math.sqrt(q.size(-1)), (distance >= 0) & (distance < window)) @ v


def right_float32(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.size(-1))
    return torch.einsum("bhij,bhjd->bhid", F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype), v)


def right_grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    B, H, T, d = q.shape
    grouped = q.reshape(B, k.size(1), -1, T, d)
    scores = torch.einsum("bkgtd,bksd->bkgts", grouped, k) / math.sqrt(d)
    return torch.einsum("bkgts,bksd->bkgtd", scores.softmax(-1), v).reshape(B, H, T, d)


CASES = [
    Case("causal_attention", "sdpa", "causal.top-left", guess=True),
    Case("fused_causal_attention", "sdpa", "causal.top-left"),
    Case("dot_product_attention", "sdpa", "scale.missing"),
    Case("wide_attention", "sdpa", "scale.model-width"),
    Case("length_attention", "sdpa", "scale.length"),
    Case("inverted_attention", "sdpa", "scale.inverted", guess=True),
    Case("prescaled_attention", "sdpa", "scale.twice"),
    Case("head_softmax_attention", "sdpa", "softmax.axis"),
    Case("grouped_tiled", "sdpa", "heads.kv-tiled"),
    Case("grouped_summed", "sdpa", "heads.grouped-summed"),
    Case("key_view_attention", "sdpa", "scores.key-reshaped"),
    Case("late_masked_attention", "sdpa", "causal.after-softmax"),
    Case("float_masked_attention", "sdpa", "mask.added-as-number"),
    Case("inverted_mask_attention", "sdpa", "mask.polarity"),
    Case("nan_row_attention", "sdpa", "mask.empty-row"),
    Case("small_mask_attention", "sdpa", "causal.finite-mask"),
    Case("windowed_attention", "sdpa", "window.off-by-one"),
    Case("always_dropping", "sdpa", "dropout.active-in-eval"),
    Case("half_attention", "sdpa", "score.precision"),
    Case("batch_major_attention", "sdpa", "softmax.axis", ("batch.mixing",)),
    Case("right_causal", "sdpa", guess=True),
    Case("right_kernel", "sdpa"),
    Case("right_blocks", "sdpa"),
    Case("right_weights", "sdpa"),
    Case("right_window", "sdpa"),
    Case("right_float32", "sdpa"),
    Case("right_grouped", "sdpa"),
]
