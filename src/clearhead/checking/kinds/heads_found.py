"""Which numbers of the projections became which head and position, in a watched attention: splitting, sharing, merging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.checking.kinds.formula_graph import Graph, linked_to, slope
from clearhead.checking.kinds.scores import Core

ROWS = 7
"""Rows of each head that are looked at, at the most."""


class Row(NamedTuple):
    """From where a row of an operand came.

    Args:
        places: of the projection: (source, index along each axis but the features).
        features: of the projection: (source, feature); calls with one matrix are one source.
    """

    places: frozenset[tuple[int, ...]]
    features: frozenset[tuple[int, int]]


class Heads(NamedTuple):
    """The rows of an operand, head by head, and where its projections are.

    Args:
        rows: for each leading index, flattened, the rows in order.
        width: of a row.
        sources: the operations that projected.
    """

    rows: list[list[Row]]
    width: int
    sources: list[int]

    @property
    def known(self) -> bool:
        """Whether it was projected at all and can be followed."""
        return bool(self.sources) and all(row.places for row in self.first)

    @property
    def first(self) -> list[Row]:
        """The first row of each head that comes from somewhere: an activation may leave nothing of one."""
        return [next((row for row in head if row.places), head[0]) for head in self.rows]

    @property
    def number(self) -> int:
        """How many heads there are: of different features, or of different places where the projection has an axis of heads."""
        kinds = set()
        for row in self.first:
            place = min(row.places, default=())
            kinds.add((row.features, place[2:] if len(place) >= 4 else ()))
        return len(kinds)


def heads_of(graph: Graph, operand: Tensor, lead: Sequence[int], before: int) -> Heads:
    """Where an operand came from.

    Args:
        graph: of the forward.
        operand: (..., rows, width), alive.
        lead: the leading axes to which it is broadcast.
        before: index of the operation that it is given to.
    """
    sources = graph.sources(operand, before)
    if any(graph.along_positions(index) for index in sources):
        # Each row then comes from all positions, as it is meant to.
        sources = []
    made = [(graph.projected(index), graph.features_axis(index)) for index in sources]
    same = _alike(graph, sources)
    flat = operand.reshape(-1, *operand.shape[-2:])
    each = [[_row(flat[n, r], made, same) for r in range(min(flat.shape[1], ROWS))] for n in range(flat.shape[0])]
    order = torch.arange(flat.shape[0]).reshape(operand.shape[:-2]).expand(tuple(lead)).reshape(-1).tolist()
    return Heads([each[n] for n in order], operand.shape[-1], sources)


def _alike(graph: Graph, sources: list[int]) -> list[int]:
    """For each source the first that projects with the same matrix: keys of an earlier piece of the text, kept beside those of this one."""
    matrices = [[t for t in graph.arguments(graph.record.ops[index]) if _weighs(t)] for index in sources]
    return [
        next((n for n, other in enumerate(matrices[:number]) if any(a is b for a in own for b in other)), number)
        for number, own in enumerate(matrices)
    ]


def _weighs(value: Tensor) -> bool:
    return isinstance(value, torch.nn.Parameter) and value.dim() >= 2


def _row(vector: Tensor, made: list[tuple[Tensor, int]], same: list[int]) -> Row:
    places: set[tuple[int, ...]] = set()
    features: set[tuple[int, int]] = set()
    slopes = _slopes(vector, [tensor for tensor, _ in made])
    for source, ((_, axis), found) in enumerate(zip(made, slopes, strict=True)):
        for at in found.nonzero().tolist():
            features.add((same[source], at.pop(axis)))
            places.add((source, *at))
    return Row(frozenset(places), frozenset(features))


def _slopes(value: Tensor, of: list[Tensor]) -> list[Tensor]:
    """The gradient by each, in one pass; the weights differ, so that equal and opposite ones do not cancel."""
    if not of or not value.requires_grad:
        return [torch.zeros_like(tensor) for tensor in of]
    weights = torch.linspace(1, 2, value.numel(), dtype=value.dtype).reshape(value.shape)
    found = torch.autograd.grad((value * weights).sum(), of, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(t) if g is None else torch.nan_to_num(g) for t, g in zip(of, found, strict=True)]


def mixed(heads: Heads) -> tuple[int, int] | None:
    """A head and a row where positions were mixed: several in a row, or rows of one head from different features; None if none."""
    for number, head in enumerate(heads.rows):
        for place, row in enumerate(head):
            spread = len({at for at in row.places if at[0] == min(row.places)[0]}) if row.places else 0
            if spread > 1 and len(row.features) <= 2 * heads.width * spread and _rearranged(row, heads.width):
                return number, place
        if len(head) > 1 and all(len(row.places) == 1 for row in head):
            first, every = head[0].features, frozenset[tuple[int, int]]().union(*(row.features for row in head))
            for place, row in enumerate(head[1:], 1):
                if (
                    len(first & row.features) < min(len(first), len(row.features)) / 2
                    and len(every) > 1.25 * heads.width
                ):
                    return number, place
    return None


def crossed(heads: Heads) -> bool:
    """Whether each row is a feature at all positions in place of a position with all features: attention among channels."""
    return heads.known and all(
        len({row.features for row in head}) == len(head)
        and all(len(row.features) == 1 < len(row.places) for row in head)
        for head in heads.rows
    )


def several(heads: Heads, at: tuple[int, int]) -> int:
    """From how many positions the numbers of a row come."""
    return len(heads.rows[at[0]][at[1]].places)


def _rearranged(row: Row, width: int) -> bool:
    """Whether a row holds numbers of several positions, and not a sum over them."""
    return len(row.places) <= 2 * width


class Sharing(NamedTuple):
    """Which key and value heads the query heads use, in one row of the batch.

    Args:
        heads: H.
        kv_heads: K.
        used: for each query head in order, the key head that it uses, by its order among the projected features.
    """

    heads: int
    kv_heads: int
    used: list[int]

    @property
    def right(self) -> bool:
        """Whether query head h uses head h // (H/K)."""
        return self.heads % self.kv_heads == 0 and self.used == [
            h // (self.heads // self.kv_heads) for h in range(self.heads)
        ]

    @property
    def tiled(self) -> bool:
        """Whether query head h uses head h % K."""
        return not self.right and self.used == [h % self.kv_heads for h in range(self.heads)]


def sharing(queries: Heads, keys: Heads) -> Sharing | None:
    """Who uses whose keys; None if it cannot be told."""
    if not (queries.known and keys.known) or len(queries.rows) != len(keys.rows):
        return None
    first = [n for n, head in enumerate(queries.rows) if head[0].places == queries.rows[0][0].places]
    if len(first) < 2:
        return None
    own, theirs = ([_order(heads.first[n]) for n in first] for heads in (queries, keys))
    if len(set(own)) != len(own):
        return None
    ranks = {key: rank for rank, key in enumerate(sorted(set(theirs)))}
    pairs = sorted(zip(own, theirs, strict=True))
    return Sharing(len(own), len(ranks), [ranks[key] for _, key in pairs])


def _order(row: Row) -> tuple[tuple[int, ...], tuple[int, int]]:
    """What puts heads in order: their first feature."""
    return min(row.places), min(row.features)


def merged(graph: Graph, core: Core, result: Tensor | None) -> tuple[int, int | None, int]:
    """How the heads were put together.

    Returns:
        the index of the output projection, -1 if there is none; a row of what it was given whose numbers come from several
        positions, None if there is none; and how many numbers of the context a number of that row comes from.
    """
    outward = next(
        (i for i in graph.linears(len(graph.record.ops), core.end) if any(linked_to(graph.fed_by(i), [core.context]))),
        -1,
    )
    given = graph.fed_by(outward) if outward >= 0 else result
    if given is None or not given.requires_grad:
        return outward, None, 1
    if outward >= 0 and graph.record.ops[outward].name == "conv1d":
        given = given.transpose(-2, -1)
    flat = given.reshape(-1, given.shape[-1])
    axis = core.context.dim() + core.rows
    count = int((slope(flat[0, 0], core.context) != 0).sum())
    if count > given.shape[-1]:
        # More than another order of the numbers: positions are summed.
        return outward, None, count
    for row in range(min(flat.shape[0], 2 * ROWS)):
        hit = (slope(flat[row] * torch.linspace(1, 2, flat.shape[1], dtype=flat.dtype), core.context) != 0).nonzero()
        if len(set(hit[:, axis].tolist())) > 1:
            return outward, row, count
    return outward, None, count
