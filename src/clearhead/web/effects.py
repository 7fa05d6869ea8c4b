"""The largest weights of a row beside what each of them does: the largest need not do most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from clearhead.models.encoder import Encoder
from clearhead.web.answer import Answer, as_json, finite
from clearhead.web.place import number
from clearhead.web.session import Session
from clearhead.web.tokens import says_tokens
from clearhead.web.without import Row, answers_without, row_of

LISTED = 12
"""How many weights are looked at, at most."""
PIECE = 4
"""How many of them at once, where a forward is slow: between two pieces a person may go on, and the model is free for what they ask then."""


def answer(session: Session, query: Mapping[str, str]) -> Answer:
    """What the model says of its best next token without each of the largest weights of a query, one at a time.

    Args:
        session: the forward.
        query: `part`, `layer`, `head` and `query`; `at` where another answer than the last is asked for; `from`, for some of the weights:
            `PIECE` of them, from this one on.

    Returns:
        JSON: `{position, token, ran, without_head, listed, keys, difference}`; `keys` from the largest weight on, `{key, weight, logit,
        logprob, best}` each; `listed` how many there are, whatever `from` is. All but `difference` are null for an encoder that says no
        tokens.

    Raises:
        RefusedError: if there is no such head, query or position.
    """
    row = row_of(session, query)
    place = row.described()
    if not says_tokens(session.loaded):
        return as_json({**place, **dict.fromkeys(("position", "token", "ran", "without_head", "listed", "keys"))})
    listed = largest(row)
    start, count = (number(query, "from", LISTED), PIECE) if "from" in query else (0, LISTED)
    keys = listed[start : start + count]
    found = answers_without(session, row, keys)
    return as_json({
        **place,
        "position": row.position,
        "token": found.token,
        "ran": found.ran.described(),
        "without_head": found.without_head.described(),
        "listed": len(listed),
        "keys": [
            {"key": key, "weight": finite(row.weights[key]), **outcome.described()}
            for key, outcome in zip(keys, found.without_weights, strict=True)
        ],
    })  # fmt: skip


def questions(session: Session, row: Mapping[str, str], key: int) -> Iterator[list[tuple[str, dict[str, str]]]]:
    """What a page asks about a row that it shows: of the answer at the end, then of that at the query itself, where it is another.

    Args:
        session: the forward.
        row: `part`, `layer`, `head` and `query`.
        key: the weight that is looked at.
    """
    asked = [dict(row)]
    encodes = isinstance(session.loaded.model, Encoder) or row["part"] == "encoder.attention"
    if not encodes and int(row["query"]) < len(session.ids) - 1:
        asked.append({**row, "at": row["query"]})
    for fields in asked:
        yield [("effects", fields), ("effect", {**fields, "key": str(key)})]


def largest(row: Row) -> list[int]:
    """The keys with the largest weights, of those that may be looked at; of equal ones the first.

    Args:
        row: of the head.
    """
    order = torch.sort(row.weights, descending=True, stable=True).indices.tolist()
    return [key for key in order if row.visible[key]][:LISTED]
