"""The kernel with trained sinks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.ops.attention_variants import attend_with_sinks
from clearhead.ops.masks import Mask
from clearhead.ops.tap import NO_TAP, Tap


class SinkAttention(nn.Module):
    """`ops.attend_with_sinks` with a trained sink score for each head; a kernel like any other.

    Args:
        heads: H.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.sinks = nn.Parameter(torch.zeros(heads))

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        visible: Mask,
        *,
        bias: Tensor | None = None,
        scale: float | None = None,
        dropout: float = 0.0,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        """As `ops.Attend`."""
        return attend_with_sinks(q, k, v, visible, sinks=self.sinks, bias=bias, scale=scale, dropout=dropout, tap=tap)
