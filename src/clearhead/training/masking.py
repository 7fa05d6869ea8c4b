"""Masked tokens: some of a text's tokens are hidden, and an encoder that sees both sides guesses them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from clearhead.messages import UserError, say
from clearhead.ops.loss import IGNORED
from clearhead.text import LibraryTokenizer, MarkedTokenizer, Tokenizer
from clearhead.text.specials import never_made
from clearhead.training.batches import Document, Ids, Marked, lengths_of, together
from clearhead.training.order import ALL, Epochs, Share

MASKED, RANDOM = 0.8, 0.1
"""Of the chosen tokens, the share that becomes the mask and the share that becomes a random id; the others stay."""
# Numbers that follow a seed and a sample's number, so that no two generators are the same.
_TRAINING, _VALIDATION = 1, 2


class MaskedBatch(NamedTuple):
    """What one forward of an encoder learns from; rows are filled up at their ends."""

    inputs: Tensor
    """Token ids (B,T), some of them hidden."""
    targets: Tensor
    """What stood where a token was chosen (B,T); `IGNORED` elsewhere."""
    real: Tensor
    """(B,T) booleans, False for padding."""

    def to(self, device: torch.device) -> MaskedBatch:
        """The same batch on `device`."""
        return MaskedBatch(*(tensor.to(device) for tensor in self))


@dataclass(frozen=True)
class Hiding:
    """How tokens are hidden: of n that may be, max(1, round(n · rate)) are chosen, each of them as likely.

    A chosen token becomes the mask in 80% of cases, a random id in 10%, and stays as it is in 10%; what it was is the
    target in all of them.

    Args:
        mask: the id that stands for a hidden token.
        vocab: random ids are below it, so that no mark behind them is among them.
        rate: the share of tokens that are chosen, above 0 and at most 1.
        excluded: ids below `vocab` that are no random ids either: those that no text makes, as `never_made` tells.

    Raises:
        UserError: if the rate is outside.

    Source: Devlin et al. 2019 §3.1 (arXiv:1810.04805).
    """

    mask: int
    vocab: int
    rate: float = 0.15
    excluded: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise UserError(say("training.setting", name="rate", value=self.rate, wanted="> 0, <= 1"))

    @cached_property
    def drawn(self) -> Ids:
        """The ids that may stand for a hidden token, each of them as likely: rising."""
        return np.setdiff1d(np.arange(self.vocab), np.array(sorted(self.excluded), dtype=np.int64))

    def __call__(self, ids: Ids, free: range, generator: np.random.Generator) -> tuple[Ids, Ids]:
        """Inputs and targets (n).

        Args:
            ids: the window (n).
            free: the places that may be chosen, all but those of marks; at least one.
            generator: of the choice and of what becomes of it.
        """
        chosen = free.start + generator.permutation(len(free))[: max(1, round(len(free) * self.rate))]
        chances = generator.random(len(chosen))
        # Places among the ids that are drawn; where none is excluded they are the ids themselves.
        random = self.drawn[generator.integers(0, len(self.drawn), len(chosen))]
        replaced = np.where(chances < MASKED, self.mask, random)
        inputs, targets = ids.copy(), np.full(len(ids), IGNORED, dtype=np.int64)
        targets[chosen] = ids[chosen]
        inputs[chosen] = np.where(chances < MASKED + RANDOM, replaced, ids[chosen])
        return inputs, targets


def hiding_of(tokenizer: Tokenizer) -> Hiding | None:
    """How tokens are hidden from a model with this tokenizer; None if it has no id that stands for a hidden one."""
    if not isinstance(tokenizer, MarkedTokenizer | LibraryTokenizer) or tokenizer.mask is None:
        return None
    known = tokenizer.inner if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    return Hiding(tokenizer.mask, known.size, excluded=never_made(known))


class _Cuts:
    """Every document, between its marks, in as few windows of at most T ids as it needs, as long as one another.

    Windows touch and never cross documents. None is a mark alone: with T >= 3, two windows or more have two ids or more
    each, and of a document without ids there is none.
    """

    def __init__(self, documents: Sequence[Document], context: int, begin: int | None, end: int | None) -> None:
        if context < 3:
            raise UserError(say("training.setting", name="context", value=context, wanted=">= 3"))
        self.documents, self.begin, self.end = documents, begin, end
        lengths = lengths_of(documents)
        if not lengths.any():
            raise UserError(say("training.nothing_to_hide", documents=len(documents)))
        marked = lengths + (begin is not None) + (end is not None)
        self.counts = np.where(lengths > 0, -(-marked // context), 0)
        self.stops = np.cumsum(self.counts)

    def __len__(self) -> int:
        return int(self.stops[-1])

    def window(self, number: int) -> tuple[Ids, range]:
        """A window's ids, and the places among them that hold no mark."""
        which = int(np.searchsorted(self.stops, number, side="right"))
        marked, count = Marked(self.documents[which], self.begin, self.end), int(self.counts[which])
        within = number - int(self.stops[which]) + count
        start, stop = within * len(marked) // count, (within + 1) * len(marked) // count
        first = int(self.begin is not None and start == 0)
        last = int(self.end is not None and stop == len(marked))
        return marked[start:stop], range(first, stop - start - last)


class Masked:
    """Every window of the documents once an epoch, in an order of the epoch's own, other tokens hidden each time.

    `masked(step)` depends on the seed, the step and the rank alone. Windows never cross two documents; a document longer
    than T is cut into as few as it needs, of about one length.

    Args:
        documents: token ids without marks; those without any are left out.
        context: T, at least 3.
        batch: how many windows a step takes, on all ranks together.
        seed: of the orders, and of what is hidden.
        hiding: how tokens are hidden.
        begin: the mark before each document, never hidden; none if None.
        end: the mark after each document, never hidden; none if None.
        share: which windows are this process's.

    Raises:
        UserError: if no document has a token, or the context is out of its range.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        context: int,
        batch: int,
        seed: int,
        *,
        hiding: Hiding,
        begin: int | None,
        end: int | None,
        share: Share = ALL,
    ) -> None:
        self.hiding, self.cuts = hiding, _Cuts(documents, context, begin, end)
        self.batch, self.seed, self.share = batch, seed, share
        self.an_epoch = len(self.cuts)
        self.epochs = Epochs(lambda generator: generator.permutation(self.an_epoch), self.an_epoch, seed)

    def __call__(self, step: int) -> MaskedBatch:
        """This rank's batch of update `step`, counted from 0."""
        return _batch_of([self._row(number) for number in self.share.numbers(step, self.batch)])

    def _row(self, number: int) -> tuple[Ids, Ids]:
        ids, free = self.cuts.window(int(self.epochs.of(number)))
        return self.hiding(ids, free, np.random.default_rng([self.seed, number, _TRAINING]))


def masked_whole(
    documents: Sequence[Document],
    context: int,
    batch: int,
    seed: int,
    *,
    hiding: Hiding,
    begin: int | None,
    end: int | None,
    limit: int | None = None,
) -> Iterator[MaskedBatch]:
    """Every window of the documents once, in order; what a window hides depends on the seed and its number alone.

    So every evaluation asks the same, whatever the batch.

    Args:
        documents: as for `Masked`.
        context: T, at least 3.
        batch: how many windows of T ids go through the model together; of shorter ones, as many as have no more places.
            The sum of the losses does not depend on it.
        seed: of what is hidden.
        hiding: how tokens are hidden.
        begin: the mark before each document; none if None.
        end: the mark after each document; none if None.
        limit: windows are taken until they have so many ids, marks among them, or more; all if None.

    Raises:
        UserError: as `Masked`.
    """
    cuts = _Cuts(documents, context, begin, end)

    def rows() -> Iterator[tuple[Ids, Ids]]:
        read = 0
        for number in range(len(cuts)):
            if limit is not None and read >= limit:
                return
            ids, free = cuts.window(number)
            read += len(ids)
            yield hiding(ids, free, np.random.default_rng([seed, number, _VALIDATION]))

    for some in together(rows(), lambda row: len(row[0]), context * batch):
        yield _batch_of(some)


def _batch_of(rows: Sequence[tuple[Ids, Ids]]) -> MaskedBatch:
    widths = [len(ids) for ids, _ in rows]
    inputs = np.zeros((len(rows), max(widths)), dtype=np.int64)
    targets = np.full_like(inputs, IGNORED)
    for place, (ids, wanted) in enumerate(rows):
        inputs[place, : len(ids)], targets[place, : len(ids)] = ids, wanted
    real = torch.arange(max(widths)) < torch.tensor(widths)[:, None]
    return MaskedBatch(torch.from_numpy(inputs), torch.from_numpy(targets), real)
