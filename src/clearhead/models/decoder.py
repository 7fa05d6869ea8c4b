"""The decoder-only language model: the GPT of the notes."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from clearhead.layers.embedding import TokenEmbedding
from clearhead.layers.look import Look
from clearhead.layers.store import NO_STORE, Places, Store
from clearhead.messages import UserError, say
from clearhead.ops.masks import EVERYTHING, Mask
from clearhead.ops.tap import NO_TAP, Tap


class Decoder(nn.Module):
    """logits = head(norm(block_L(... block_1(E[ids] + P)))).

    Token and position vectors are added once, before the first block; each block has its own weights.

    With blocks that have cross-attention, and a store that holds a memory, it is the decoder of an encoder-decoder.

    Args:
        embedding: E, ids to vectors.
        positions: adds P; or nothing, where order is known inside attention.
        blocks: L blocks.
        looks: how each block looks at positions, one a block.
        norm: before the head; the identity for post-norm blocks.
        head: features to logits over the vocabulary.
        context: the most positions a forward takes.
        embedding_norm: of the sum E + P; identity if None.
        dropout: probability, in training, of dropping a feature of the sum E + P.

    Names for a tap: `embedding`, `positions`, `input`, `blocks.0.*` ..., `norm`, `logits`.

    Source: transformer-notes §2; chapter 19 §19.6.
    """

    def __init__(
        self,
        embedding: TokenEmbedding,
        positions: nn.Module,
        blocks: nn.ModuleList,
        *,
        looks: Sequence[Look],
        norm: nn.Module,
        head: nn.Linear,
        context: int,
        embedding_norm: nn.Module | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding, self.positions = embedding, positions
        self.embedding_norm, self.dropout = embedding_norm or nn.Identity(), nn.Dropout(dropout)
        self.blocks, self.looks, self.norm, self.head = blocks, tuple(looks), norm, head
        self.biases = shared_biases(looks)
        self.context = context

    def forward(
        self,
        ids: Tensor,
        *,
        visible: Mask = EVERYTHING,
        real: Tensor | None = None,
        positions: Tensor | None = None,
        store: Store = NO_STORE,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        """Token ids (B,T) -> logits (B,T,V); position t scores the token at t + 1.

        Args:
            ids: integers below V; T is at most the context.
            visible: further limits beside causality, such as `Documents(...)`.
            real: (B,T) booleans, False for padding, on either side; positions count the real tokens of each row.
            positions: (B,T) positions of the tokens, where they are not counted from the store (packed documents).
            store: keys and values of the tokens before; it moves on by T.
            tap: sees, or replaces, the named tensors.

        Raises:
            UserError: if T exceeds the context or an id is outside the vocabulary, with both numbers.
        """
        features = self.features(ids, visible=visible, real=real, positions=positions, store=store, tap=tap)
        return tap("logits", self.head(features))

    def features(
        self,
        ids: Tensor,
        *,
        visible: Mask = EVERYTHING,
        real: Tensor | None = None,
        positions: Tensor | None = None,
        store: Store = NO_STORE,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        """Token ids (B,T) -> what the head reads (B,T,D), the last norm done; arguments and errors as in `forward`."""
        length = fits(ids.shape[-1], self.context)
        places = store.places(length, real, ids.device)
        places = places if positions is None else standing(places, positions)
        x = tap("embedding", self.embedding(ids))
        x = tap("input", self.dropout(self.embedding_norm(self.positions(x, places.queries, tap=tap))))
        seen = {look: look(places, visible, x) for look in dict.fromkeys(self.looks)}
        for index, (block, look) in enumerate(zip(self.blocks, self.looks, strict=True)):
            mask, rotate, bias = seen[look]
            x = block(x, mask, rotate=rotate, bias=bias, store=store.layer(index), tap=tap.within(f"blocks.{index}"))
        store.advance(length)
        return tap("norm", self.norm(x))


def shared_biases(looks: Sequence[Look]) -> nn.ModuleList:
    """The biases with weights of a stack's looks, each once: looks are values, the stack owns what they train."""
    return nn.ModuleList(dict.fromkeys(look.bias for look in looks if isinstance(look.bias, nn.Module)))


def standing(places: Places, positions: Tensor) -> Places:
    """The places of tokens whose positions the caller gives.

    Raises:
        ValueError: if a store shows further keys, whose positions are not among those given.
    """
    keys = places.keys.shape[-1] if isinstance(places.keys, Tensor) else len(places.keys)
    if keys != positions.shape[-1]:
        raise ValueError(
            f"positions of {positions.shape[-1]} tokens are given and {keys} keys are visible; use no store"
        )
    return places._replace(queries=positions, keys=positions)


def fits(length: int, context: int) -> int:
    """`length`, if it is at least 1 and the context holds that many positions; otherwise a UserError with the numbers."""
    if length < 1:
        raise UserError(say("models.no_tokens"))
    if length > context:
        raise UserError(say("models.too_long", length=length, context=context))
    return length
