"""Blocks of a decoder that reads another sequence: self-attention, then cross-attention, then the feed-forward."""

from __future__ import annotations

from torch import Tensor, nn

from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.memory import recall
from clearhead.layers.store import NO_STORE, LayerStore
from clearhead.ops.masks import Mask
from clearhead.ops.rotary import Rotate, unrotated
from clearhead.ops.tap import NO_TAP, Tap


class SequentialCrossBlock(nn.Module):
    """u = x + N₁'(Attention(N₁(x))),  w = u + N₂'(Cross(N₂(u), memory)),  z = w + N₃'(FFN(N₃(w))).

    As `SequentialBlock`, with a branch between its two that asks the memory which the block's store holds. The memory is not
    normalised here; the encoder has done that.

    Args:
        attention: the branch that mixes the own positions.
        cross_attention: the branch that asks the memory.
        feedforward: the branch that works on each position.
        attention_norm: N₁.
        cross_attention_norm: N₂.
        feedforward_norm: N₃.
        attention_after: N₁'; identity if None.
        cross_attention_after: N₂'; identity if None.
        feedforward_after: N₃'; identity if None.

    Names for a tap: those of `SequentialBlock`, and `cross_attention_norm`, `cross_attention.*`, `crossed` (w).

    Source: Vaswani et al. 2017 §3.1-3.2; transformer-notes §13.
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feedforward: nn.Module,
        *,
        attention_norm: nn.Module,
        cross_attention_norm: nn.Module,
        feedforward_norm: nn.Module,
        attention_after: nn.Module | None = None,
        cross_attention_after: nn.Module | None = None,
        feedforward_after: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.attention_norm, self.attention = attention_norm, attention
        self.attention_after = attention_after or nn.Identity()
        self.cross_attention_norm, self.cross_attention = cross_attention_norm, cross_attention
        self.cross_attention_after = cross_attention_after or nn.Identity()
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
        """(B,T,D) -> (B,T,D); the arguments are those of `MultiHeadAttention.forward`, the store holds a memory."""
        normed = tap("attention_norm", self.attention_norm(x))
        branch = self.attention(normed, visible, rotate=rotate, bias=bias, store=store, tap=tap.within("attention"))
        u = tap("middle", x + self.attention_after(branch))
        normed = tap("cross_attention_norm", self.cross_attention_norm(u))
        branch = self.cross_attention.across(normed, recall(store), tap=tap.within("cross_attention"))
        w = tap("crossed", u + self.cross_attention_after(branch))
        normed = tap("feedforward_norm", self.feedforward_norm(w))
        branch = self.feedforward(normed, tap=tap.within("feedforward"))
        return tap("output", w + self.feedforward_after(branch))


class PostNormCrossBlock(nn.Module):
    """u = N₁(x + Attention(x)),  w = N₂(u + Cross(u, memory)),  z = N₃(w + FFN(w)): the original Transformer's decoder.

    Args:
        attention: the branch that mixes the own positions.
        cross_attention: the branch that asks the memory.
        feedforward: the branch that works on each position.
        attention_norm: N₁.
        cross_attention_norm: N₂.
        feedforward_norm: N₃.

    Names for a tap: those of `PostNormBlock`, and `cross_attention.*`, `crossed` (w).

    Source: Vaswani et al. 2017 §3.1-3.2.
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feedforward: nn.Module,
        *,
        attention_norm: nn.Module,
        cross_attention_norm: nn.Module,
        feedforward_norm: nn.Module,
    ) -> None:
        super().__init__()
        self.attention, self.attention_norm = attention, attention_norm
        self.cross_attention, self.cross_attention_norm = cross_attention, cross_attention_norm
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
        """(B,T,D) -> (B,T,D); the arguments are those of `MultiHeadAttention.forward`, the store holds a memory."""
        branch = self.attention(x, visible, rotate=rotate, bias=bias, store=store, tap=tap.within("attention"))
        u = tap("middle", self.attention_norm(x + branch))
        branch = self.cross_attention.across(u, recall(store), tap=tap.within("cross_attention"))
        w = tap("crossed", self.cross_attention_norm(u + branch))
        branch = self.feedforward(w, tap=tap.within("feedforward"))
        return tap("output", self.feedforward_norm(w + branch))
