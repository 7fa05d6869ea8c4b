"""A store whose shapes never change, as compiled decoding wants.

Source: transformer-notes §16.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.generation.stores.counted import Counted, KeptLayer
from clearhead.layers.store import Places, ragged_positions
from clearhead.models.decoder import Decoder
from clearhead.ops.masks import EVERYTHING, Padding


class FixedStore(Counted):
    """Keeps everything in memory allocated once, at the first append; slots not yet filled are hidden by causality.

    Every forward sees all `capacity` slots, so that shapes do not change from step to step: a slot that is still empty
    stands at a later position than any query.

    Args:
        model: whose keys and values it keeps.
        capacity: how many tokens there is room for; the model's context if None.
    """

    def __init__(self, model: Decoder, capacity: int | None = None) -> None:
        if capacity is not None and capacity < 1:
            raise ValueError(f"a store of {capacity} tokens holds nothing; give at least 1")
        self.layers = [_FixedLayer(self) for _ in model.blocks]
        super().__init__(model.context if capacity is None else min(capacity, model.context), self.layers)
        self.start: Tensor | None = None
        self.slots: Tensor | None = None

    def places(self, length: int, real: Tensor | None, device: torch.device) -> Places:
        """As `Store.places`; the positions of the queries are a tensor, so that one compiled forward fits all later steps."""
        known = self._extend(length, real, device)
        self.start = torch.zeros(1, 1, dtype=torch.long, device=device) if self.start is None else self.start
        self.slots = self.start[0] + torch.arange(length, device=device)
        if known is None:
            return Places(self.slots[None], range(self.context), EVERYTHING)
        room = torch.zeros(len(known), self.context - known.shape[-1], dtype=torch.bool, device=device)
        every = torch.cat([known, room], dim=1)
        positions = ragged_positions(every)
        return Places(positions[:, self.length : self.length + length], positions, Padding(every))

    def layer(self, index: int) -> _FixedLayer:
        """The part of block `index`."""
        return self.layers[index]

    def advance(self, length: int) -> None:
        """Count `length` more tokens, on the device too."""
        super().advance(length)
        assert self.start is not None
        self.start += length

    def truncate(self, length: int) -> None:
        """Forget every token after the first `length`; their slots are written anew.

        Raises:
            ValueError: if fewer tokens are kept.
        """
        self._cut(length)
        if self.start is not None:
            self.start.fill_(length)


class _FixedLayer(KeptLayer):
    """Keys and values of one block, (B,K,capacity,d) each."""

    def __init__(self, store: FixedStore) -> None:
        super().__init__()
        self.store = store

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """All slots, the new keys and values written into theirs."""
        if self.kept is None:
            # Zeros, not empty memory: a hidden slot has weight 0, and 0 · NaN would still be NaN.
            self.kept = (self._room(k), self._room(v))
        assert self.store.slots is not None
        for kept, new in zip(self.kept, (k, v), strict=True):
            kept.index_copy_(-2, self.store.slots, new.to(kept.dtype))
        return self.kept

    def _room(self, new: Tensor) -> Tensor:
        return new.new_zeros(*new.shape[:-2], self.store.context, new.shape[-1])
