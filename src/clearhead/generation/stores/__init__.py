"""Stores that keep keys and values, so that old tokens are not computed again.

`GrowingStore` is the reference: it concatenates. `DoublingStore` keeps the same in memory that doubles when it is full, which is
what decoding uses. `FixedStore` writes into memory allocated once and keeps every shape the same from step to step, as compiled
decoding wants. `WindowStore` keeps the last W keys in a ring. All count one length for all blocks, can go back (`truncate`), choose
rows (`select`), and serve rows with padding (the ring: not between real tokens).

Source: transformer-notes §16.
"""

from clearhead.generation.stores.doubling import DoublingStore
from clearhead.generation.stores.fixed import FixedStore
from clearhead.generation.stores.growing import GrowingStore
from clearhead.generation.stores.window import WindowStore

Cache = GrowingStore | DoublingStore | FixedStore | WindowStore
"""A store that keeps."""

__all__ = ["Cache", "DoublingStore", "FixedStore", "GrowingStore", "WindowStore"]
