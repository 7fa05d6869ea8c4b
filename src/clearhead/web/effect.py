"""Beside a weight, what the model would say without it: a weight is not a cause."""

from __future__ import annotations

from collections.abc import Mapping

from clearhead.web.answer import Answer, as_json, finite
from clearhead.web.place import number
from clearhead.web.session import Session
from clearhead.web.tokens import says_tokens
from clearhead.web.without import answers_without, row_of


def answer(session: Session, query: Mapping[str, str]) -> Answer:
    """What the model says of its best next token as it ran, without one weight, and without the whole head at this query.

    The numbers are those of `tracing.effect_of_weight`, which says what is taken away and from what.

    Args:
        session: the forward.
        query: `part`, `layer`, `head`, `query` and `key`; `at` where another answer than the last is asked for.

    Returns:
        JSON: `{position, token, weight, ran, without_weight, without_head, difference}`, the three answers as `{logit, logprob, best}`. These and `token`
        are null for an encoder that says no tokens.

    Raises:
        RefusedError: if there is no such head, query, key or position.
    """
    row = row_of(session, query)
    key = number(query, "key", len(row.weights))
    place = {**row.described(), "key": key, "weight": finite(row.weights[key])}
    if not says_tokens(session.loaded):
        return as_json({**place, **dict.fromkeys(("position", "token", "ran", "without_weight", "without_head"))})
    found = answers_without(session, row, [key])
    return as_json({
        **place,
        "position": row.position,
        "token": found.token,
        "ran": found.ran.described(),
        "without_weight": found.without_weights[0].described(),
        "without_head": found.without_head.described(),
    })  # fmt: skip
