"""The store that keeps everything by concatenation: the reference that the others are tested against.

Source: transformer-notes §16.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.generation.stores.counted import Counted, KeptLayer
from clearhead.layers.store import Places
from clearhead.models.decoder import Decoder


class GrowingStore(Counted):
    """Keeps everything by concatenation; the only one that gradients can flow through.

    Args:
        model: whose keys and values it keeps.
        capacity: the most tokens to keep, padding among them; the model's context if None.
    """

    def __init__(self, model: Decoder, capacity: int | None = None) -> None:
        self.layers = [_GrowingLayer(self) for _ in model.blocks]
        super().__init__(model.context if capacity is None else capacity, self.layers)

    def places(self, length: int, real: Tensor | None, device: torch.device) -> Places:
        """As `Store.places`: the new tokens follow the kept ones, and all are visible."""
        return self._following(length, real, device)

    def layer(self, index: int) -> _GrowingLayer:
        """The part of block `index`."""
        return self.layers[index]

    def truncate(self, length: int) -> None:
        """Forget every token after the first `length`.

        Raises:
            ValueError: if fewer tokens are kept.
        """
        self._cut(length)
        for layer in self.layers:
            layer.truncate(length)


class _GrowingLayer(KeptLayer):
    """Keys and values of one block, (B,K,S,d) each, in the order of their tokens."""

    def __init__(self, store: GrowingStore) -> None:
        super().__init__()
        self.store = store

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values, the new ones last."""
        # Only what has been counted: a forward that failed half-way may have left more.
        counted = () if self.kept is None else tuple(kept[..., : self.store.length, :] for kept in self.kept)
        pairs = zip(counted, (k, v), strict=True) if counted else ((k[..., :0, :], k), (v[..., :0, :], v))
        k, v = (torch.cat(pair, dim=-2) for pair in pairs)
        self.kept = (k, v)
        return k, v

    def truncate(self, length: int) -> None:
        """Forget all tokens after the first `length`."""
        if self.kept is not None:
            self.kept = (self.kept[0][..., :length, :].clone(), self.kept[1][..., :length, :].clone())
