"""Stores that keep keys and values, so that old tokens are not computed again.

`GrowingStore` is the reference: it concatenates. `FixedStore` writes into memory allocated once and keeps every shape the
same from step to step, as compiled decoding wants. `WindowStore` keeps the last W keys in a ring. All count one length for
all blocks, and serve rows with
padding (the ring: not between real tokens).

Source: transformer-notes §16.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.layers.store import Places, as_real, ragged_positions
from clearhead.messages import UserError, say
from clearhead.models.decoder import Decoder
from clearhead.ops.masks import EVERYTHING, Padding


class _Counted:
    """What all stores share: how many tokens are kept, and which of them are padding.

    Args:
        context: the most tokens that may be kept.
    """

    def __init__(self, context: int) -> None:
        self.context = context
        self.length = 0
        self.real: Tensor | None = None

    def advance(self, length: int) -> None:
        """Count `length` more tokens; their keys and values have been appended by every block."""
        self.length += length

    def _extend(self, length: int, real: Tensor | None, device: torch.device) -> Tensor | None:
        """Which of all tokens, the new ones last, are real: (B,S); None while no row has padding.

        Raises:
            UserError: if the new tokens do not fit.
        """
        if self.length + length > self.context:
            raise UserError(say("models.too_long", length=self.length + length, context=self.context))
        if real is None and self.real is None:
            return None
        rows = len(real) if real is not None else len(self.real)  # type: ignore[arg-type]
        before = torch.ones(rows, self.length, dtype=torch.bool, device=device) if self.real is None else self.real
        new = torch.ones(rows, length, dtype=torch.bool, device=device) if real is None else as_real(real, device)
        self.real = torch.cat([before[:, : self.length], new], dim=1)
        return self.real

    def _cut(self, length: int) -> None:
        if not 0 <= length <= self.length:
            raise ValueError(f"{self.length} tokens are kept; they cannot be cut to {length}")
        self.length = length
        self.real = None if self.real is None else self.real[:, :length]


class GrowingStore(_Counted):
    """Keeps everything by concatenation; the reference that the other stores are tested against.

    Args:
        model: whose keys and values it keeps.
    """

    def __init__(self, model: Decoder) -> None:
        super().__init__(model.context)
        self.layers = [_GrowingLayer(self) for _ in model.blocks]

    def places(self, length: int, real: Tensor | None, device: torch.device) -> Places:
        """As `Store.places`: the new tokens follow the kept ones, and all are visible."""
        known = self._extend(length, real, device)
        if known is not None:
            positions = ragged_positions(known)
            return Places(positions[:, self.length :], positions, Padding(known))
        end = self.length + length
        return Places(range(self.length, end), range(end), EVERYTHING)

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


class _GrowingLayer:
    """Keys and values of one block, (B,K,S,d) each, in the order of their tokens."""

    def __init__(self, store: GrowingStore) -> None:
        self.store = store
        self.kept: tuple[Tensor, Tensor] | None = None

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


class FixedStore(_Counted):
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
        super().__init__(model.context if capacity is None else min(capacity, model.context))
        self.start: Tensor | None = None
        self.slots: Tensor | None = None
        self.layers = [_FixedLayer(self) for _ in model.blocks]

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


class _FixedLayer:
    """Keys and values of one block, (B,K,capacity,d) each."""

    def __init__(self, store: FixedStore) -> None:
        self.store = store
        self.kept: tuple[Tensor, Tensor] | None = None

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


class WindowStore(_Counted):
    """Keeps the last W tokens in a ring, for models in which every block has a window of at most W.

    Args:
        model: whose keys and values it keeps.
        spare: how many tokens more are kept, so that `truncate` can go back that far.

    Raises:
        UserError: if a block of the model has no window; from `places` if padding stands between real tokens.
        ValueError: if `spare` is negative.
    """

    def __init__(self, model: Decoder, spare: int = 0) -> None:
        if spare < 0:
            raise ValueError(f"spare = {spare} must be at least 0")
        super().__init__(model.context)
        windows = [look.window for look in model.looks]
        if None in windows:
            raise UserError(say("generation.no_window", block=windows.index(None)))
        self.size = max(window for window in windows if window is not None) + spare
        self.spare = spare
        self.first = 0
        self.layers = [_RingLayer(self) for _ in model.blocks]

    def places(self, length: int, real: Tensor | None, device: torch.device) -> Places:
        """As `Store.places`: the keys are those of the ring, oldest first, then the new ones."""
        known = self._extend(length, real, device)
        # The ring gives way by slots, a window counts real tokens: the same while real tokens stand together.
        if known is not None and int(_runs(known).amax()) > 1:
            raise UserError(say("generation.ring_padding"))
        end, first = self.length + length, max(self.first, self.length - self.size)
        if known is None:
            return Places(range(self.length, end), range(first, end), EVERYTHING)
        positions = ragged_positions(known)
        return Places(positions[:, self.length :], positions[:, first:], Padding(known[:, first:]))

    def layer(self, index: int) -> _RingLayer:
        """The part of block `index`."""
        return self.layers[index]

    def advance(self, length: int) -> None:
        """Count `length` more tokens and let them into the ring."""
        for layer in self.layers:
            layer.settle()
        super().advance(length)

    def truncate(self, length: int) -> None:
        """Forget every token after the first `length`, at most `spare` of them.

        Raises:
            ValueError: if fewer tokens are kept, or older ones that would be seen again are gone.
        """
        oldest = max(self.first, self.length - self.size)
        if oldest > max(0, length - self.size + self.spare):
            raise ValueError(f"the ring keeps {self.spare} spare tokens; it cannot go back to {length}")
        self._cut(length)
        self.first = oldest


def _runs(real: Tensor) -> Tensor:
    """How many runs of real tokens each row has: (B,S) -> (B)."""
    return (real[:, 1:] & ~real[:, :-1]).sum(-1) + real[:, 0]


class _RingLayer:
    """Keys and values of one block: token t lies in slot t mod size.

    New ones wait beside the ring until the forward is done: they push out old ones that it may still be asked for.
    """

    def __init__(self, store: WindowStore) -> None:
        self.store = store
        self.ring: tuple[Tensor, Tensor] | None = None
        self.waiting: tuple[Tensor, Tensor] | None = None

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The kept keys and values, oldest first, then the new ones."""
        store = self.store
        if self.ring is None:
            self.ring = (self._room(k), self._room(v))
        kept = torch.arange(max(store.first, store.length - store.size), store.length, device=k.device) % store.size
        self.waiting = (k, v)
        old_k, old_v = (ring.index_select(-2, kept) for ring in self.ring)
        return torch.cat([old_k, k], dim=-2), torch.cat([old_v, v], dim=-2)

    def settle(self) -> None:
        """Write the waiting keys and values into their slots, the newest `size` of them."""
        if self.ring is None or self.waiting is None:
            return
        length = self.waiting[0].shape[-2]
        newest, end = min(length, self.store.size), self.store.length + length
        slots = torch.arange(end - newest, end, device=self.ring[0].device) % self.store.size
        for ring, new in zip(self.ring, self.waiting, strict=True):
            ring.index_copy_(-2, slots, new[..., -newest:, :].to(ring.dtype))
        self.waiting = None

    def _room(self, new: Tensor) -> Tensor:
        return new.new_zeros(*new.shape[:-2], self.store.size, new.shape[-1])


Cache = GrowingStore | FixedStore | WindowStore
"""A store that keeps."""


def bytes_kept(store: Cache) -> int:
    """Bytes allocated for all kept keys and values."""
    pairs = [layer.ring if isinstance(layer, _RingLayer) else layer.kept for layer in store.layers]
    return sum(tensor.untyped_storage().nbytes() for pair in pairs if pair is not None for tensor in pair)
