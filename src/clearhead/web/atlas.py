"""All heads at once: a small picture of each, and how much it looks like each kind of head.

A weight says where a head reads, not what the model's answer depends on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clearhead.ops.softmax import at_least_float32
from clearhead.ops.tap import Ran
from clearhead.tracing.detectors import first_token_pattern, induction_pattern, previous_token_pattern
from clearhead.web.answer import Answer, finite, packed
from clearhead.web.place import crosses, parts_of
from clearhead.web.pooling import field_of, pooled, roots
from clearhead.web.session import Session
from clearhead.web.weighing import Block, blocks_of, entropies, weighed, wide

MOST_BYTES = 556_000
"""All pictures and all scores together, so that the answer stays below 560 KB."""
SIDE = 64
"""The most rows and columns of a picture."""
BYTES_OF_SCORES = 36
"""What the scores of a head take in the header, at most."""
FEW = 16
"""One place of so many is few: reading those alone is quicker than multiplying all."""
PATTERNS = {"previous": previous_token_pattern, "induction": induction_pattern, "sink": first_token_pattern}
"""Where a head of each kind looks, as in `tracing.detect_heads`."""


@torch.no_grad()
def answer(session: Session, query: Mapping[str, str]) -> Answer:
    """Pictures and scores of all heads of all parts.

    Args:
        session: the forward.
        query: nothing is read from it.

    Returns:
        Packed: `parts` with `scores`, and an array of `roots` a part.
    """
    parts = parts_of(session)
    side = side_of(sum(ran.q.shape[-3] for layers in parts.values() for ran in layers))
    told, arrays = [], []
    for part, layers in parts.items():
        header, pictures = _of_part(part, layers, _ids_of(session, part), side)
        told.append(header)
        arrays.append((part, pictures))
    return packed({"parts": told}, arrays)


def side_of(heads: int) -> int:
    """How many rows and columns a picture has at most, so that those of all heads fit.

    Args:
        heads: of all layers of all parts.
    """
    return min(SIDE, max(1, math.isqrt(max(0, MOST_BYTES // max(heads, 1) - BYTES_OF_SCORES))))


def _of_part(
    part: str, layers: Sequence[Ran], ids: Sequence[int], side: int
) -> tuple[dict[str, object], NDArray[np.uint8]]:
    queries, keys = layers[0].q.shape[-2], layers[0].k.shape[-2]
    field = field_of(queries, side), field_of(keys, side)
    patterns = _patterns(part, queries, keys, ids, layers[0].q)
    # Layers that look alike share one mask: its blocks, and what is sought in each, are made once.
    masks = {id(ran.visible): ran for ran in layers}
    kind = at_least_float32(layers[0].q.dtype)
    blocks = {
        mask: [(block, _sought(block, patterns, kind)) for block in blocks_of(ran, field)]
        for mask, ran in masks.items()
    }
    made = [_of_layer(ran, field, blocks[id(ran.visible)]) for ran in layers]
    counts = {name: 0 if pattern is None else int(pattern.any(-1).sum()) for name, pattern in patterns.items()}
    whole = torch.stack([picture for picture, _ in made]).cpu().numpy()
    header = {
        "name": part,
        "layers": len(layers),
        "heads": layers[0].q.shape[-3],
        "kv_heads": layers[0].k.shape[-3],
        "rows": whole.shape[2],
        "columns": whole.shape[3],
        "pooled": list(field),
        "queries": queries,
        "keys": keys,
        "scores": {
            name: _plain([sums[name] / count for _, sums in made]) if count else None
            for name, count in {**counts, "entropy": queries}.items()
        },
    }
    return header, whole


def _of_layer(
    ran: Ran, field: tuple[int, int], blocks: Sequence[tuple[Block, Mapping[str, Tensor]]]
) -> tuple[Tensor, dict[str, Tensor]]:
    """Pictures of the heads (H,rows,columns); for each kind and the entropy the sums of each head (H) over the queries."""
    ran = wide(ran)
    heads, queries = ran.q.shape[-3:-1]
    rows, columns = (-(-size // each) for size, each in zip((queries, ran.k.shape[-2]), field, strict=True))
    picture = ran.q.new_zeros(heads, rows, columns)
    sums = {name: ran.q.new_zeros(heads) for name in (*PATTERNS, "entropy")}
    told = weighed(ran, [block for block, _ in blocks])
    for (block, scores, weights), (_, sought) in zip(told, blocks, strict=True):
        small = pooled(weights, field)
        corner = block.queries.start // field[0], block.keys.start // field[1]
        picture[:, corner[0] : corner[0] + small.shape[1], corner[1] : corner[1] + small.shape[2]] = small
        line = weights.flatten(1)
        for name, places in sought.items():
            sums[name] += line @ places if places.is_floating_point() else line[:, places].sum(-1)
        sums["entropy"] += entropies(scores, weights).sum(-1)
    return roots(picture), sums


def _sought(block: Block, patterns: Mapping[str, Tensor | None], kind: torch.dtype) -> dict[str, Tensor]:
    """Where in a block, row by row, each kind of head looks: the places if they are few, else 1 or 0 for each place."""
    rows, columns = (slice(each.start, each.stop) for each in (block.queries, block.keys))
    wanted = {name: pattern[rows, columns].flatten() for name, pattern in patterns.items() if pattern is not None}
    return {
        name: each.nonzero()[:, 0] if int(each.sum()) * FEW <= each.numel() else each.to(kind)
        for name, each in wanted.items()
    }


def _patterns(part: str, queries: int, keys: int, ids: Sequence[int], like: Tensor) -> dict[str, Tensor | None]:
    """Where a head of each kind looks, (T,S); None where the kind means nothing."""
    if crosses(part):
        first = torch.zeros(queries, keys, dtype=torch.bool, device=like.device)
        first[:, 0] = True
        return {"previous": None, "induction": None, "sink": first}
    line = torch.tensor(ids, device=like.device)
    return {name: pattern(line) for name, pattern in PATTERNS.items()}


def _ids_of(session: Session, part: str) -> Sequence[int]:
    """The ids that the queries of a part stand for."""
    return session.source if part.startswith("encoder.") else session.ids


def _plain(layers: Sequence[Tensor]) -> list[list[float | None]]:
    """Numbers of all layers and heads, with five places; None for what is no number."""
    return [[finite(round(value, 5)) for value in each.tolist()] for each in layers]
