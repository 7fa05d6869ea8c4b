"""Attention with a twist on the scores that PyTorch's fused kernel cannot do: soft-capping, and sinks.

Both have the signature of `Attend` and one argument more, to be fixed when a model is built.

Source: Gemma Team 2024 (arXiv:2408.00118) §2 for the cap; Xiao et al. 2023 (arXiv:2309.17453) for sinks.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.ops.attention import mix, scaled_scores
from clearhead.ops.masks import Mask
from clearhead.ops.softmax import softmax
from clearhead.ops.tap import NO_TAP, Tap


def attend_capped(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    visible: Mask,
    *,
    cap: float,
    bias: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    tap: Tap = NO_TAP,
) -> Tensor:
    """As `attend_visible`, the scaled scores squeezed smoothly into (-cap, cap): cap · tanh(scores / cap).

    The cap acts before bias and mask, so that a masked score stays -∞.
    """
    scores = cap * torch.tanh(scaled_scores(q, k, scale) / cap)
    scores = tap("scores", scores if bias is None else scores + bias)
    weights = softmax(scores.masked_fill(~visible.matrix(q.device), -torch.inf))
    return mix(tap("weights", weights), v, dropout)


def attend_with_sinks(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    visible: Mask,
    *,
    sinks: Tensor,
    bias: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    tap: Tap = NO_TAP,
) -> Tensor:
    """As `attend_visible`, with one more score per head that takes weight and holds no value.

    weights = exp(scores) / (Σ exp(scores) + exp(sink_h)): a head may look at nothing much. `sinks` is (H).
    """
    scores = scaled_scores(q, k, scale)
    scores = tap("scores", scores if bias is None else scores + bias)
    hidden = scores.masked_fill(~visible.matrix(q.device), -torch.inf)
    weights = softmax(hidden, sink=sinks[:, None, None].to(hidden.dtype))
    return mix(tap("weights", weights), v, dropout)
