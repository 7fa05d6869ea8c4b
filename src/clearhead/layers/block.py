"""The block: attention exchanges information between positions, the feed-forward works on each; two residuals."""

from __future__ import annotations

from torch import Tensor, nn

from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.feedforward import FeedForward
from clearhead.ops.masks import Mask
from clearhead.ops.tap import NO_TAP, Tap


class PreNormBlock(nn.Module):
    """u = x + Attention(LN₁(x)),  z = u + FFN(LN₂(u)).

    The norm stands before each branch, and the second residual starts from the *updated* u.

    Args:
        attention_norm: LN₁.
        attention: the branch that mixes positions.
        feedforward_norm: LN₂.
        feedforward: the branch that works on each position.

    Names for a tap: `attention_norm`, `attention.*`, `middle` (u), `feedforward_norm`, `feedforward.*`, `output` (z).

    Source: chapter 19 §19.4, §19.6; transformer-notes §5.
    """

    def __init__(
        self,
        attention_norm: nn.Module,
        attention: MultiHeadAttention,
        feedforward_norm: nn.Module,
        feedforward: FeedForward,
    ) -> None:
        super().__init__()
        self.attention_norm, self.attention = attention_norm, attention
        self.feedforward_norm, self.feedforward = feedforward_norm, feedforward

    def forward(self, x: Tensor, visible: Mask, *, tap: Tap = NO_TAP) -> Tensor:
        """(B,T,D) -> (B,T,D)."""
        normed = tap("attention_norm", self.attention_norm(x))
        u = tap("middle", x + self.attention(normed, visible, tap=tap.within("attention")))
        normed = tap("feedforward_norm", self.feedforward_norm(u))
        return tap("output", u + self.feedforward(normed, tap=tap.within("feedforward")))
