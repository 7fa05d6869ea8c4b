"""The store that decoding uses: everything is kept, in memory that doubles when it is full.

Concatenation copies all kept keys at every token; here a key is copied about once in its life, and going back is free.

Source: transformer-notes §16; the amortised growth of every dynamic array.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.generation.stores.counted import Counted, KeptLayer
from clearhead.layers.store import Places
from clearhead.models.decoder import Decoder

SMALLEST = 64
"""Slots of the first allocation, at least."""


class DoublingStore(Counted):
    """Keeps what `GrowingStore` keeps; each append writes the new keys and values behind the kept ones. For inference.

    Args:
        model: whose keys and values it keeps.
        capacity: the most tokens to keep, padding among them; the model's context if None.
    """

    def __init__(self, model: Decoder, capacity: int | None = None) -> None:
        self.layers = [_DoublingLayer(self) for _ in model.blocks]
        super().__init__(model.context if capacity is None else capacity, self.layers)

    def places(self, length: int, real: Tensor | None, device: torch.device) -> Places:
        """As `Store.places`: the new tokens follow the kept ones, and all are visible."""
        return self._following(length, real, device)

    def layer(self, index: int) -> _DoublingLayer:
        """The part of block `index`."""
        return self.layers[index]

    def truncate(self, length: int) -> None:
        """Forget every token after the first `length`; their slots are written anew.

        Raises:
            ValueError: if fewer tokens are kept.
        """
        self._cut(length)


class _DoublingLayer(KeptLayer):
    """Keys and values of one block, (B,K,room,d) each, of which the first `length` are filled."""

    def __init__(self, store: DoublingStore) -> None:
        super().__init__()
        self.store = store

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values, the new ones last: views of the filled part."""
        start, end = self.store.length, self.store.length + k.shape[-2]
        self.kept = (self._roomy(k, 0, end), self._roomy(v, 1, end))
        for kept, new in zip(self.kept, (k, v), strict=True):
            kept[..., start:end, :] = new
        return self.kept[0][..., :end, :], self.kept[1][..., :end, :]

    def _roomy(self, new: Tensor, index: int, end: int) -> Tensor:
        """The kept keys (0) or values (1), in memory with at least `end` slots."""
        kept = None if self.kept is None else self.kept[index]
        if kept is not None and kept.shape[-2] >= end:
            return kept
        room = min(max(2 * end, SMALLEST), self.store.context)
        larger = new.new_empty(*new.shape[:-2], room, new.shape[-1])
        if kept is not None:
            larger[..., : self.store.length, :] = kept[..., : self.store.length, :]
        return larger
