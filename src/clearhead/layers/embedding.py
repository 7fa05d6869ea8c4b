"""From ids and positions to vectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.messages import UserError, say
from clearhead.ops.masks import Positions


class TokenEmbedding(nn.Embedding):
    """Row i of a trained table E (V,D) for token id i.

    Source: transformer-notes §3.
    """

    def forward(self, ids: Tensor) -> Tensor:
        """(B,T) -> (B,T,D).

        Raises:
            UserError: if an id is outside 0..V-1, with both numbers (on the CPU; other devices fail by themselves).
        """
        try:
            return super().forward(ids)
        except IndexError:
            wrong = next(i for i in ids.flatten().tolist() if not 0 <= i < self.num_embeddings)
            raise UserError(say("models.id_outside", id=wrong, vocab=self.num_embeddings)) from None


class LearnedPositions(nn.Module):
    """Row t of a trained table (context,D) for position t, added to the token embedding once, before the blocks.

    Args:
        context: how many positions there are rows for.
        width: D.

    Source: transformer-notes §4; Radford et al. 2018.
    """

    def __init__(self, context: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(context, width))
        nn.init.normal_(self.table, std=0.02)

    def forward(self, positions: Positions) -> Tensor:
        """T positions -> (T,D); positions (B,T) -> (B,T,D)."""
        if isinstance(positions, range):
            return self.table[positions.start : positions.stop]
        return self.table[positions]
