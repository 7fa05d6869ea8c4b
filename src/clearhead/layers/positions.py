"""Positions that are added to the token embedding, once, before the first block."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from clearhead.messages import UserError, say
from clearhead.ops.masks import Positions
from clearhead.ops.tap import NO_TAP, Tap


class NoPositions(nn.Module):
    """Nothing is added: order is unknown, or known inside attention (rotary, ALiBi)."""

    def forward(self, x: Tensor, positions: Positions, *, tap: Tap = NO_TAP) -> Tensor:
        """`x` itself."""
        return x


class LearnedPositions(nn.Module):
    """x + P[t], P a trained table (context,D).

    Args:
        context: how many positions there are rows for.
        width: D.

    Source: transformer-notes §4; Radford et al. 2018.
    """

    def __init__(self, context: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(context, width))
        nn.init.normal_(self.table, std=0.02)

    def forward(self, x: Tensor, positions: Positions, *, tap: Tap = NO_TAP) -> Tensor:
        """(B,T,D), T positions or (B,T) -> (B,T,D).

        Raises:
            UserError: if a range of positions ends behind the table, with both numbers.
            IndexError: if a position of a tensor lies behind the table.
        """
        if isinstance(positions, range):
            if positions.stop > len(self.table):
                raise UserError(say("models.too_long", length=positions.stop, context=len(self.table)))
            return x + tap("positions", self.table[positions.start : positions.stop])
        return x + tap("positions", self.table[positions])


class SinusoidalPositions(nn.Module):
    """x + P[t], P the sinusoids of the original Transformer; nothing is trained.

    Args:
        width: D.
        formula: `ops.sinusoids` or `ops.sinusoids_in_halves`.
        base: of the frequencies.
    """

    def __init__(self, width: int, formula: Callable[..., Tensor], base: float) -> None:
        super().__init__()
        self.width, self.formula, self.base = width, formula, base

    def forward(self, x: Tensor, positions: Positions, *, tap: Tap = NO_TAP) -> Tensor:
        """(B,T,D), T positions or (B,T) -> (B,T,D)."""
        table = self.formula(positions, self.width, base=self.base, device=x.device)
        return x + tap("positions", table.to(x.dtype))
