"""The largest weights of a row beside what each of them does: the largest need not do most."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from clearhead.web.answer import Answer, as_json
from clearhead.web.head import finite
from clearhead.web.place import number
from clearhead.web.session import Session
from clearhead.web.without import Row, answers_something, answers_without, row_of

MOST = 12
"""How many weights are looked at."""
PIECE = 4
"""How many of them at once, where a forward is slow: between two pieces a person may go on, and the model is free for what they ask then."""


def answer(session: Session, query: Mapping[str, str]) -> Answer:
    """What the model says of its best next token without each of the largest weights of a query, one at a time.

    Args:
        session: the forward.
        query: `part`, `layer`, `head` and `query`; `at` where another answer than the last is asked for; `from`, for some of the weights:
            `PIECE` of them, from this one on.

    Returns:
        JSON: `{position, token, ran, without_head, keys, difference}`; `keys` from the largest weight on, `{key, weight, logit, logprob,
        best}` each. All but `difference` are null for an encoder that says no tokens.

    Raises:
        RefusedError: if there is no such head, query or position.
    """
    row = row_of(session, query)
    told = row.told()
    if not answers_something(session):
        return as_json({**told, **dict.fromkeys(("position", "token", "ran", "without_head", "keys"))})
    keys = largest(row)
    if "from" in query:
        keys = keys[(start := number(query, "from", MOST)) : start + PIECE]
    found = answers_without(session, row, keys)
    return as_json({
        **told,
        "position": row.position,
        "token": found.token,
        "ran": found.ran.told(),
        "without_head": found.without_head.told(),
        "keys": [
            {"key": key, "weight": finite(row.weights[key]), **said.told()}
            for key, said in zip(keys, found.without_weights, strict=True)
        ],
    })  # fmt: skip


def largest(row: Row) -> list[int]:
    """The keys with the largest weights, of those that may be looked at; of equal ones the first.

    Args:
        row: of the head.
    """
    order = torch.sort(row.weights, descending=True, stable=True).indices.tolist()
    return [key for key in order if row.visible[key]][:MOST]
