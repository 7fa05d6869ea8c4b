"""The loss of counting: what a model must beat before it has learnt anything from the context.

Both losses are means of -ln p over the same tokens that a language model is scored on: every token of every validation
document but its first, which nothing precedes. Unit: nats a token. The probabilities come from counts in the training
documents, smoothed so that none is 0. Pairs are kept as a sorted list of those that occur, never as a V x V matrix.

Documents may be longer than memory: they are read in slices, and what is counted is at most `MOST_COUNTED` tokens, the first ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from clearhead.messages import UserError, say
from clearhead.text.ids import Ids, checked_ids

__all__ = ["MOST_COUNTED", "Sliced", "bigram_loss", "unigram_loss"]

MOST_COUNTED = 1 << 24
"""How many training tokens are counted at most: with so many, more would hardly change the probabilities."""

BLOCK = 1 << 20
"""How many tokens are looked at together."""

Row: TypeAlias = NDArray[np.int64]


class Sliced(Protocol):
    """Token ids in their order: a list, an array, or a view that reads from a file what it is asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, places: slice, /) -> Ids:
        """The ids from one place to another."""
        ...


def unigram_loss(train_ids: Sequence[Sliced], validation_ids: Sequence[Sliced], vocab: int) -> float:
    """Nats a token if every token is guessed from how often it occurs.

    p(b) = (c(b) + 1) / (N + V), with c(b) the count of b among the N training tokens that are counted (add-one).

    Args:
        train_ids: the training documents.
        validation_ids: the validation documents.
        vocab: V, the size of the vocabulary.

    Raises:
        UserError: an id is outside the vocabulary, or no validation document has two tokens.
    """
    singles = np.zeros(vocab, dtype=np.int64)
    for block in _blocks(train_ids, vocab, MOST_COUNTED):
        singles += np.bincount(block.ids, minlength=vocab)
    unigram = _smoothed(singles)
    return _mean_loss(validation_ids, vocab, lambda block: unigram[block.second])


def bigram_loss(train_ids: Sequence[Sliced], validation_ids: Sequence[Sliced], vocab: int) -> float:
    """Nats a token if every token is guessed from the one before it.

    p(b | a) = (c(a, b) + D(a) p(b)) / (c(a) + D(a)), with c(a, b) the count of the pair in the training documents,
    c(a) its sum over b, D(a) the number of different b seen after a, and p(b) the add-one unigram probability
    (Witten-Bell interpolation: the more kinds of successor a has shown, the likelier is a new one). After an a that was
    never followed by anything, p(b | a) = p(b).

    Args:
        train_ids: the training documents; no pair is counted across two of them.
        validation_ids: the validation documents.
        vocab: V, the size of the vocabulary.

    Raises:
        UserError: an id is outside the vocabulary, or no validation document has two tokens.
    """
    singles = np.zeros(vocab, dtype=np.int64)
    seen, counts = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    for block in _blocks(train_ids, vocab, MOST_COUNTED):
        singles += np.bincount(block.ids, minlength=vocab)
        # The pair (a, b) as the one number a V + b: below 2^63 for every vocabulary that there is.
        seen, counts = _added(seen, counts, block.first * vocab + block.second)
    unigram = _smoothed(singles)
    # Whole numbers: as weights, which are float64, they stay exact.
    total = np.bincount(seen // vocab, weights=counts, minlength=vocab)
    different = np.bincount(seen // vocab, minlength=vocab)

    def probabilities(block: _Block) -> NDArray[np.float64]:
        before, target = block.first, block.second
        pair = _looked_up(before * vocab + target, seen, counts)
        weight = np.where(total[before] > 0, different[before], 1)
        found: NDArray[np.float64] = (pair + weight * unigram[target]) / (total[before] + weight)
        return found

    return _mean_loss(validation_ids, vocab, probabilities)


class _Block(NamedTuple):
    """Some of the tokens."""

    ids: Row
    """All of them."""
    first: Row
    """Those that have a successor in their document."""
    second: Row
    """The successors."""


def _blocks(documents: Sequence[Sliced], vocab: int, most: int | None = None) -> Iterator[_Block]:
    """All tokens, or the first `most`, about `BLOCK` at a time, however short or long the documents are."""
    rows: list[Row] = []
    first: list[Row] = []
    second: list[Row] = []
    waiting = 0
    for ids, before in _slices(documents, vocab, most):
        row = np.concatenate([before, ids])
        rows.append(ids)
        first.append(row[:-1])
        second.append(row[1:])
        waiting += len(ids)
        if waiting >= BLOCK:
            yield _Block(np.concatenate(rows), np.concatenate(first), np.concatenate(second))
            rows, first, second, waiting = [], [], [], 0
    if waiting:
        yield _Block(np.concatenate(rows), np.concatenate(first), np.concatenate(second))


def _slices(documents: Sequence[Sliced], vocab: int, most: int | None) -> Iterator[tuple[Row, Row]]:
    """All ids, at most `BLOCK` of a document at a time, and the one before them in their document, if there is one."""
    left = math.inf if most is None else most
    for document in documents:
        length = int(min(len(document), left))
        left -= length
        before = np.zeros(0, dtype=np.int64)
        for start in range(0, length, BLOCK):
            ids = checked_ids(document[start : min(start + BLOCK, length)], vocab)
            yield ids, before
            before = ids[-1:]
        if not left:
            return


def _smoothed(counts: Row) -> NDArray[np.float64]:
    """Add-one."""
    probabilities: NDArray[np.float64] = (counts + 1.0) / (counts.sum() + len(counts))
    return probabilities


def _added(seen: Row, counts: Row, pairs: Row) -> tuple[Row, Row]:
    """The different pairs, sorted, and how often each occurs, when `pairs` come to those of before."""
    keys, new = np.unique(pairs, return_counts=True)
    together, where = np.unique(np.concatenate([seen, keys]), return_inverse=True)
    summed = np.zeros(len(together), dtype=np.int64)
    summed[where[: len(seen)]] = counts
    summed[where[len(seen) :]] += new
    return together, summed


def _looked_up(keys: Row, seen: Row, counts: Row) -> Row:
    """The count of each key; 0 for those not among the sorted `seen`."""
    if not seen.size:
        return np.zeros(keys.shape, dtype=np.int64)
    place = np.minimum(np.searchsorted(seen, keys), seen.size - 1)
    return np.where(seen[place] == keys, counts[place], 0)


def _mean_loss(
    documents: Sequence[Sliced], vocab: int, probabilities: Callable[[_Block], NDArray[np.float64]]
) -> float:
    total, count = 0.0, 0
    for block in _blocks(documents, vocab):
        total -= float(np.log(probabilities(block)).sum())
        count += len(block.second)
    if not count:
        raise UserError(say("text.nothing_to_score"))
    return total / count
