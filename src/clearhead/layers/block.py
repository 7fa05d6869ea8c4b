"""The block: attention exchanges information between positions, the feed-forward works on each; residuals around both."""

from __future__ import annotations

from torch import Tensor, nn

from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.store import NO_STORE, LayerStore
from clearhead.ops.masks import Mask
from clearhead.ops.rotary import Rotate, unrotated
from clearhead.ops.tap import NO_TAP, Tap


class SequentialBlock(nn.Module):
    """u = x + N₁'(Attention(N₁(x))),  z = u + N₂'(FFN(N₂(u))).

    A norm may stand before each branch (pre-norm: N' is the identity), or before and after it. The second residual
    starts from the *updated* u.

    Args:
        attention: the branch that mixes positions.
        feedforward: the branch that works on each position.
        attention_norm: N₁.
        feedforward_norm: N₂.
        attention_after: N₁'; identity if None.
        feedforward_after: N₂'; identity if None.

    Names for a tap: `attention_norm`, `attention.*`, `middle` (u), `feedforward_norm`, `feedforward.*`, `output` (z).

    Source: chapter 19 §19.4, §19.6; transformer-notes §5.
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        feedforward: nn.Module,
        attention_norm: nn.Module,
        feedforward_norm: nn.Module,
        *,
        attention_after: nn.Module | None = None,
        feedforward_after: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.attention_norm, self.attention = attention_norm, attention
        self.attention_after = attention_after or nn.Identity()
        self.feedforward_norm, self.feedforward = feedforward_norm, feedforward
        self.feedforward_after = feedforward_after or nn.Identity()

    def forward(
        self,
        x: Tensor,
        visible: Mask,
        *,
        rotate: Rotate = unrotated,
        bias: Tensor | None = None,
        store: LayerStore = NO_STORE,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        """(B,T,D) -> (B,T,D); the arguments are those of `MultiHeadAttention.forward`."""
        normed = tap("attention_norm", self.attention_norm(x))
        branch = self.attention(normed, visible, rotate=rotate, bias=bias, store=store, tap=tap.within("attention"))
        u = tap("middle", x + self.attention_after(branch))
        normed = tap("feedforward_norm", self.feedforward_norm(u))
        branch = self.feedforward(normed, tap=tap.within("feedforward"))
        return tap("output", u + self.feedforward_after(branch))


class PostNormBlock(nn.Module):
    """u = N₁(x + Attention(x)),  z = N₂(u + FFN(u)): the norm of the sum, as in the original Transformer.

    Args:
        attention: the branch that mixes positions.
        feedforward: the branch that works on each position.
        attention_norm: N₁.
        feedforward_norm: N₂.

    Names for a tap: `attention.*`, `middle` (u), `feedforward.*`, `output` (z).

    Source: Vaswani et al. 2017 §3.1.
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        feedforward: nn.Module,
        attention_norm: nn.Module,
        feedforward_norm: nn.Module,
    ) -> None:
        super().__init__()
        self.attention, self.attention_norm = attention, attention_norm
        self.feedforward, self.feedforward_norm = feedforward, feedforward_norm

    def forward(
        self,
        x: Tensor,
        visible: Mask,
        *,
        rotate: Rotate = unrotated,
        bias: Tensor | None = None,
        store: LayerStore = NO_STORE,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        """(B,T,D) -> (B,T,D); the arguments are those of `MultiHeadAttention.forward`."""
        branch = self.attention(x, visible, rotate=rotate, bias=bias, store=store, tap=tap.within("attention"))
        u = tap("middle", self.attention_norm(x + branch))
        branch = self.feedforward(u, tap=tap.within("feedforward"))
        return tap("output", self.feedforward_norm(u + branch))


class ParallelBlock(nn.Module):
    """z = x + Attention(N₁(x)) + FFN(N₂(x)): both branches read the same x.

    Args:
        attention: the branch that mixes positions.
        feedforward: the branch that works on each position.
        attention_norm: N₁.
        feedforward_norm: N₂; the same module as N₁ where one norm serves both.

    Names for a tap: `attention_norm`, `attention.*`, `feedforward_norm`, `feedforward.*`, `output` (z).

    Source: Wang and Komatsuzaki 2021 (GPT-J); Black et al. 2022 (arXiv:2204.06745).
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        feedforward: nn.Module,
        attention_norm: nn.Module,
        feedforward_norm: nn.Module,
    ) -> None:
        super().__init__()
        self.attention_norm, self.attention = attention_norm, attention
        self.feedforward_norm, self.feedforward = feedforward_norm, feedforward

    def forward(
        self,
        x: Tensor,
        visible: Mask,
        *,
        rotate: Rotate = unrotated,
        bias: Tensor | None = None,
        store: LayerStore = NO_STORE,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        """(B,T,D) -> (B,T,D); the arguments are those of `MultiHeadAttention.forward`."""
        normed = tap("attention_norm", self.attention_norm(x))
        attended = self.attention(normed, visible, rotate=rotate, bias=bias, store=store, tap=tap.within("attention"))
        normed = tap("feedforward_norm", self.feedforward_norm(x))
        return tap("output", x + attended + self.feedforward(normed, tap=tap.within("feedforward")))
