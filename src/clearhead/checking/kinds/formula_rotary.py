"""Rotary positions inside a watched attention: with the same content everywhere, what turns shows itself."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.checking.kinds.formula_graph import Graph, slope
from clearhead.checking.kinds.scores import Core

STILL = 1e-5
ROUGH = (1e-4, 1e-2)
"""Between which an error of a turn is that of a 16-bit angle, sine or cosine: above 2^-13, below 2^-7."""


class Turns(NamedTuple):
    """What turns with the position.

    Args:
        queries: whether q does.
        keys: whether k does.
        values: whether v does.
        heads: whether q or k turns with the head in place of the position.
        parted: the largest difference of the scores of two pairs at the same distance, relative to the largest score.
    """

    queries: bool
    keys: bool
    values: bool
    heads: bool
    parted: float


def turns(graph: Graph, core: Core) -> Turns | None:
    """What turns in a forward whose input is the same at every position; None if the projections are not."""
    if not all(_projected_alike(graph, core, operand) for operand in (core.q, core.k, core.v)):
        return None
    queries, keys, values = _turns(core.q), _turns(core.k), _turns(core.v, spread=True)
    by_head = not queries and not keys and (_by_head(graph, core, core.q) or _by_head(graph, core, core.k))
    scores = (core.q @ core.k.transpose(-2, -1)).detach()
    near = min(scores.shape[-2:])
    # Places in front that do not turn, as a class's token, are at no distance.
    first = _unturned(core.q, near)
    first = first if first == _unturned(core.k, near) else 0
    square = scores[..., first:near, first:near]
    parted = float((square[..., 1:, 1:] - square[..., :-1, :-1]).abs().max() / square.abs().max().clamp_min(1e-12))
    return Turns(queries, keys, values, by_head, parted)


def _unturned(operand: Tensor, near: int) -> int:
    """How many rows are like the one after them, from the first on; one row and the next stay."""
    rows = operand.detach().reshape(-1, *operand.shape[-2:])[:, :near]
    same = ((rows[:, 1:] - rows[:, :-1]).norm(dim=-1) <= STILL * rows.norm(dim=-1)[:, 1:]).all(0).tolist()
    return min((n for n, alike in enumerate(same) if not alike), default=0)


def _projected_alike(graph: Graph, core: Core, operand: Tensor) -> bool:
    """Whether the projections behind an operand have the same row at every position: nothing of positions was added before."""
    sources = graph.sources(operand, core.end if operand is core.v else core.start)
    flat = operand.reshape(-1, *operand.shape[-2:])
    if not sources:
        return False
    for index in sources:
        made = graph.projected(index)
        found = [_picked(flat[0, row], made) for row in (0, flat.shape[1] - 1)]
        if found[0].shape != found[1].shape or not torch.allclose(found[0], found[1], rtol=1e-6, atol=1e-9):
            return False
    return True


def _picked(vector: Tensor, made: Tensor) -> Tensor:
    """The numbers of a projection from which a row came, in order."""
    weights = torch.linspace(1, 2, vector.numel(), dtype=vector.dtype)
    return made.detach()[slope(vector * weights, made) != 0]


def _turns(operand: Tensor, *, spread: bool = False) -> bool:
    """Whether the rows differ and are of one length; `spread`: in some head only."""
    rows = operand.detach().reshape(-1, *operand.shape[-2:])
    size = rows.norm(dim=-1)
    still = (rows - rows[:, :1]).norm(dim=-1) <= STILL * size.clamp_min(1e-12)
    long = (size - size[:, :1]).abs() <= 1e-2 * size
    moved = ~still[:, 1:].all(-1)
    return bool((moved & long.all(-1)).any() if spread else (moved.any() and long.all()))


def _by_head(graph: Graph, core: Core, operand: Tensor) -> bool:
    """Whether some heads are turned and the first is not, while no position matters."""
    sources = graph.sources(operand, core.start)
    if len(sources) != 1:
        return False
    made = graph.projected(sources[0])
    rows = operand.reshape(-1, *operand.shape[-2:])
    found = []
    for number in range(rows.shape[0]):
        vector, raw = rows[number, 0], _picked(rows[number, 0], made)
        if raw.numel() != vector.numel():
            found.append(raw.numel() == 2 * vector.numel())
            continue
        length = vector.detach().norm() / raw.norm().clamp_min(1e-12)
        sorted_raw, sorted_own = (raw * length).sort().values, vector.detach().sort().values
        found.append(bool((sorted_raw - sorted_own).abs().max() > STILL * sorted_own.abs().max()))
    return any(found) and not all(found)
