"""What all stores share: a length, which tokens are padding, and kept keys and values whose rows can be chosen."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from clearhead.layers.store import Places, as_real, ragged_positions
from clearhead.messages import UserError, say
from clearhead.ops.masks import EVERYTHING, Padding


class KeptLayer:
    """Keys and values of one block, (B,K,·,d) each; None before the first append."""

    def __init__(self) -> None:
        self.kept: tuple[Tensor, Tensor] | None = None

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order, as often as they are named."""
        if self.kept is not None:
            self.kept = (self.kept[0].index_select(0, rows), self.kept[1].index_select(0, rows))


class Counted:
    """How many tokens are kept, and which of them are padding.

    Args:
        context: the most tokens that may be kept, padding among them.
        layers: the part of each block.
    """

    def __init__(self, context: int, layers: Sequence[KeptLayer]) -> None:
        self.context = context
        self.length = 0
        self.real: Tensor | None = None
        self._layers = layers

    def advance(self, length: int) -> None:
        """Count `length` more tokens; their keys and values have been appended by every block."""
        self.length += length

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows of the batch, in this order: fewer when some have ended, the same one often for several samples.

        Args:
            rows: indices of rows, each as often as it is wanted.
        """
        for layer in self._layers:
            if layer.kept is not None:
                layer.select(torch.tensor(rows, device=layer.kept[0].device))
        if self.real is not None:
            chosen = self.real[torch.tensor(rows, device=self.real.device)]
            self.real = None if bool(chosen.all()) else chosen

    def bytes_kept(self) -> int:
        """Bytes allocated for all kept keys and values."""
        pairs = [layer.kept for layer in self._layers if layer.kept is not None]
        return sum(tensor.untyped_storage().nbytes() for pair in pairs for tensor in pair)

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

    def _following(self, length: int, real: Tensor | None, device: torch.device) -> Places:
        """The new tokens follow the kept ones, and all are visible."""
        known = self._extend(length, real, device)
        if known is not None:
            positions = ragged_positions(known)
            return Places(positions[:, self.length :], positions, Padding(known))
        end = self.length + length
        return Places(range(self.length, end), range(end), EVERYTHING)

    def _cut(self, length: int) -> None:
        if not 0 <= length <= self.length:
            raise ValueError(f"{self.length} tokens are kept; they cannot be cut to {length}")
        self.length = length
        self.real = None if self.real is None else self.real[:, :length]
