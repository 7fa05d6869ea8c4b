"""What patching measures: one number of the logits."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from clearhead.messages import UserError, say
from clearhead.text import Tokenizer

Metric = Callable[[Tensor], Tensor]
"""From the logits (B,T,V) to one number, by operations that can be differentiated."""


def logit_difference(
    right: int | str, wrong: int | str, position: int = -1, *, tokenizer: Tokenizer | None = None
) -> Metric:
    """logit[right] - logit[wrong] at a position, the mean over rows: how much the model prefers one token, in nats.

    The softmax's denominator is the same for both, so it is the difference of their log-probabilities, too. It is linear in the logits:
    what adds to both alike does not count.

        logit_difference("她", "他", tokenizer=loaded.tokenizer)

    Args:
        right: the token that the clean text asks for, as an id or as a text of one token.
        wrong: the one that the corrupted text asks for.
        position: whose logits; the last by default.
        tokenizer: for tokens that are given as text.

    Raises:
        UserError: if a text is not one token, or comes without a tokenizer; from the metric, if an id is outside the vocabulary.
        IndexError: from the metric, if the position is outside the text.

    Source: Wang et al. 2022 (arXiv:2211.00593) §3.
    """
    ids = [id_of(token, tokenizer) for token in (right, wrong)]

    def metric(logits: Tensor) -> Tensor:
        first, second = (checked_id(id, logits.shape[-1]) for id in ids)
        row = logits[..., position, :]
        return (row[..., first] - row[..., second]).mean()

    return metric


def id_of(token: int | str, tokenizer: Tokenizer | None) -> int:
    """The id of a token that is given as an id, or as a text of one token.

    Raises:
        UserError: if the text is not one token, or there is no tokenizer.
    """
    if not isinstance(token, str):
        return token
    if tokenizer is None:
        raise UserError(say("tracing.no_tokenizer"))
    ids = tokenizer.encode(token)
    if len(ids) != 1:
        raise UserError(say("tracing.not_one_token", text=token, count=len(ids)))
    return ids[0]


def checked_id(id: int, vocab: int) -> int:
    """The id, if it is one of the vocabulary.

    Raises:
        UserError: if it is outside.
    """
    if not 0 <= id < vocab:
        raise UserError(say("models.id_outside", id=id, vocab=vocab))
    return id
