"""The loss of counting: what a model must beat before it has learnt anything from the context.

Both losses are means of -ln p over the same tokens that a language model is scored on: every token of every validation
document but its first, which nothing precedes. Unit: nats a token. The probabilities come from counts in the training
documents, smoothed so that none is 0. Pairs are kept as a sorted list of those that occur, never as a V x V matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clearhead.messages import UserError, say
from clearhead.text.ids import Ids, checked_ids

__all__ = ["bigram_loss", "unigram_loss"]


def unigram_loss(train_ids: Sequence[Ids], validation_ids: Sequence[Ids], vocab: int) -> float:
    """Nats a token if every token is guessed from how often it occurs.

    p(b) = (c(b) + 1) / (N + V), with c(b) the count of b among the N training tokens (add-one).

    Args:
        train_ids: the training documents.
        validation_ids: the validation documents.
        vocab: V, the size of the vocabulary.

    Raises:
        UserError: an id is outside the vocabulary, or no validation document has two tokens.
    """
    train = [checked_ids(document, vocab) for document in train_ids]
    _, target = _pairs([checked_ids(document, vocab) for document in validation_ids])
    return _mean_loss(_unigram(train, vocab)[target])


def bigram_loss(train_ids: Sequence[Ids], validation_ids: Sequence[Ids], vocab: int) -> float:
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
    train = [checked_ids(document, vocab) for document in train_ids]
    before, target = _pairs([checked_ids(document, vocab) for document in validation_ids])
    first, second = _pairs(train)
    # The pair (a, b) as the one number a V + b: below 2^63 for every vocabulary that there is.
    seen, counts = np.unique(first * vocab + second, return_counts=True)
    total = np.bincount(first, minlength=vocab)
    different = np.bincount(seen // vocab, minlength=vocab)
    pair = _looked_up(before * vocab + target, seen, counts)
    backed_off = _unigram(train, vocab)[target]
    weight = np.where(total[before] > 0, different[before], 1)
    return _mean_loss((pair + weight * backed_off) / (total[before] + weight))


def _unigram(train: Sequence[NDArray[np.int64]], vocab: int) -> NDArray[np.float64]:
    counts = np.bincount(_joined(train), minlength=vocab)
    probabilities: NDArray[np.float64] = (counts + 1.0) / (counts.sum() + vocab)
    return probabilities


def _pairs(documents: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every token that has a successor in its document, and that successor."""
    return _joined([document[:-1] for document in documents]), _joined([document[1:] for document in documents])


def _joined(rows: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, dtype=np.int64), *rows])


def _looked_up(keys: NDArray[np.int64], seen: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The count of each key; 0 for those not among the sorted `seen`."""
    if not seen.size:
        return np.zeros(keys.shape, dtype=np.int64)
    place = np.minimum(np.searchsorted(seen, keys), seen.size - 1)
    return np.where(seen[place] == keys, counts[place], 0)


def _mean_loss(probabilities: NDArray[np.float64]) -> float:
    if not probabilities.size:
        raise UserError(say("text.nothing_to_score"))
    return float(-np.log(probabilities).mean())
