"""A ring that keeps the last tokens, for models whose blocks look no further back.

Source: transformer-notes §16.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.generation.stores.counted import Counted, KeptLayer
from clearhead.layers.store import Places, ragged_positions
from clearhead.messages import UserError, say
from clearhead.models.decoder import Decoder
from clearhead.ops.masks import EVERYTHING, Padding


class WindowStore(Counted):
    """Keeps the last W tokens in a ring, for models in which every block has a window of at most W.

    Args:
        model: whose keys and values it keeps.
        spare: how many tokens more are kept, so that `truncate` can go back that far.
        capacity: the most tokens to read, padding among them; the model's context if None.

    Raises:
        UserError: if a block of the model has no window; from `places` if padding stands between real tokens.
        ValueError: if `spare` is negative.
    """

    def __init__(self, model: Decoder, spare: int = 0, capacity: int | None = None) -> None:
        if spare < 0:
            raise ValueError(f"spare = {spare} must be at least 0")
        windows = [look.window for look in model.looks]
        if None in windows:
            raise UserError(say("generation.no_window", block=windows.index(None)))
        self.size = max(window for window in windows if window is not None) + spare
        self.spare = spare
        self.first = 0
        self.layers = [_RingLayer(self) for _ in model.blocks]
        super().__init__(model.context if capacity is None else capacity, self.layers)

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


class _RingLayer(KeptLayer):
    """Keys and values of one block: token t lies in slot t mod size.

    New ones wait beside the ring until the forward is done: they push out old ones that it may still be asked for.
    """

    def __init__(self, store: WindowStore) -> None:
        super().__init__()
        self.store = store
        self.waiting: tuple[Tensor, Tensor] | None = None

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The kept keys and values, oldest first, then the new ones."""
        store = self.store
        if self.kept is None:
            self.kept = (self._room(k), self._room(v))
        kept = torch.arange(max(store.first, store.length - store.size), store.length, device=k.device) % store.size
        self.waiting = (k, v)
        old_k, old_v = (ring.index_select(-2, kept) for ring in self.kept)
        return torch.cat([old_k, k], dim=-2), torch.cat([old_v, v], dim=-2)

    def settle(self) -> None:
        """Write the waiting keys and values into their slots, the newest `size` of them."""
        if self.kept is None or self.waiting is None:
            return
        length = self.waiting[0].shape[-2]
        newest, end = min(length, self.store.size), self.store.length + length
        slots = torch.arange(end - newest, end, device=self.kept[0].device) % self.store.size
        for ring, new in zip(self.kept, self.waiting, strict=True):
            ring.index_copy_(-2, slots, new[..., -newest:, :].to(ring.dtype))
        self.waiting = None

    def _room(self, new: Tensor) -> Tensor:
        return new.new_zeros(*new.shape[:-2], self.store.size, new.shape[-1])
