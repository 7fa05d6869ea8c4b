"""Softmax, written out, and the precision that sensitive sums run in."""

from __future__ import annotations

import torch
from torch import Tensor


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """The wider of float32 and `dtype`: float64 stays float64, 16-bit types are lifted to float32."""
    return torch.promote_types(dtype, torch.float32)


def softmax(scores: Tensor, dim: int = -1, sink: Tensor | None = None) -> Tensor:
    """Softmax with its max-shift: exp(x - max x) / Σ exp(x - max x) along `dim`.

    Subtracting the maximum changes nothing in exact arithmetic (numerator and denominator share the factor
    exp(-max x)) and keeps exp from overflowing. A row of -inf everywhere, a query that may look at nothing, gives
    zeros and a zero gradient, where the bare formula gives 0/0.

    Args:
        scores: any shape and floating type; -inf marks what is not allowed.
        dim: the axis that sums to 1; in attention the last, the keys.
        sink: a score that takes part in the sum and gets no weight, of size 1 along `dim`; weights then sum to less
            than 1 (attention sinks; a sink of 0 is "off-by-one" softmax).

    Returns:
        The weights, of the same shape, in the wider of float32 and the type of `scores`.

    Source: transformer-notes §8, §18; Milakov and Gimelshein 2018 (arXiv:1805.02867) for the shift.
    """
    scores = scores.to(at_least_float32(scores.dtype))
    # The shift is a constant for the gradient; where a row is all -inf, 0 avoids -inf - -inf = NaN.
    shift = scores.detach().amax(dim, keepdim=True)
    shift = shift if sink is None else torch.maximum(shift, sink.detach())
    shift = shift.masked_fill(shift == -torch.inf, 0.0)
    exponentials = torch.exp(scores - shift)
    total = exponentials.sum(dim, keepdim=True)
    total = total if sink is None else total + torch.exp(sink - shift)
    return exponentials / total.masked_fill(total == 0, 1.0)
