"""One head: its weights as a picture, and numbers of each of its rows."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clearhead.web.answer import Answer, finite, packed
from clearhead.web.place import place_of
from clearhead.web.pooling import field_of, pooled, roots
from clearhead.web.session import Session
from clearhead.web.weighing import blocks_of, entropies, one_head, weighed

SIDE = 512
"""The most rows and columns of the picture."""


@torch.no_grad()
def answer(session: Session, query: Mapping[str, str]) -> Answer:
    """The weights of a head.

    Args:
        session: the forward.
        query: `part`, `layer` and `head`.

    Returns:
        Packed: `weights` as `roots`; `seen`, which fields of the picture may be looked at (`ranges`); for each query `entropy` in nats,
        `distance` in tokens (no number across two texts), `largest`, the key with the largest weight (-1 where it sees nothing), and
        `sum`, below 1 where a sink takes weight.

    Raises:
        RefusedError: if there is no such head.
    """
    place = place_of(session, query)
    ran, (queries, keys) = one_head(place.ran, place.head), place.sizes
    field = field_of(queries, SIDE), field_of(keys, SIDE)
    picture = ran.q.new_zeros(1, -(-queries // field[0]), -(-keys // field[1]))
    seen = torch.zeros(picture.shape[1:], dtype=torch.bool, device=picture.device)
    rows: dict[str, list[Tensor]] = {name: [] for name in ("entropy", "distance", "largest", "sum")}
    difference = ran.q.new_zeros(())
    for block, scores, weights in weighed(ran, blocks_of(ran, field)):
        some = slice(block.keys.start, block.keys.stop)
        small = pooled(weights, field)
        corner = block.queries.start // field[0], block.keys.start // field[1]
        there = slice(corner[0], corner[0] + small.shape[1]), slice(corner[1], corner[1] + small.shape[2])
        picture[:, *there] = small
        seen[there] = True if block.hidden is None else pooled((~block.hidden).to(small.dtype), field)[0] > 0
        for name, numbers in _numbers(weights[0], block.queries, block.keys, keys - queries).items():
            rows[name].append(numbers)
        rows["entropy"].append(entropies(scores, weights)[0])
        mixed = weights @ ran.v[0, :, some]
        ran_here = ran.mixed[0, :, block.queries.start : block.queries.stop].to(mixed.dtype)
        difference = torch.maximum(difference, (mixed - ran_here).abs().amax())
    columns = {name: torch.cat(parts) for name, parts in rows.items()}
    if place.crosses:
        columns["distance"].fill_(math.nan)
    most = float(picture.nan_to_num(0.0).amax())
    told = {
        **place.told(),
        "least": 0.0,
        "most": most,
        "pooled": list(field),
        "difference": None if ran.dropout else finite(difference),
    }
    arrays = [(name, each.float().cpu().numpy()) for name, each in columns.items()]
    pictures = [("weights", roots(picture[0], most).cpu().numpy()), ("seen", ranges(seen.cpu().numpy()))]
    return packed(told, [*pictures, *arrays])


def ranges(seen: NDArray[np.bool_]) -> NDArray[np.uint8] | NDArray[np.float32]:
    """Which fields may be looked at, short: the first of each row and the one behind the last, (rows,2), where no row has a gap.

    All masks but those that somebody drew by hand are so; else a byte a field, (rows,columns), for whoever reads it to tell by its kind.

    Args:
        seen: (rows,columns).
    """
    first, count = seen.argmax(-1), seen.sum(-1)
    last = seen.shape[-1] - seen[:, ::-1].argmax(-1)
    after = np.where(count == 0, first, last)
    if np.array_equal(after - first, count):
        return np.stack([first, after], -1).astype(np.float32)
    return seen.astype(np.uint8)


def _numbers(weights: Tensor, queries: range, keys: range, before: int) -> dict[str, Tensor]:
    """Distance, largest key and sum of each row: (t,s) -> (t) each.

    Args:
        weights: of the queries over the keys.
        queries: which these are.
        keys: which these are.
        before: how many keys stand before the first query's.
    """
    total = weights.sum(-1)
    places = torch.arange(keys.start, keys.stop, dtype=weights.dtype, device=weights.device)
    own = torch.arange(queries.start, queries.stop, dtype=weights.dtype, device=weights.device) + before
    some = total.masked_fill(total == 0, 1.0)
    return {
        # Σ p (t - s), the sum over p written apart, for a row that looks at nothing has 0.
        "distance": (own * total - weights @ places) / some,
        "largest": torch.where(total == 0, -1, weights.argmax(-1) + keys.start),
        "sum": total,
    }
