"""Windows of running text: which tokens a step trains on, and a whole text to be scored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clearhead.formats.token_files import TokenSpans
from clearhead.messages import UserError, say
from clearhead.ops.loss import IGNORED
from clearhead.training.order import ALL, Epochs, Share

Ids = NDArray[np.int64]


class Document(Protocol):
    """Token ids in their order: an array, or a view that reads from a file what it is asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, places: slice, /) -> Ids:
        """The ids from one place to another, in steps of 1."""
        ...


@dataclass(frozen=True)
class Marked:
    """A document with the marks around it: itself a document.

    Args:
        document: its ids.
        begin: the id that comes before them; none if None.
        end: the id that comes after them; none if None.
    """

    document: Document
    begin: int | None = None
    end: int | None = None

    def __len__(self) -> int:
        """How many ids there are, the marks among them."""
        return len(self.document) + (self.begin is not None) + (self.end is not None)

    def __getitem__(self, places: slice, /) -> Ids:
        """The ids from one place to another, in an array of their own; no other place is read."""
        start, stop, _ = places.indices(len(self))
        first = int(self.begin is not None)
        ids = np.empty(max(0, stop - start), dtype=np.int64)
        if not ids.size:
            return ids
        inner = slice(max(0, start - first), min(len(self.document), stop - first))
        if inner.stop > inner.start:
            ids[inner.start + first - start : inner.stop + first - start] = self.document[inner]
        if self.begin is not None and start == 0:
            ids[0] = self.begin
        if self.end is not None and stop == len(self):
            ids[-1] = self.end
        return ids


class Batch(NamedTuple):
    """What one forward of a language model learns from."""

    inputs: Tensor
    """Token ids (B,T)."""
    targets: Tensor
    """The token after each input (B,T); `IGNORED` where there is none."""

    def to(self, device: torch.device) -> Batch:
        """The same batch on `device`."""
        return Batch(self.inputs.to(device), self.targets.to(device))


@dataclass(frozen=True)
class _Cut:
    """The windows of one epoch in the order in which it visits them."""

    begins: Ids
    """Where the first window of each document begins."""
    firsts: Ids
    """The number of each document's first window, from 0."""
    order: Ids
    context: int

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, place: int) -> tuple[int, int]:
        """(document, start)."""
        number = self.order[place]
        which = int(np.searchsorted(self.firsts, number, side="right")) - 1
        return which, int(self.begins[which] + (number - self.firsts[which]) * self.context)


class Windows:
    """Windows of T + 1 tokens; T inputs and, one place further, their T targets.

    Each epoch cuts every document into windows that touch and never overlap, beginning at a place of its own, and
    visits them in an order of its own; a window never crosses two documents. `windows(step)` depends on the seed, the
    step and the rank alone, so a resumed run needs to remember nothing but its step. Of the documents no more is read
    than the windows of a step.

    Args:
        documents: token ids; documents shorter than T + 1 give no window.
        context: T.
        batch: how many windows a step takes, on all ranks together.
        seed: of the cuts and the orders.
        share: which of them are this process's.

    Raises:
        UserError: if no document holds a window.
    """

    def __init__(
        self, documents: Sequence[Document], context: int, batch: int, seed: int, *, share: Share = ALL
    ) -> None:
        self.documents, self.context, self.batch, self.share = documents, context, batch, share
        lengths = lengths_of(documents)
        self.used = np.flatnonzero(lengths > context)
        if not self.used.size:
            raise UserError(say("training.no_window", context=context))
        # One window fewer than fits at most: an epoch begins at a place of its own, and over the epochs every token is met.
        counts = np.maximum(1, (lengths[self.used] - 1) // context - 1)
        self.rooms = lengths[self.used] - 1 - counts * context
        self.firsts, self.an_epoch = np.cumsum(counts) - counts, int(counts.sum())
        self.epochs = Epochs(self._order, self.an_epoch, seed)

    def __call__(self, step: int) -> Batch:
        """This rank's batch of update `step`, counted from 0."""
        places = self.epochs.of_step(step, self.batch, self.share)
        rows = [self.documents[int(self.used[which])][start : start + self.context + 1] for which, start in places]
        window = torch.from_numpy(np.stack(rows))
        return Batch(window[:, :-1].contiguous(), window[:, 1:].contiguous())

    def _order(self, generator: np.random.Generator) -> _Cut:
        begins = generator.integers(0, self.rooms + 1)
        return _Cut(begins, self.firsts, generator.permutation(self.an_epoch), self.context)


def lengths_of(documents: Sequence[Document]) -> Ids:
    """How many ids each document has; of those in a token file none is made to be asked."""
    if isinstance(documents, TokenSpans):
        return documents.lengths
    return np.fromiter((len(document) for document in documents), dtype=np.int64, count=len(documents))


class Scored(NamedTuple):
    """A window of a document, and which of its targets are scored."""

    ids: Ids
    """At most T + 1 ids: the inputs, and one place further their targets."""
    already: int
    """How many targets at its beginning were scored in the window before."""
    document: int
    """Which document it is of."""


def scored_windows(
    documents: Iterable[Document], context: int, stride: int, *, limit: int | None = None
) -> Iterator[Scored]:
    """Windows in which every id of the documents but the first of each is scored once, in order.

    The k-th window of a document begins at place k · stride. What it scores are the targets behind those of the window
    before: all T of the first window, then `stride` of each, fewer in the last.

    Args:
        documents: token ids.
        context: T.
        stride: from 1 to T.
        limit: how many targets are scored at most, the first ones; all if None.

    Raises:
        UserError: if the stride is not from 1 to T.
    """
    if not 1 <= stride <= context:
        raise UserError(say("training.setting", name="stride", value=stride, wanted=f"1 ... {context}"))
    for which, document in enumerate(documents):
        done, last = 0, len(document) - 1
        if limit is not None:
            last = min(last, limit)
            limit -= max(0, last)
        for start in range(0, last, stride):
            stop = min(start + context, last)
            yield Scored(document[start : stop + 1], done - start, which)
            done = stop
            if done == last:
                break
        if limit == 0:
            return


def whole(documents: Sequence[Document], context: int, batch: int, *, limit: int | None = None) -> Iterator[Batch]:
    """Every token of the documents but the first of each, exactly once as a target, in order.

    Windows touch and never overlap, so a token is predicted from 1 to T tokens before it. The last window of a
    document is shorter; it is filled up with targets that do not count.

    Args:
        documents: token ids.
        context: T.
        batch: how many windows go through the model together; the sum of the losses does not depend on it.
        limit: how many targets there are at most, the first ones; all if None.
    """
    return strided(documents, context, context, batch, limit=limit)


def strided(
    documents: Sequence[Document],
    context: int,
    stride: int,
    batch: int,
    *,
    begin: int | None = None,
    end: int | None = None,
    limit: int | None = None,
) -> Iterator[Batch]:
    """Every token of the documents but the first of each, exactly once as a target, in order, after longer beginnings.

    Windows of T inputs move on by `stride`. A target that the window before scored is `IGNORED`, so that every token is
    predicted from all the tokens before it where these are at most T, and otherwise from T - stride + 1 to T of them. A
    document takes about 1 + (tokens - T) / stride windows; with a stride of T these are the windows of `whole`.

    Args:
        documents: token ids, without marks.
        context: T.
        stride: from 1 (the most exact: always T tokens) to T (the fastest: `whole`).
        batch: how many windows go through the model together; the sum of the losses does not depend on it.
        begin: the mark before each document, which makes its first token a target; none if None.
        end: the mark after each document, a target like any token; none if None.
        limit: how many targets there are at most, the first ones; all if None.

    Raises:
        UserError: if the stride is not from 1 to T.
    """
    marked = (Marked(document, begin, end) for document in documents)
    windows = scored_windows(marked, context, stride, limit=limit)
    for rows in together(windows, lambda _: context, context * batch):
        yield Batch(*filled(rows, context))


Row = TypeVar("Row")


def together(rows: Iterable[Row], width: Callable[[Row], int], places: int) -> Iterator[list[Row]]:
    """Rows in their order, so many in a batch that, filled up to its widest, it has at most so many places.

    Args:
        rows: any number.
        width: how many places a row needs.
        places: B · T at most; a wider row goes alone.
    """
    held: list[Row] = []
    widest = 0
    for row in rows:
        widest = max(widest, width(row))
        if held and (len(held) + 1) * widest > places:
            yield held
            held, widest = [], width(row)
        held.append(row)
    if held:
        yield held


def filled(rows: Sequence[Scored], width: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets (B, width), filled up at their ends with 0 and with `IGNORED`."""
    inputs = np.zeros((len(rows), width), dtype=np.int64)
    targets = np.full((len(rows), width), IGNORED, dtype=np.int64)
    for place, (ids, already, _) in enumerate(rows):
        inputs[place, : len(ids) - 1] = ids[:-1]
        targets[place, already : len(ids) - 1] = ids[1 + already :]
    return torch.from_numpy(inputs), torch.from_numpy(targets)
