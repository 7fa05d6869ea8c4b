"""The decoder-only language model: the GPT of the notes."""

from __future__ import annotations

from torch import Tensor, nn

from clearhead.layers.embedding import LearnedPositions, TokenEmbedding
from clearhead.messages import UserError, say
from clearhead.ops.masks import EVERYTHING, Mask, causal
from clearhead.ops.tap import NO_TAP, Tap


class Decoder(nn.Module):
    """logits = head(norm(block_L(... block_1(E[ids] + P)))).

    Token and position vectors are added once, before the first block; each block has its own weights.

    Args:
        embedding: E, ids to vectors.
        positions: P, a vector for each position.
        blocks: L blocks.
        norm: before the head.
        head: features to logits over the vocabulary.
        context: the most positions a forward takes.
        dropout: probability, in training, of dropping a feature of the sum E + P.

    Names for a tap: `embedding`, `positions`, `input`, `blocks.0.*` ..., `norm`, `logits`.

    Source: transformer-notes §2; chapter 19 §19.6.
    """

    def __init__(
        self,
        embedding: TokenEmbedding,
        positions: LearnedPositions,
        blocks: nn.ModuleList,
        norm: nn.Module,
        head: nn.Linear,
        *,
        context: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding, self.positions = embedding, positions
        self.blocks, self.norm, self.head = blocks, norm, head
        self.dropout = nn.Dropout(dropout)
        self.context = context

    def forward(self, ids: Tensor, *, visible: Mask = EVERYTHING, tap: Tap = NO_TAP) -> Tensor:
        """Token ids (B,T) -> logits (B,T,V); position t scores the token at t + 1.

        Args:
            ids: integers below V; T is at most the context.
            visible: further limits beside causality, such as `Padding(real)`.
            tap: sees, or replaces, the named tensors.

        Raises:
            UserError: if T exceeds the context or an id is outside the vocabulary, with both numbers.
        """
        length = fits(ids.shape[-1], self.context)
        visible = causal(length) & visible
        x = tap("embedding", self.embedding(ids)) + tap("positions", self.positions(range(length)))
        x = tap("input", self.dropout(x))
        for index, block in enumerate(self.blocks):
            x = block(x, visible, tap=tap.within(f"blocks.{index}"))
        return tap("logits", self.head(tap("norm", self.norm(x))))


def fits(length: int, context: int) -> int:
    """`length`, if the context holds that many positions; otherwise a UserError with both numbers."""
    if length > context:
        raise UserError(say("models.too_long", length=length, context=context))
    return length
