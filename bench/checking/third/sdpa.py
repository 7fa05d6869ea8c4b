"""Functions of q (B, H, T, d), k and v (B, K, S, d)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.checking.case import Case


def _repeat(x: Tensor, heads: int) -> Tensor:
    return x.repeat_interleave(heads // x.size(1), dim=1)


def _soft(scores: Tensor, keep: Tensor) -> Tensor:
    w = scores.masked_fill(~keep, torch.finfo(scores.dtype).min).softmax(-1)
    return w.masked_fill(~keep, 0.0)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """`mask` is True where a query may look."""
    k, v = _repeat(k, q.size(1)), _repeat(v, q.size(1))
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    keep = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.bool()
    return _soft(scores, keep) @ v


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """`mask` is 0 where a query may not look; returns the output and the weights."""
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    p_attn = scores.softmax(dim=-1)
    return torch.matmul(p_attn, value), p_attn


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    T, S = q.size(-2), k.size(-2)
    scores = torch.einsum("bhtd,bhsd->bhts", q, _repeat(k, q.size(1))) * q.size(-1) ** -0.5
    keep = torch.ones(T, S, dtype=torch.bool, device=q.device).tril(S - T)
    return torch.einsum("bhts,bhsd->bhtd", _soft(scores, keep), _repeat(v, q.size(1)))


def causal_attention2(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    T, S = q.size(-2), k.size(-2)
    scores = torch.einsum("bhtd,bhsd->bhts", q, _repeat(k, q.size(1))) * q.size(-1) ** -0.5
    keep = torch.ones(T, S, dtype=torch.bool, device=q.device).tril()
    return torch.einsum("bhts,bhsd->bhtd", _soft(scores, keep), _repeat(v, q.size(1)))


def causal_attention3(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, dim=1), v.repeat_interleave(g, dim=1)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def causal_attention4(q: Tensor, k: Tensor, v: Tensor, is_causal: bool = True) -> Tensor:
    T, S = q.size(-2), k.size(-2)
    i = torch.arange(S - T, S, device=q.device)[:, None]
    j = torch.arange(S, device=q.device)[None, :]
    keep = j < i if is_causal else torch.ones_like(j < i)
    return _soft(q @ _repeat(k, q.size(1)).mT / q.size(-1) ** 0.5, keep) @ _repeat(v, q.size(1))


def causal_attention5(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """In blocks of four queries, so that no T x S matrix is made."""
    T, S = q.size(-2), k.size(-2)
    k, v = _repeat(k, q.size(1)), _repeat(v, q.size(1))
    out = []
    for a in range(0, T, 4):
        b = min(a + 4, T)
        scores = q[..., a:b, :] @ k[..., : S - T + b, :].mT / math.sqrt(q.size(-1))
        out.append(scores.softmax(-1) @ v[..., : S - T + b, :])
    return torch.cat(out, dim=-2)


def causal_attention6(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """In blocks of four queries, so that no T x S matrix is made."""
    T, S = q.size(-2), k.size(-2)
    k, v = _repeat(k, q.size(1)), _repeat(v, q.size(1))
    out = []
    for a in range(0, T, 4):
        b = min(a + 4, T)
        scores = q[..., a:b, :] @ k[..., : S - T + b, :].mT / math.sqrt(q.size(-1))
        i = torch.arange(S - T + a, S - T + b, device=q.device)[:, None]
        scores = scores.masked_fill(torch.arange(S - T + b, device=q.device) > i, float("-inf"))
        out.append(scores.softmax(-1) @ v[..., : S - T + b, :])
    return torch.cat(out, dim=-2)


def causal_attention7(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Running maximum and sum over blocks of keys."""
    T, S, d = q.size(-2), k.size(-2), q.size(-1)
    k, v = _repeat(k, q.size(1)), _repeat(v, q.size(1))
    i = torch.arange(S - T, S, device=q.device)[:, None]
    top = q.new_full((*q.shape[:-1], 1), torch.finfo(q.dtype).min)
    total, acc = torch.zeros_like(top), torch.zeros_like(q[..., :1] * v[..., :1, :])
    for a in range(0, S, 4):
        j = torch.arange(a, min(a + 4, S), device=q.device)
        s = q @ k[..., j, :].mT / math.sqrt(d)
        new = torch.maximum(top, s.masked_fill(j > i, torch.finfo(q.dtype).min).amax(-1, keepdim=True))
        p = (s - new).masked_fill(j > i, float("-inf")).exp()
        shrink = (top - new).exp()
        total, acc, top = total * shrink + p.sum(-1, keepdim=True), acc * shrink + p @ v[..., j, :], new
    return acc / total


def local_attention(q: Tensor, k: Tensor, v: Tensor, window: int = 3) -> Tensor:
    T, S = q.size(-2), k.size(-2)
    gap = torch.arange(S - T, S, device=q.device)[:, None] - torch.arange(S, device=q.device)
    keep = (gap >= 0) & (gap < window)
    return F.scaled_dot_product_attention(q, _repeat(k, q.size(1)), _repeat(v, q.size(1)), attn_mask=keep)


def local_attention2(q: Tensor, k: Tensor, v: Tensor, window_size: int = 3) -> Tensor:
    T, S = q.size(-2), k.size(-2)
    gap = torch.arange(S - T, S, device=q.device)[:, None] - torch.arange(S, device=q.device)
    keep = (gap >= 0) & (gap <= window_size)
    return F.scaled_dot_product_attention(q, _repeat(k, q.size(1)), _repeat(v, q.size(1)), attn_mask=keep)


def dot_product_attention(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """`attn_mask`: True where attention is allowed."""
    scores = q @ _repeat(k, q.size(1)).mT / math.sqrt(q.size(-1))
    if attn_mask is not None:
        scores = scores + attn_mask.to(scores.dtype)
    return scores.softmax(-1) @ _repeat(v, q.size(1))


def dot_product_attention2(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """`attn_mask`: True where attention is allowed."""
    w = (q @ _repeat(k, q.size(1)).mT / math.sqrt(q.size(-1))).softmax(-1)
    if attn_mask is not None:
        w = w * attn_mask
    return w @ _repeat(v, q.size(1))


def dot_product_attention3(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """`attn_mask`: True where attention is allowed."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, enable_gqa=True)


def dot_product_attention4(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """`attn_mask`: True where attention is allowed."""
    g = q.size(1) // k.size(1)
    k, v = (t.repeat(1, g, 1, 1) for t in (k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask)


def dot_product_attention5(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """`attn_mask`: True where attention is allowed."""
    q = q / math.sqrt(q.size(-1))
    k, v = _repeat(k, q.size(1)), _repeat(v, q.size(1))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask)


def dot_product_attention6(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """`mask`: True where attention is allowed."""
    scores = torch.einsum("bhqd,bhkd->bhqk", q, _repeat(k, q.size(1))) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask.bool(), -1e4)
    w = scores.softmax(-1)
    if mask is not None:
        w = w * mask.bool().any(-1, keepdim=True)
    return w @ _repeat(v, q.size(1))


def softmax_attention(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    w = torch.softmax(q @ _repeat(k, q.size(1)).mT * q.size(-1) ** -0.5, dim=2)
    return w @ _repeat(v, q.size(1)), w


def softmax_attention2(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    w = torch.softmax(q @ _repeat(k, q.size(1)).mT * k.size(-2) ** -0.5, dim=-1)
    return w @ _repeat(v, q.size(1))


def softmax_attention3(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    B, H, T, d = q.shape
    q = q.view(B, k.size(1), H // k.size(1), T, d).sum(dim=2)
    y = F.scaled_dot_product_attention(q, k, v)
    return y.repeat_interleave(H // k.size(1), dim=1)


def softmax_attention4(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """`mask` is True where a query may look; exponentials written out."""
    s = q @ _repeat(k, q.size(1)).mT * q.size(-1) ** -0.5
    keep = torch.ones_like(s, dtype=torch.bool) if mask is None else mask.bool().expand_as(s)
    e = (s - s.masked_fill(~keep, torch.finfo(s.dtype).min).amax(-1, keepdim=True)).masked_fill(~keep, -torch.inf)
    e = e.exp()
    return e @ _repeat(v, q.size(1)) / e.sum(-1, keepdim=True).clamp(min=torch.finfo(s.dtype).tiny)


def softmax_attention5(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Queries of a group beside each other; no copy of k and v."""
    B, H, T, d = q.shape
    grouped = q.view(B, k.size(1), H // k.size(1), T, d)
    w = (torch.einsum("bkgtd,bksd->bkgts", grouped, k) / d**0.5).softmax(-1)
    return torch.einsum("bkgts,bksd->bkgtd", w, v).reshape(B, H, T, -1)


CASES: list[Case] = [
    Case("attend", "sdpa"),
    Case("attention", "sdpa", "mask.empty-row", guess=True),
    Case("causal_attention", "sdpa", guess=True),
    Case("causal_attention2", "sdpa", "causal.top-left"),
    Case("causal_attention3", "sdpa", "causal.top-left", guess=True),
    Case("causal_attention4", "sdpa", "causal.self-masked"),
    Case("causal_attention5", "sdpa", "causal.future-leak"),
    Case("causal_attention6", "sdpa", guess=True),
    Case("causal_attention7", "sdpa"),
    Case("local_attention", "sdpa"),
    Case("local_attention2", "sdpa", "window.off-by-one", guess=True),
    Case("dot_product_attention", "sdpa", "mask.added-as-number"),
    Case("dot_product_attention2", "sdpa", "causal.after-softmax"),
    Case("dot_product_attention3", "sdpa"),
    Case("dot_product_attention4", "sdpa", "heads.kv-tiled", guess=True),
    Case("dot_product_attention5", "sdpa", "scale.twice"),
    Case("dot_product_attention6", "sdpa", "causal.finite-mask"),
    Case("softmax_attention", "sdpa", "softmax.axis"),
    Case("softmax_attention2", "sdpa", "scale.length", guess=True),
    Case("softmax_attention3", "sdpa", "heads.grouped-summed"),
    Case("softmax_attention4", "sdpa", guess=True),
    Case("softmax_attention5", "sdpa"),
]
