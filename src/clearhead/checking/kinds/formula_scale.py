"""By what the scores of a watched attention are multiplied, from the projections to the softmax, and what that should be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.checking.kinds.formula_graph import KERNEL, Graph, slope
from clearhead.checking.kinds.scores import Core

CLOSE = 2e-5


class Scale(NamedTuple):
    """What the product of the projected queries and keys is multiplied by.

    Args:
        total: from the projections on; None where it is not one number.
        scores: between the product and the softmax.
        queries: between the projection of the queries and the product; None where it is not one number, as with a norm.
        keys: the same for the keys.
        bias: whether something else is added that the scores do not come from.
    """

    total: float | None
    scores: float | None
    queries: float | None
    keys: float | None
    bias: bool


def scale_of(graph: Graph, core: Core) -> Scale:
    """The scale as it ran."""
    at_scores = _of_kernel(graph, core) if core.pairs is None else _of_scores(graph, core)
    queries = _before(graph, core, core.q)
    keys = _before(graph, core, core.k)
    total = (
        None if None in (at_scores, queries, keys) else float(at_scores or 0) * float(queries or 0) * float(keys or 0)
    )
    return Scale(total, at_scores, queries, keys, _biased(core, at_scores))


def _of_kernel(graph: Graph, core: Core) -> float | None:
    """The scale of a fused kernel."""
    op = graph.record.ops[core.middle]
    if op.name != KERNEL:
        return None
    given = op.keywords.get("scale", op.argument(6, "scale"))
    return 1 / math.sqrt(core.q.shape[-1]) if given is None else float(given)


def _of_scores(graph: Graph, core: Core) -> float | None:
    """The one number c with scores = c q·k + anything that does not depend on both; None if there is none.

    The difference of two scores of one query has the gradient c (k_j - k_j') by the query, and ±c q by the two keys, so that the
    norms of these alone give c, whatever the layout.
    """
    assert core.pairs is not None
    assert core.scores is not None
    found = []
    scores, factor = _uncapped(graph, core)
    for row in _last_rows(core):
        pairs = [(row[j], row[i]) for j in range(len(row)) for i in range(j)]
        for one, other in pairs[:2]:
            query, key = core.pairs.given[::-1] if core.swapped else core.pairs.given
            apart = scores[one] - scores[other]
            by_query, by_key = slope(apart, query), slope(apart, key)
            length = float(query.detach()[by_query != 0].norm())
            if length > 0 and float(by_key.norm()) > 0:
                found.append(factor * float(by_key.norm()) / (math.sqrt(2) * length))
    return _one(found)


def _uncapped(graph: Graph, core: Core) -> tuple[Tensor, float]:
    """The scores before a soft-cap, cap · tanh(scores / cap), and the cap; the scores themselves and 1 without one."""
    assert core.scores is not None
    for index in range(core.start + 1, core.middle):
        op, made = graph.record.ops[index], graph.result(index)
        if op.name != "tanh" or made is None or made.shape != core.scores.shape:
            continue
        at = _last_rows(core)[0][0]
        return graph.arguments(op)[0], float(slope(core.scores[at], made)[at])
    return core.scores, 1.0


def _last_rows(core: Core) -> list[list[tuple[int, ...]]]:
    """Places of the scores of a query each, those alone that are not hidden: of the first and of the last head."""
    assert core.scores is not None
    scores = core.scores.detach()
    lead = scores.shape[:-2]
    rows = []
    for first in {tuple(0 for _ in lead), tuple(n - 1 for n in lead)}:
        for query in (scores.shape[-2] - 1, scores.shape[-2] - 2):
            if query < 0:
                continue
            seen = [(*first, query, key) for key in range(scores.shape[-1]) if scores[(*first, query, key)] > -1e3]
            rows.append(seen[:3])
    return rows


def _before(graph: Graph, core: Core, operand: Tensor) -> float | None:
    """By what a projection is multiplied on its way into the product, told by the lengths of its vectors; 1 without a projection."""
    sources = graph.sources(operand, core.start)
    if not sources:
        return 1.0
    made = [(graph.projected(index), _as_made(graph, index)) for index in sources]
    found = []
    flat = operand.reshape(-1, *operand.shape[-2:])
    for head in {0, flat.shape[0] - 1}:
        for row in range(0, flat.shape[1], max(flat.shape[1] // 3, 1)):
            vector = flat[head, row]
            squares = sum(float(values[slope(vector, y) != 0].square().sum()) for y, values in made)
            if squares > 0:
                found.append(float(vector.detach().norm()) / math.sqrt(squares))
    return _one(found)


def _as_made(graph: Graph, index: int) -> Tensor:
    """What a projection gave, with its bias, before it was multiplied in its place, as by `q *= scale`."""
    made = graph.projected(index)
    ops = graph.record.ops[index : index + 3]
    kept = [op.result for op in ops if graph.live(op)[2] is made and (op is ops[0] or "add" in op.name)]
    values: Tensor = kept[-1].detach()
    return values


def _one(found: list[float]) -> float | None:
    """The number that all are, to rounding; None if they are not one."""
    if not found or not all(map(math.isfinite, found)) or max(found) - min(found) > CLOSE * max(found):
        return None
    return found[0]


def _biased(core: Core, scale: float | None) -> bool:
    """Whether the visible scores are not the product times the scale alone."""
    if core.scores is None or core.pairs is None or scale is None:
        return False
    plain = (core.pairs.left @ core.pairs.right.transpose(-2, -1)).detach() * scale
    scores = core.scores.detach()
    if plain.numel() != scores.numel() or plain.shape[-2:] != scores.shape[-2:]:
        return False
    difference = (scores - plain.reshape(scores.shape))[scores > -1e3]
    return bool(difference.numel()) and float((difference - difference.mean()).abs().max()) > CLOSE


def named(scale: float, sizes: Mapping[str, int]) -> tuple[str, str] | None:
    """The fault whose formula gives this scale, and that formula; None if it is right or of no known kind.

    Args:
        scale: what was found.
        sizes: d, D, T and S.
    """
    d = sizes["d"]
    if _near(scale, 1 / math.sqrt(d)):
        return None
    table = [("scale.missing", "1", 1.0)]
    table += [("scale.model-width", "1/√D", 1 / math.sqrt(n)) for n in {sizes["D"], sizes["HD"]} if n != d]
    table += [("scale.inverted", "√d", math.sqrt(d)), ("scale.inverted", "√D", math.sqrt(sizes["D"]))]
    table += [("scale.twice", "1/d", 1 / d), ("scale.twice", "1/D", 1 / sizes["D"]), ("scale.inverted", "d", float(d))]
    for letter in ("T", "S"):
        table += [
            ("scale.length", f"1/√{letter}", 1 / math.sqrt(sizes[letter])),
            ("scale.length", f"1/{letter}", 1 / sizes[letter]),
        ]
    table += [("scale.model-width", "1/√H", 1 / math.sqrt(sizes["H"]))]
    return next(((name, formula) for name, formula, value in table if _near(scale, value)), None)


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-5 * abs(b)


def softened(core: Core, scale: float) -> Tensor:
    """What the core would give with this scale and nothing else changed, for the size of an effect."""
    scores = core.q.detach() @ core.k.detach().transpose(-2, -1) * scale
    return torch.softmax(scores, -1) @ core.v.detach()
