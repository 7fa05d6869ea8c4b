"""One query of a head: its weights and scores, number by number."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from clearhead.ops.recompute import scores_of, weights_of
from clearhead.web.answer import Answer, packed
from clearhead.web.place import number, place_of
from clearhead.web.session import Session
from clearhead.web.weighing import first_row, one_head


@torch.no_grad()
def answer(session: Session, query: Mapping[str, str]) -> Answer:
    """What one query of a head gives to each key.

    Args:
        session: the forward.
        query: `part`, `layer`, `head` and `query`.

    Returns:
        Packed, a number a key: `weights`, `scores` (after scale, cap and bias, before the mask) and `visible`.

    Raises:
        RefusedError: if there is no such head or query.
    """
    place = place_of(session, query)
    queries, keys = place.sizes
    asked = number(query, "query", queries)
    ran = one_head(place.ran, place.head)
    scores = scores_of(ran, [0], [asked])
    weights = weights_of(ran, scores, [0], [asked])
    seen = first_row(ran.visible.matrix(ran.q.device)).expand(-1, queries, keys)[0, asked]
    return packed(
        {**place.told(), "query": asked},
        [
            ("weights", weights[0, 0, 0].float().cpu().numpy()),
            ("scores", scores[0, 0, 0].float().cpu().numpy()),
            ("visible", seen.to(torch.uint8).cpu().numpy()),
        ],
    )
