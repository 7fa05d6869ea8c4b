"""What cross-attention asks: keys and values of another sequence, computed once, kept beside those of the own tokens.

An encoder-decoder turns its source into a `CrossStore`. Its decoder takes that as the store of any forward: places and
the cache of the own tokens come from the store beside it, and each block finds its part of the memory there too.

Source: transformer-notes §13, §16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.layers.store import NO_STORE, LayerStore, Places, Store
from clearhead.ops.masks import Allowed, Everything, Mask


class Memory(NamedTuple):
    """Another sequence, as the cross-attention of one block sees it."""

    k: Tensor
    """Keys (B,K,M,d)."""
    v: Tensor
    """Values (B,K,M,d)."""
    visible: Mask
    """Which of its positions are real."""

    def select(self, rows: Sequence[int]) -> Memory:
        """These rows of the batch, in this order, as often as they are named."""
        index = torch.tensor(rows, device=self.k.device)
        visible = self.visible if isinstance(self.visible, Everything) else Allowed(self.visible.matrix()[index])
        return Memory(self.k[index], self.v[index], visible)


class CrossStore:
    """Keys and values of another sequence for all blocks, and a store for the tokens of the own one.

    Args:
        memories: what each block's cross-attention asks, one a block.
        own: keeps, or does not keep, keys and values of the decoder's own tokens.
    """

    def __init__(self, memories: Sequence[Memory], own: Store = NO_STORE) -> None:
        self.memories, self.own = tuple(memories), own

    def beside(self, own: Store) -> CrossStore:
        """The same memory beside another store; the memory is shared, not copied."""
        return CrossStore(self.memories, own)

    def select(self, rows: Sequence[int]) -> CrossStore:
        """The memory of these rows of the batch, beside no store."""
        return CrossStore([memory.select(rows) for memory in self.memories])

    def places(self, length: int, real: Tensor | None, device: torch.device) -> Places:
        """Where the own tokens stand."""
        return self.own.places(length, real, device)

    def layer(self, index: int) -> CrossLayer:
        """The part of block `index`."""
        return CrossLayer(self.own.layer(index), self.memories[index])

    def advance(self, length: int) -> None:
        """Count `length` own tokens as kept; the memory does not change."""
        self.own.advance(length)


class CrossLayer(NamedTuple):
    """The part of a `CrossStore` that one block uses."""

    own: LayerStore
    memory: Memory

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """As `LayerStore.append`, for the own tokens."""
        return self.own.append(k, v)


class NoMemory:
    """The memory of a model that reads no other sequence."""

    def beside(self, own: Store) -> Store:
        """The store alone."""
        return own

    def select(self, rows: Sequence[int]) -> NoMemory:
        """Itself."""
        return self


NO_MEMORY = NoMemory()


def recall(store: LayerStore) -> Memory:
    """The memory that a block's store holds.

    Raises:
        ValueError: if it holds none, because the decoder was called without one.
    """
    if not isinstance(store, CrossLayer):
        raise ValueError("these blocks ask a memory: give the decoder store=model.remember(source)")
    return store.memory
