"""Attention with a twist on the scores that PyTorch's fused kernel cannot do: soft-capping, and sinks.

Both have the signature of `Attend` and one argument more, to be fixed when a model is built.

Source: Gemma Team 2024 (arXiv:2408.00118) §2 for the cap; Xiao et al. 2023 (arXiv:2309.17453) for sinks.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.ops.attention import mix, scaled_scores, weigh
from clearhead.ops.masks import Mask
from clearhead.ops.tap import NO_TAP, Ran, Tap


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
    mixed = mix(weigh(scores, visible, bias=bias, tap=tap), v, dropout)
    tap.shown("weights", Ran(mixed, q, k, v, visible, bias, scale, dropout, cap=cap))
    return mixed


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
    sink = sinks[:, None, None].to(scores.dtype)
    mixed = mix(weigh(scores, visible, bias=bias, sink=sink, tap=tap), v, dropout)
    tap.shown("weights", Ran(mixed, q, k, v, visible, bias, scale, dropout, sinks=sinks))
    return mixed
