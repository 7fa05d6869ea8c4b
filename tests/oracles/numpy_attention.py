"""Attention one number at a time: loops over batch, head, query and key in numpy float64; nothing is broadcast."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def attention(
    q: Array, k: Array, v: Array, allowed: NDArray[np.bool_], *, bias: Array | None = None, scale: float | None = None
) -> Array:
    """softmax(q·k / √d + bias) v over the keys that are allowed, and 0 where none is.

    Args:
        q: (B,H,T,d).
        k: (B,K,S,d); query head h reads head h // (H/K).
        v: (B,K,S,d_v).
        allowed: (B,H,T,S), in full.
        bias: (B,H,T,S), in full.
        scale: 1/√d if None.
    """
    B, H, T, d = q.shape
    K, S, d_v = k.shape[1], k.shape[2], v.shape[3]
    scale = 1 / math.sqrt(d) if scale is None else scale
    mixed = np.zeros((B, H, T, d_v))
    for b in range(B):
        for h in range(H):
            shared = h // (H // K)
            for t in range(T):
                seen = [s for s in range(S) if allowed[b, h, t, s]]
                if not seen:
                    continue
                scores = {}
                for s in seen:
                    product = sum(float(q[b, h, t, i]) * float(k[b, shared, s, i]) for i in range(d))
                    scores[s] = product * scale + (0.0 if bias is None else float(bias[b, h, t, s]))
                highest = max(scores.values())
                exponentials = {s: math.exp(score - highest) for s, score in scores.items()}
                total = sum(exponentials.values())
                for i in range(d_v):
                    mixed[b, h, t, i] = sum(exponentials[s] / total * float(v[b, shared, s, i]) for s in seen)
    return mixed
