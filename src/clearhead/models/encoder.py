"""The encoder: every position sees every other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from clearhead.layers.embedding import TokenEmbedding
from clearhead.layers.look import Look
from clearhead.layers.store import NO_STORE, as_real
from clearhead.models.decoder import fits, shared_biases
from clearhead.ops.masks import EVERYTHING, Mask
from clearhead.ops.tap import NO_TAP, Tap


class Encoder(nn.Module):
    """head(norm(block_L(... block_1(E[ids] + P + G)))), with looks that go both ways.

    The decoder's stack without a store and without causality. Padding is seen by nobody, and positions count the real
    tokens of a row, so neither what stands at padding nor how much of it there is moves a real token's output.

    Args:
        embedding: E, ids to vectors.
        positions: adds P; or nothing, where order is known inside attention.
        blocks: L blocks.
        looks: how each block looks at positions, one a block.
        norm: after the last block; the identity for post-norm blocks.
        head: what is made of the features.
        context: the most positions a forward takes.
        segments: adds G; or nothing.
        embedding_norm: of the sum; identity if None.
        dropout: probability, in training, of dropping a feature of the sum.

    Names for a tap: `embedding`, `positions`, `segments`, `input`, `blocks.0.*` ..., `norm`, `head.*`.

    Source: Vaswani et al. 2017 §3.1; Devlin et al. 2019 (arXiv:1810.04805).
    """

    def __init__(
        self,
        embedding: TokenEmbedding,
        positions: nn.Module,
        blocks: nn.ModuleList,
        *,
        looks: Sequence[Look],
        norm: nn.Module,
        head: nn.Module,
        context: int,
        segments: nn.Module,
        embedding_norm: nn.Module | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding, self.positions, self.segments = embedding, positions, segments
        self.embedding_norm, self.dropout = embedding_norm or nn.Identity(), nn.Dropout(dropout)
        self.blocks, self.looks, self.norm, self.head = blocks, tuple(looks), norm, head
        self.biases = shared_biases(looks)
        self.context = context

    def forward(
        self,
        ids: Tensor,
        *,
        segments: Tensor | None = None,
        visible: Mask = EVERYTHING,
        real: Tensor | None = None,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        """Token ids (B,T) -> features (B,T,D), logits (B,T,V) or one vector a row (B,D), as the head has it.

        Args:
            ids: integers below V; T is at most the context.
            segments: (B,T) the segment of each token; all 0 if None.
            visible: further limits, such as `Documents(...)`.
            real: (B,T) booleans, False for padding, on either side.
            tap: sees, or replaces, the named tensors.

        Raises:
            UserError: if T exceeds the context, an id is outside the vocabulary, or segments are given to a model that
                has none.
        """
        features = self.features(ids, segments=segments, visible=visible, real=real, tap=tap)
        every = torch.ones_like(ids, dtype=torch.bool) if real is None else as_real(real, ids.device)
        made: Tensor = self.head(features, every, tap=tap.within("head"))
        return made

    def features(
        self,
        ids: Tensor,
        *,
        segments: Tensor | None = None,
        visible: Mask = EVERYTHING,
        real: Tensor | None = None,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        """Token ids (B,T) -> what the head reads (B,T,D), the last norm done; arguments and errors as in `forward`."""
        places = NO_STORE.places(fits(ids.shape[-1], self.context), real, ids.device)
        x = self.segments(tap("embedding", self.embedding(ids)), segments, tap=tap)
        x = tap("input", self.dropout(self.embedding_norm(self.positions(x, places.queries, tap=tap))))
        seen = {look: look(places, visible, x) for look in dict.fromkeys(self.looks)}
        for index, (block, look) in enumerate(zip(self.blocks, self.looks, strict=True)):
            mask, rotate, bias = seen[look]
            x = block(x, mask, rotate=rotate, bias=bias, tap=tap.within(f"blocks.{index}"))
        return tap("norm", self.norm(x))
