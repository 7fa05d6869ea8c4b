"""Masks: who may look at whom. Always True = may look.

A mask is a small value that knows positions, not a matrix: `causal(T, S) & Padding(real)`. It turns into the bool
matrix people expect with `.matrix()`. Values keep their meaning, so a kernel can recognise "causal from the start"
and take its own shortcut; nobody else needs to know that shortcuts exist.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

Positions = range | Tensor
"""Absolute positions: a `range` where they are contiguous and the same in every row, else integers (B,T)."""


class Mask(ABC):
    """A rule that says which query may look at which key."""

    @abstractmethod
    def matrix(self, device: torch.device | None = None) -> Tensor:
        """The rule as booleans, True = may look, of a shape that broadcasts to (B,H,T,S)."""

    @abstractmethod
    def of_keys(self, start: int, stop: int) -> Mask:
        """The same rule for some of the keys: its matrix is `matrix()[..., start:stop]`, made from those keys alone.

        Args:
            start: the first key, counted along the key axis (not a position), from 0.
            stop: the key after the last; `stop` <= S.
        """

    def __and__(self, other: Mask) -> Mask:
        """The mask that allows what both allow; with `EVERYTHING`, the mask itself, so that kernels recognise it."""
        return self if isinstance(other, Everything) else Both(self, other)


@dataclass(frozen=True)
class Everything(Mask):
    """Every query may look at every key."""

    def matrix(self, device: torch.device | None = None) -> Tensor:
        """(1,1), True."""
        return torch.ones(1, 1, dtype=torch.bool, device=device)

    def of_keys(self, start: int, stop: int) -> Everything:
        """Itself: every key may be looked at."""
        return self

    def __and__(self, other: Mask) -> Mask:
        """`other`: everything adds no restriction."""
        return other


EVERYTHING = Everything()


@dataclass(frozen=True)
class Causal(Mask):
    """A query looks at keys at its own position and before: key <= query.

    Args:
        queries: positions of the T queries.
        keys: positions of the S keys.

    Source: transformer-notes §12.
    """

    queries: Positions
    keys: Positions

    @property
    def contiguous(self) -> bool:
        """Whether all positions are ranges, so that what the mask means is known without looking at a device."""
        return isinstance(self.queries, range) and isinstance(self.keys, range)

    def matrix(self, device: torch.device | None = None) -> Tensor:
        """(T,S) for ranges, (B,1,T,S) for positions per row: key <= query."""
        return _column(self.keys, device, -2) <= _column(self.queries, device, -1)

    def of_keys(self, start: int, stop: int) -> Causal:
        """The same queries and fewer keys, at the positions that they had."""
        return Causal(self.queries, _some(self.keys, start, stop))


@dataclass(frozen=True)
class Window(Mask):
    """A query looks at the keys of the last `width` positions, its own included: query - width < key.

    It limits the past alone; `causal(T, S) & Window(...)` is the sliding window of a decoder.

    Args:
        width: W, at least 1; exactly W keys where there are as many.
        queries: positions of the T queries.
        keys: positions of the S keys.

    Source: Beltagy et al. 2020 (arXiv:2004.05150); Jiang et al. 2023 (arXiv:2310.06825).
    """

    width: int
    queries: Positions
    keys: Positions

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"a window of {self.width} keys shows nothing; it must be at least 1")

    def matrix(self, device: torch.device | None = None) -> Tensor:
        """(T,S) for ranges, (B,1,T,S) for positions per row: key > query - width."""
        return _column(self.keys, device, -2) > _column(self.queries, device, -1) - self.width

    def of_keys(self, start: int, stop: int) -> Window:
        """The same queries and fewer keys, at the positions that they had."""
        return Window(self.width, self.queries, _some(self.keys, start, stop))


@dataclass(frozen=True)
class Prefix(Mask):
    """Keys of the first `length` positions are seen by all; beyond them a query looks at itself and before.

    Args:
        length: of the prefix, the same for every row.
        queries: positions of the T queries.
        keys: positions of the S keys.

    Source: Raffel et al. 2020 §3.2.1 (arXiv:1910.10683), "causal with prefix".
    """

    length: int
    queries: Positions
    keys: Positions

    def matrix(self, device: torch.device | None = None) -> Tensor:
        """(T,S) for ranges, (B,1,T,S) for positions per row: key < length, or key <= query."""
        keys = _column(self.keys, device, -2)
        return (keys < self.length) | (keys <= _column(self.queries, device, -1))

    def of_keys(self, start: int, stop: int) -> Prefix:
        """The same queries and fewer keys, at the positions that they had."""
        return Prefix(self.length, self.queries, _some(self.keys, start, stop))


@dataclass(frozen=True, eq=False)
class Documents(Mask):
    """A query looks at keys of its own document; several documents share a row (packing).

    Args:
        queries: (B,T) the number of each query's document.
        keys: (B,S) the number of each key's document.
    """

    queries: Tensor
    keys: Tensor

    def matrix(self, device: torch.device | None = None) -> Tensor:
        """(B,1,T,S): equal numbers."""
        return self.queries.to(device)[:, None, :, None] == self.keys.to(device)[:, None, None, :]

    def of_keys(self, start: int, stop: int) -> Documents:
        """The same queries and fewer keys."""
        return Documents(self.queries, self.keys[:, start:stop])


@dataclass(frozen=True, eq=False)
class Padding(Mask):
    """Keys that are padding are seen by nobody.

    Args:
        real: (B,S) booleans, True where the key is a real token.
    """

    real: Tensor

    def matrix(self, device: torch.device | None = None) -> Tensor:
        """(B,1,1,S): the same keys for all heads and queries."""
        return self.real[:, None, None, :].to(device)

    def of_keys(self, start: int, stop: int) -> Padding:
        """Which of fewer keys are real."""
        return Padding(self.real[:, start:stop])


@dataclass(frozen=True, eq=False)
class Allowed(Mask):
    """A mask somebody has already written as a matrix.

    Args:
        allowed: booleans that broadcast to (B,H,T,S), True = may look.
    """

    allowed: Tensor

    def matrix(self, device: torch.device | None = None) -> Tensor:
        """The matrix as given."""
        return self.allowed.to(device)

    def of_keys(self, start: int, stop: int) -> Allowed:
        """Some columns of the matrix; one column that stands for all keys stays."""
        return self if self.allowed.shape[-1] == 1 else Allowed(self.allowed[..., start:stop])


@dataclass(frozen=True)
class Both(Mask):
    """What `first` and `second` both allow; written `first & second`."""

    first: Mask
    second: Mask

    def matrix(self, device: torch.device | None = None) -> Tensor:
        """The elementwise "and" of the two, broadcast against each other."""
        return self.first.matrix(device) & self.second.matrix(device)

    def of_keys(self, start: int, stop: int) -> Both:
        """What both allow of these keys."""
        return Both(self.first.of_keys(start, stop), self.second.of_keys(start, stop))


def causal(queries: int, keys: int | None = None) -> Causal:
    """The causal mask of the last `queries` positions of a sequence of `keys`: query i sees key j <= i + S - T.

    With as many queries as keys (the default) this is the lower triangle of the notes. With fewer, as in decoding
    with a cache, the queries are the *last* positions, so the newest sees every key.

    Args:
        queries: T, at least 1.
        keys: S >= T; T if not given.

    Raises:
        ValueError: if there are fewer keys than queries.
    """
    keys = queries if keys is None else keys
    if keys < queries:
        raise ValueError(f"{queries} queries cannot be the last positions of {keys} keys")
    return Causal(range(keys - queries, keys), range(keys))


def document_positions(documents: Tensor) -> Tensor:
    """Positions that begin at 0 in each document: (B,T) -> (B,T).

    Args:
        documents: the number of each token's document, (B,T); tokens of a document stand together.
    """
    steps = torch.arange(documents.shape[-1], device=documents.device).expand_as(documents)
    begins = torch.ones_like(documents, dtype=torch.bool)
    begins[:, 1:] = documents[:, 1:] != documents[:, :-1]
    return steps - steps.where(begins, 0).cummax(-1).values


def _column(positions: Positions, device: torch.device | None, axis: int) -> Tensor:
    """Positions as a tensor with a new axis to compare along; (B,T) gets a head axis too."""
    if isinstance(positions, range):
        return torch.arange(positions.start, positions.stop, device=device).unsqueeze(axis)
    return positions.to(device).unsqueeze(-2).unsqueeze(axis)


def _some(positions: Positions, start: int, stop: int) -> Positions:
    """Some of the positions; a range stays a range."""
    return positions[start:stop] if isinstance(positions, range) else positions[..., start:stop]
