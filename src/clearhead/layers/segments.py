"""Segments: which part of a row, say question or answer, a token belongs to."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.messages import UserError, say
from clearhead.ops.tap import NO_TAP, Tap


class NoSegments(nn.Module):
    """Nothing is added."""

    def forward(self, x: Tensor, segments: Tensor | None, *, tap: Tap = NO_TAP) -> Tensor:
        """`x` itself.

        Raises:
            UserError: if segments are given all the same: they would be ignored.
        """
        if segments is not None:
            raise UserError(say("models.no_segments"))
        return x


class SegmentEmbedding(nn.Module):
    """x + G[g], G a trained table (segments,D), g the segment of each token.

    Args:
        segments: how many kinds there are.
        width: D.

    Source: Devlin et al. 2019 §3 (arXiv:1810.04805).
    """

    def __init__(self, segments: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(nn.init.normal_(torch.empty(segments, width), std=0.02))

    def forward(self, x: Tensor, segments: Tensor | None, *, tap: Tap = NO_TAP) -> Tensor:
        """(B,T,D), numbers of segments (B,T) -> (B,T,D); all tokens are of segment 0 if none are given.

        Raises:
            IndexError: if a number is below 0 or not below the count of segments (on the CPU).
        """
        chosen = self.table[0].expand_as(x) if segments is None else F.embedding(segments, self.table)
        return x + tap("segments", chosen)
