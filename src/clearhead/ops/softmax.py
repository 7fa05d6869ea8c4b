"""Softmax, written out, and the precision that sensitive sums run in."""

from __future__ import annotations

import torch
from torch import Tensor


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """The wider of float32 and `dtype`: float64 stays float64, 16-bit types are lifted to float32."""
    return torch.promote_types(dtype, torch.float32)


def softmax(scores: Tensor, dim: int = -1) -> Tensor:
    """Softmax with its max-shift: exp(x - max x) / Σ exp(x - max x) along `dim`.

    Subtracting the maximum changes nothing in exact arithmetic (numerator and denominator share the factor
    exp(-max x)) and keeps exp from overflowing. A row of -inf everywhere, a query that may look at nothing, gives
    zeros and a zero gradient, where the bare formula gives 0/0.

    Args:
        scores: any shape and floating type; -inf marks what is not allowed.
        dim: the axis that sums to 1; in attention the last, the keys.

    Returns:
        The weights, of the same shape, in the wider of float32 and the type of `scores`.

    Source: transformer-notes §8, §18; Milakov and Gimelshein 2018 (arXiv:1805.02867) for the shift.
    """
    scores = scores.to(at_least_float32(scores.dtype))
    # The shift is a constant for the gradient; where a row is all -inf, 0 avoids -inf - -inf = NaN.
    shift = scores.detach().amax(dim, keepdim=True)
    shift = shift.masked_fill(shift == -torch.inf, 0.0)
    exponentials = torch.exp(scores - shift)
    total = exponentials.sum(dim, keepdim=True)
    return exponentials / total.masked_fill(total == 0, 1.0)
