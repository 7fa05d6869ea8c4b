"""Documents that are no arrays, as token files hand them out, and documents whose tokens say where they stood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np

from clearhead.training.batches import Ids

BEGIN, END, MASK = 2001, 2002, 2003
"""Marks that are no token of `numbered`."""


def numbered(*lengths: int) -> list[Ids]:
    """Documents in which every token is a number of its own: a token's successor is the next number."""
    starts = np.cumsum([0, *(length + 1 for length in lengths)])
    return [np.arange(start, start + length) for start, length in zip(starts, lengths, strict=False)]


def marked(document: Ids, begin: int | None, end: int | None) -> list[int]:
    """A document between its marks, by hand."""
    return [*([] if begin is None else [begin]), *document.tolist(), *([] if end is None else [end])]


class View:
    """A document in a file: it has a length and gives slices that nobody may write to; it remembers what it gave."""

    def __init__(self, ids: Ids, read: list[tuple[int, int]]) -> None:
        self._ids, self._read = ids, read

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, places: slice, /) -> Ids:
        assert isinstance(places, slice), "a document is read by slices"
        start, stop, step = places.indices(len(self._ids))
        assert step == 1
        self._read.append((start, stop))
        ids = self._ids[start:stop].astype(np.int64)
        ids.flags.writeable = False
        return ids


class Views(Sequence[View]):
    """Documents that are made when they are asked for."""

    def __init__(self, documents: Sequence[Ids]) -> None:
        self._documents = documents
        self.read: list[tuple[int, int]] = []
        """(start, stop) of everything that was read of any document."""
        self.asked: list[int] = []
        """Every document that was asked for."""

    def __len__(self) -> int:
        return len(self._documents)

    @overload
    def __getitem__(self, which: int) -> View: ...
    @overload
    def __getitem__(self, which: slice) -> Sequence[View]: ...
    def __getitem__(self, which: int | slice) -> View | Sequence[View]:
        assert type(which) is int, "one document at a time, by a plain number"
        ids = self._documents[which]
        self.asked.append(which)
        return View(ids, self.read)
