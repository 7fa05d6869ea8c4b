"""The kernel with trained sinks."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from clearhead.ops.attention_variants import attend_with_sinks
from clearhead.ops.masks import Mask
from clearhead.ops.tap import NO_TAP, Tap


class AttendWithSinks(Protocol):
    """A kernel that takes the scores of sinks: `ops.attend_with_sinks`, `ops.attend_blockwise`."""

    def __call__(
        self,
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
        """As `ops.attend_with_sinks`."""
        ...


class SinkAttention(nn.Module):
    """A trained sink score for each head; with it, a kernel like any other.

    Args:
        heads: H.
        attend: the kernel that takes the scores.
    """

    def __init__(self, heads: int, attend: AttendWithSinks = attend_with_sinks) -> None:
        super().__init__()
        self.sinks, self.attend = nn.Parameter(torch.zeros(heads)), attend

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
        return self.attend(q, k, v, visible, sinks=self.sinks, bias=bias, scale=scale, dropout=dropout, tap=tap)
