"""What attention and a model ask of a cache, and the store that keeps nothing.

The cache belongs to the caller. A model asks where the new tokens stand (`places`), each block hands its keys and values to
its own part (`layer(i).append`), and after the last block the model moves the length on, once (`advance`). A store that
keeps nothing gives back what it gets, so attention has no branch for a cache.

Source: transformer-notes §16.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from clearhead.ops.masks import EVERYTHING, Mask, Padding, Positions


class Places(NamedTuple):
    """Where the tokens of a forward stand."""

    queries: Positions
    """Positions of the T new tokens."""
    keys: Positions
    """Positions of the S keys that the blocks will see, in the order in which the store hands them out."""
    visible: Mask
    """Which of the keys are real tokens."""


class LayerStore(Protocol):
    """The part of a store that one block's attention uses."""

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Keep the new keys and values (B,K,T,d) and return all that may be seen, (B,K,S,d); keys come rotated."""
        ...


class Store(Protocol):
    """Keys and values of the tokens before, for all blocks."""

    def places(self, length: int, real: Tensor | None, device: torch.device) -> Places:
        """Where the next `length` tokens and all visible keys stand.

        Args:
            length: T, how many tokens come.
            real: (B,T) booleans, False for padding; None if every token is real.
            device: where positions that are not ranges are made.
        """
        ...

    def layer(self, index: int) -> LayerStore:
        """The part of block `index`."""
        ...

    def advance(self, length: int) -> None:
        """Count `length` tokens as kept; called once, after the last block."""
        ...


def as_real(real: Tensor, device: torch.device) -> Tensor:
    """Which tokens are real, as booleans on `device`; a tokenizer's 0 and 1 will do.

    Raises:
        ValueError: for floats, in which 0 may mean "look" (a mask that is added to scores) or "padding".
    """
    if real.is_floating_point():
        raise ValueError(f"which tokens are real is said in booleans, True = a real token, not in {real.dtype}")
    return real.to(device, torch.bool)


def ragged_positions(real: Tensor) -> Tensor:
    """A token's position is the number of real tokens before it in its row: (B,S) -> (B,S).

    Args:
        real: (B,S) booleans, False for padding, which may stand anywhere.
    """
    return (real.cumsum(-1) - 1).clamp(min=0)


class NoStore:
    """The store that keeps nothing: every forward begins at position 0 and sees its own tokens."""

    def places(self, length: int, real: Tensor | None, device: torch.device) -> Places:
        """Positions 0..T-1, or counted over the real tokens of each row."""
        if real is None:
            return Places(range(length), range(length), EVERYTHING)
        real = as_real(real, device)
        positions = ragged_positions(real)
        return Places(positions, positions, Padding(real))

    def layer(self, index: int) -> NoStore:
        """Itself."""
        return self

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The keys and values as they came."""
        return k, v

    def advance(self, length: int) -> None:
        """Nothing to count."""


NO_STORE = NoStore()
