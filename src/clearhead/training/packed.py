"""Packed documents: many short ones share a window, so that no place is wasted on padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from clearhead.messages import UserError, say
from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Document, Ids, Marked, filled, lengths_of, scored_windows, together
from clearhead.training.order import ALL, Epochs, Share

PADDING = -1
"""The number of the document that padding is; no other has it."""


class PackedBatch(NamedTuple):
    """What one forward of a language model learns from, where several documents share a row."""

    inputs: Tensor
    """Token ids (B,T)."""
    targets: Tensor
    """The token after each input, in the same document (B,T); `IGNORED` where there is none."""
    documents: Tensor
    """The number of each input's document (B,T); `PADDING` where there is none."""

    def to(self, device: torch.device) -> PackedBatch:
        """The same batch on `device`."""
        return PackedBatch(*(tensor.to(device) for tensor in self))


@dataclass(frozen=True)
class _Laid:
    """One epoch: documents laid end to end, and the order in which their windows are visited."""

    documents: Ids
    """Which document comes when."""
    ends: Ids
    """Where each of them ends."""
    windows: Ids

    def __getitem__(self, place: int) -> tuple[_Laid, int]:
        """(this epoch, the number of the window)."""
        return self, int(self.windows[place])


class Packed:
    """Documents laid end to end, in an order of each epoch's own, and cut into windows of T inputs.

    Each document stands between its marks. A window's targets are one place further, so the first token of a window was
    the last target of another, and in an epoch every token is a target once, the end marks among them. The first thing of
    a document (its begin mark, or without one its first token) is no target: nothing of the document comes before it. The
    last window is filled up with padding. Windows are visited in an order of the epoch's own, too.

    `packed(step)` depends on the seed, the step and the rank alone. Of the documents no more is read than the windows of a
    step; what is kept are their lengths and the two orders of an epoch.

    Args:
        documents: token ids without marks, of any lengths; those that, with their marks, are less than two ids are left out.
        context: T, at least 2, so that every window has a target.
        batch: how many windows a step takes, on all ranks together.
        seed: of the orders.
        begin: the mark before each document; none if None.
        end: the mark after each document; none if None.
        share: which windows are this process's.

    Raises:
        UserError: if no document has a target, or the context is below 2.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        context: int,
        batch: int,
        seed: int,
        *,
        begin: int | None,
        end: int | None,
        share: Share = ALL,
    ) -> None:
        if context < 2:
            raise UserError(say("training.setting", name="context", value=context, wanted=">= 2"))
        self.documents, self.context, self.batch, self.share = documents, context, batch, share
        self.begin, self.end = begin, end
        self.lengths = lengths_of(documents) + (begin is not None) + (end is not None)
        self.used = np.flatnonzero(self.lengths > 1)
        if not self.used.size:
            raise UserError(say("training.nothing_to_learn", documents=len(documents)))
        # The last id of all has no target, so it needs no place among the inputs.
        self.an_epoch = -(-(int(self.lengths[self.used].sum()) - 1) // context)
        self.epochs = Epochs(self._order, self.an_epoch, seed)

    @property
    def targets(self) -> int:
        """How many targets an epoch has."""
        return int((self.lengths[self.used] - 1).sum())

    def __call__(self, step: int) -> PackedBatch:
        """This rank's batch of update `step`, counted from 0."""
        rows = [self._window(laid, number) for laid, number in self.epochs.of_step(step, self.batch, self.share)]
        return PackedBatch(*(torch.from_numpy(np.stack(kind)) for kind in zip(*rows, strict=True)))

    def _order(self, generator: np.random.Generator) -> _Laid:
        documents = generator.permutation(self.used)
        return _Laid(documents, np.cumsum(self.lengths[documents]), generator.permutation(self.an_epoch))

    def _window(self, laid: _Laid, number: int) -> tuple[Ids, Ids, Ids]:
        """Inputs, targets and documents (T) of a window."""
        ids = np.zeros(self.context + 1, dtype=np.int64)
        owners = np.full(self.context + 1, PADDING, dtype=np.int64)
        here, stop = number * self.context, min((number + 1) * self.context + 1, int(laid.ends[-1]))
        first = here
        for which in range(int(np.searchsorted(laid.ends, here, side="right")), len(laid.ends)):
            if here >= stop:
                break
            document, until = int(laid.documents[which]), min(stop, int(laid.ends[which]))
            begins = int(laid.ends[which] - self.lengths[document])
            marked = Marked(self.documents[document], self.begin, self.end)
            ids[here - first : until - first] = marked[here - begins : until - begins]
            owners[here - first : until - first] = document
            here = until
        # A target of another document is the first thing of that one; one that is padding is nothing.
        same = (owners[1:] == owners[:-1]) & (owners[1:] != PADDING)
        return ids[:-1], np.where(same, ids[1:], IGNORED), owners[:-1]


def packed_whole(
    documents: Sequence[Document],
    context: int,
    batch: int,
    *,
    begin: int | None,
    end: int | None,
    limit: int | None = None,
) -> Iterator[PackedBatch]:
    """What `Packed` has as targets, exactly once and in order, each document by itself.

    No two documents share a row, so the sum of the losses is that of each document alone, with the document mask and
    without. A document longer than T is cut into windows that touch, the last one shorter, as `whole` cuts; what is
    behind a cut does not see what is before it. Rows are filled up to the longest of their batch with targets that do
    not count.

    Args:
        documents: token ids without marks, of any lengths.
        context: T.
        batch: how many windows of T inputs go through the model together; of shorter ones, as many as have no more places.
            The sum of the losses does not depend on it.
        begin: the mark before each document; none if None.
        end: the mark after each document; none if None.
        limit: how many targets there are at most, the first ones; all if None.
    """
    marked = (Marked(document, begin, end) for document in documents)
    windows = scored_windows(marked, context, context, limit=limit)
    for rows in together(windows, lambda row: len(row.ids) - 1, context * batch):
        widths = torch.tensor([len(row.ids) - 1 for row in rows])
        places = torch.arange(int(widths.max()))
        numbers = torch.tensor([row.document for row in rows])
        owners = numbers[:, None].where(places < widths[:, None], PADDING)
        yield PackedBatch(*filled(rows, len(places)), owners)
