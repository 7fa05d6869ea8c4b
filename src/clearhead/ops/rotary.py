"""Rotary positions: pairs of features of q and k are turned by an angle that grows with the position.

Turning q by m·ω and k by n·ω leaves a dot product that depends on m - n alone, pair by pair. v is never turned.

Source: Su et al. 2021 (arXiv:2104.09864); transformer-notes §4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from clearhead.ops.masks import Positions
from clearhead.ops.softmax import at_least_float32


class Rotate(Protocol):
    """How queries and keys (B,H,T,d) are turned before they meet."""

    def __call__(self, x: Tensor) -> Tensor:
        """The turned vectors, of the same shape and type."""
        ...


def unrotated(x: Tensor) -> Tensor:
    """`x` itself: no rotary positions."""
    return x


def rotary_frequencies(width: int, theta: float = 10_000.0, device: torch.device | None = None) -> Tensor:
    """ω_i = θ^(-2i/d) for the d/2 pairs, in float64: (d/2).

    Args:
        width: d, how many features are turned; even.
        theta: θ, the base.
        device: where the result lives; devices without float64 (MPS) get float32.
    """
    dtype = torch.float32 if device is not None and device.type == "mps" else torch.float64
    exponents = torch.arange(0, width, 2, dtype=dtype, device=device) / width
    return torch.pow(torch.tensor(theta, dtype=dtype, device=device), -exponents)


def linear_scaled(frequencies: Tensor, factor: float) -> Tensor:
    """ω / factor: positions are squeezed by `factor`. Source: Chen et al. 2023 (arXiv:2306.15595)."""
    return frequencies / factor


def llama3_scaled(
    frequencies: Tensor, factor: float, *, low: float = 1.0, high: float = 4.0, original_context: int = 8192
) -> Tensor:
    """Llama 3.1's scaling: slow turns are squeezed by `factor`, fast ones are kept, and those between are mixed.

    With λ = 2π/ω the wavelength and C the original context, a pair that turns more than `high` times within C is kept,
    one that turns less than `low` times is divided, and between s = (C/λ - low) / (high - low) mixes the two.

    Source: Dubey et al. 2024 (arXiv:2407.21783) §3.2 and the reference code's constants.
    """
    turns = original_context * frequencies / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return frequencies * (kept + (1 - kept) / factor)


def yarn_scaled(
    frequencies: Tensor,
    factor: float,
    *,
    theta: float,
    original_context: int,
    fast: float = 32.0,
    slow: float = 1.0,
) -> Tensor:
    """YaRN: pairs that turn more than `fast` times in the original context are kept, less than `slow` divided.

    Between them the share kept falls linearly with the pair's index i, from floor(i(fast)) to ceil(i(slow)), where
    i(r) = (d / 2) log(C / (2π r)) / log θ is the pair that turns r times within the original context C.

    Source: Peng et al. 2023 (arXiv:2309.00071) §3.2.
    """
    pairs = frequencies.shape[-1]

    def pair_that_turns(times: float) -> float:
        return pairs * math.log(original_context / (2 * math.pi * times)) / math.log(theta)

    first = max(0, math.floor(pair_that_turns(fast)))
    last = min(2 * pairs - 1, math.ceil(pair_that_turns(slow)))
    index = torch.arange(pairs, dtype=frequencies.dtype, device=frequencies.device)
    divided = ((index - first) / max(last - first, 1e-3)).clamp(0, 1)
    return frequencies * (1 - divided) + frequencies / factor * divided


def yarn_attention_factor(factor: float) -> float:
    """YaRN's √(1/t) = 0.1 ln(factor) + 1, which multiplies cos and sin. Source: the same paper, §3.4."""
    return 1.0 if factor <= 1 else 0.1 * math.log(factor) + 1.0


def turn_half_split(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn the pairs (x_i, x_{i + d/2}): [a cos - b sin, b cos + a sin], a and b the two halves of the features.

    Args:
        x: (..., T, d).
        cos: (..., T, d/2), broadcasting against `x`.
        sin: the same.
    """
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def turn_interleaved(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn the pairs (x_{2i}, x_{2i+1}), the layout of the paper; arguments as in `turn_half_split`."""
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)


def interleaved_to_half_split(weight: Tensor, heads: int, turned: int | None = None) -> Tensor:
    """Reorder the output features of a q or k projection so that half-split turning does what interleaved did.

    Feature 2i of each head goes to place i, feature 2i + 1 to place i + n/2, n the number of turned features.

    Args:
        weight: (H·d, D) or a bias (H·d).
        heads: H (K for a key projection).
        turned: n; all d features if None.
    """
    return _reordered(weight, heads, turned, half_to_pairs=False)


def half_split_to_interleaved(weight: Tensor, heads: int, turned: int | None = None) -> Tensor:
    """The inverse of `interleaved_to_half_split`."""
    return _reordered(weight, heads, turned, half_to_pairs=True)


def _reordered(weight: Tensor, heads: int, turned: int | None, *, half_to_pairs: bool) -> Tensor:
    width = weight.shape[0] // heads
    turned = width if turned is None else turned
    order = torch.cat([torch.arange(0, turned, 2), torch.arange(1, turned, 2), torch.arange(turned, width)])
    order = order.argsort() if half_to_pairs else order
    return weight.reshape(heads, width, *weight.shape[1:])[:, order].reshape(weight.shape)


@dataclass(frozen=True, eq=False)
class Rotation:
    """The turn of given positions, computed once and used by every block: calling it turns q or k.

    Only the first `2 · cos.shape[-1]` features of a head are turned (partial rotary); the rest pass.

    Args:
        cos: (T,n/2), or (B,1,T,n/2) for positions per row.
        sin: the same.
        interleaved: which features form a pair.
    """

    cos: Tensor
    sin: Tensor
    interleaved: bool = False

    def __call__(self, x: Tensor) -> Tensor:
        """(B,H,T,d) -> (B,H,T,d), turned in the wider of float32 and the type of `x`."""
        turned = 2 * self.cos.shape[-1]
        turn = turn_interleaved if self.interleaved else turn_half_split
        wide = x[..., :turned].to(at_least_float32(x.dtype))
        return torch.cat([turn(wide, self.cos, self.sin).to(x.dtype), x[..., turned:]], dim=-1)


def rotation(
    positions: Positions,
    frequencies: Tensor,
    dtype: torch.dtype,
    *,
    interleaved: bool = False,
    attention_factor: float = 1.0,
) -> Rotation:
    """The turn of `positions`: angle t·ω_i, in the wider of float32 and `dtype`, also under autocast.

    Args:
        positions: of the T vectors, a range or integers (B,T).
        frequencies: ω (n/2).
        dtype: of the vectors that will be turned.
        interleaved: which features form a pair.
        attention_factor: multiplies cos and sin (YaRN).
    """
    wide = at_least_float32(dtype)
    if isinstance(positions, range):
        places = torch.arange(positions.start, positions.stop, device=frequencies.device)
    else:
        places = positions.unsqueeze(-2)
    # A plain product: autocast would run a matrix product in 16 bits.
    angles = places.unsqueeze(-1).to(wide) * frequencies.to(wide)
    return Rotation(angles.cos() * attention_factor, angles.sin() * attention_factor, interleaved)
