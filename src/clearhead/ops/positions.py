"""Positions that are not trained: sinusoids added to the embedding, and ALiBi's bias on the scores."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from clearhead.ops.masks import Positions
from clearhead.ops.rotary import rotary_frequencies


def sinusoids(
    positions: Positions, width: int, *, base: float = 10_000.0, device: torch.device | None = None
) -> Tensor:
    """The original encoding: P[t,2i] = sin(t ω_i), P[t,2i+1] = cos(t ω_i), ω_i = base^(-2i/D); columns interleaved.

    Args:
        positions: a range of T, or integers (B,T).
        width: D, even.
        base: of the frequencies.
        device: where the result lives (that of a tensor of positions if given).

    Returns:
        (T,D) or (B,T,D) in float64 (float32 on MPS).

    Source: Vaswani et al. 2017 §3.5.
    """
    angles = _angles(positions, width, base, device)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def sinusoids_in_halves(
    positions: Positions, width: int, *, base: float = 10_000.0, device: torch.device | None = None
) -> Tensor:
    """The same numbers as `sinusoids` in another order of columns: D/2 sines, then D/2 cosines.

    Source: the layout of tensor2tensor, which much code follows.
    """
    angles = _angles(positions, width, base, device)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def alibi_slopes(heads: int) -> Tensor:
    """m_h = 2^(-8h/H) for h = 1..H if H is a power of two, in float64: (H).

    Otherwise the slopes of the next lower power of two, followed by every other slope of the next higher one.

    Source: Press et al. 2022 (arXiv:2108.12409) §3 and its reference code.
    """
    lower = 2 ** (heads.bit_length() - 1)
    exact = _geometric(lower)
    return torch.cat([exact, _geometric(2 * lower)[0::2][: heads - lower]])


def alibi_bias(slopes: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """The bias of ALiBi: -m_h |i - j| for query position i and key position j.

    Args:
        slopes: m (H).
        queries: positions (T) or (B,T).
        keys: positions (S) or (B,S).

    Returns:
        (H,T,S) or (B,H,T,S), of the type of the slopes.
    """
    distance = (queries.unsqueeze(-1) - keys.unsqueeze(-2)).abs()
    return -slopes[:, None, None] * distance.unsqueeze(-3)


def relative_buckets(distances: Tensor, buckets: int, farthest: int, *, two_sided: bool) -> Tensor:
    """The range that each distance falls into: one range a distance when near, logarithmic ones farther, one beyond.

    With n ranges for a side, and e = n/2 of them exact, a distance r is its own bucket if r < e, otherwise
    min(n - 1, e + ⌊(n - e) ln(r/e) / ln(farthest/e)⌋). One-sided, keys after the query count as distance 0;
    two-sided, half of all buckets is for each side, the later keys' behind.

    Args:
        distances: key position minus query position, integers of any shape.
        buckets: how many there are, of both sides together; at least 2 a side.
        farthest: from here on distances share the last bucket of their side; more than the exact ones.
        two_sided: whether later keys have buckets.

    Returns:
        Integers of the same shape, 0 to `buckets` - 1.

    Source: Raffel et al. 2020 §2.1 (arXiv:1910.10683) and its reference code.
    """
    side = buckets // 2 if two_sided else buckets
    exact = side // 2
    away = distances.abs() if two_sided else (-distances).clamp(min=0)
    # The smallest distance of each later bucket, as a whole number: no logarithm of a tensor is rounded to a side.
    ratio, steps = farthest / exact, side - exact
    borders = [math.ceil(exact * ratio ** (step / steps) - 1e-9) for step in range(1, steps)]
    far = exact + torch.bucketize(away, torch.tensor(borders, device=distances.device, dtype=away.dtype), right=True)
    return torch.where(away < exact, away, far) + (distances > 0) * side * two_sided


def _geometric(heads: int) -> Tensor:
    return torch.pow(2.0, -8.0 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)


def _angles(positions: Positions, width: int, base: float, device: torch.device | None) -> Tensor:
    if isinstance(positions, range):
        positions = torch.arange(positions.start, positions.stop, device=device)
    return positions.unsqueeze(-1) * rotary_frequencies(width, base, positions.device)
