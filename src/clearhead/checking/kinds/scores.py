"""The cores of attention in a watched forward: scores, softmax over keys, and the sum of values that the weights take."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.checking.kinds.formula_graph import KERNEL, Graph, Product, linked_to, product, slope

SOFTMAX = ("softmax", "_softmax", "exp", "softmin", "log_softmax", "exp_")


@dataclass(frozen=True)
class Core:
    """One attention, as it ran.

    Args:
        q: (..., T, d), turned so, alive; leading axes may broadcast with those of k and v.
        k: (..., S, d).
        v: (..., S, dv).
        context: what the weights made of v, alive.
        rows: the axis of the context, from its end, that has the queries.
        start: index of the operation that makes the scores.
        middle: index of the softmax; that of the kernel if one does it all.
        end: index of the operation that makes the context.
        scores: the softmax's input, alive; None where a kernel keeps it to itself.
        weights: (..., T, S), what v was multiplied with; None for a kernel.
        axes: of the softmax: the one that it is taken over, and the one over which v is summed, from the end; None if unknown.
        pairs: the product of the scores; None for a kernel.
        swapped: whether the queries are the right operand of that product.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    context: Tensor
    rows: int
    start: int
    middle: int
    end: int
    scores: Tensor | None = None
    weights: Tensor | None = None
    axes: tuple[int, int] | None = None
    pairs: Product | None = None
    swapped: bool = False


def cores(graph: Graph, lengths: tuple[int, ...] = ()) -> list[Core]:
    """Every core in a record, in order."""
    found = []
    for index, op in enumerate(graph.record.ops):
        if op.name == KERNEL:
            given = graph.live(op)
            q, k, v = (
                given[0][i] if i < len(given[0]) else given[1][n] for i, n in enumerate(("query", "key", "value"))
            )
            out = graph.result(index)
            if out is not None and graph.depends(q):
                if op.keywords.get("enable_gqa") and q.dim() > 2:
                    k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], -3) for t in (k, v))
                found.append(Core(q, k, v, out, -2, index, index, index))
        elif op.name in SOFTMAX:
            core = _around(graph, index, lengths)
            if core is not None:
                found.append(core)
    return found


def _around(graph: Graph, middle: int, lengths: tuple[int, ...]) -> Core | None:
    """The core whose softmax is this operation."""
    given, softened = graph.arguments(graph.record.ops[middle]), graph.result(middle)
    if not given or softened is None or not softened.requires_grad:
        return None
    scores = given[0] if given[0] is not softened else softened
    first = _scoring(graph, middle, scores, lengths)
    second = _summing(graph, middle, softened, lengths)
    if first is None or second is None:
        return None
    taken, weighted_left = second
    weights, values = (taken.left, taken.right) if weighted_left else (taken.right, taken.left)
    queries, keys = (taken.rows, taken.columns) if weighted_left else (taken.columns, taken.rows)
    del keys
    axes, swapped = _axes(graph, middle, (scores, softened), weights, first)
    q, k = (first.right, first.left) if swapped else (first.left, first.right)
    return Core(
        q,
        k,
        values.transpose(-2, -1),
        taken.out,
        queries,
        first.index,
        middle,
        taken.index,
        scores,
        weights,
        axes,
        first,
        swapped,
    )


def _scoring(graph: Graph, middle: int, scores: Tensor, lengths: tuple[int, ...]) -> Product | None:
    """The last product before the softmax that has its size and that it depends on."""
    weighing = frozenset(graph.linears(middle))
    projected = 0
    for index in range(middle - 1, -1, -1):
        found = product(graph, index, lengths)
        if found is None:
            # Heads may be mixed by one matrix; what comes after two is no score any more.
            projected += index in weighing and any(
                linked_to(scores, [t for t in [graph.result(index)] if t is not None])
            )
            if projected > 1:
                return None
            continue
        # A sink is a further column of the scores; heads that are summed make them fewer.
        if scores.shape[-1] == 1 != found.out.shape[-1]:
            # One number a query, such as the exponential of its largest score.
            return None
        same = found.out.numel() % scores.numel() == 0 or found.out.shape[:-1] == scores.shape[:-1]
        if same and any(linked_to(scores, [found.out])):
            return found
    return None


def _summing(graph: Graph, middle: int, softened: Tensor, lengths: tuple[int, ...]) -> tuple[Product, bool] | None:
    """The first product after the softmax in which one operand depends on it, and whether that is the left one."""
    for index in range(middle + 1, len(graph.record.ops)):
        if graph.record.ops[index].name in (*SOFTMAX, KERNEL) and graph.record.ops[middle].name not in ("exp", "exp_"):
            # Another attention begins: what follows is its own, unless the heads run side by side.
            pass
        found = product(graph, index, lengths)
        if found is None:
            continue
        left, right = any(linked_to(found.left, [softened])), any(linked_to(found.right, [softened]))
        if left != right:
            return found, left
        if left and right:
            return None
    return None


def _axes(
    graph: Graph, middle: int, around: tuple[Tensor, Tensor], weights: Tensor, first: Product
) -> tuple[tuple[int, int] | None, bool]:
    """Over which axis the softmax is and over which v is summed; and whether the keys are the left operand of the scores."""
    scores, softened = around
    op = graph.record.ops[middle]
    dim = op.argument(1, "dim", op.keywords.get("axis"))
    if op.name == "softmax" and dim is None:
        dim = -1
    place = _traced(weights, softened)
    if place is None:
        return None, False
    queries, keys = place
    before = _placed(scores, first.out, queries, keys)
    swapped = before is not None and before[1] == first.rows
    if not isinstance(dim, int) or op.name not in ("softmax", "_softmax"):
        return None, swapped
    return (dim if dim < 0 else dim - softened.dim(), keys), swapped


def _traced(weights: Tensor, softened: Tensor) -> tuple[int, int] | None:
    """The axes of the softmax's output, from its end, that became the rows and the columns of the weights."""
    rows, columns = weights.shape[-2:]
    for row, column in ((rows - 1, 1), (rows - 2, 2 % columns), (1, 0), (0, columns - 1)):
        if row == column or row >= rows or column >= columns or row < 0:
            continue
        at = (*(0 for _ in weights.shape[:-2]), row, column)
        hit = slope(weights[at], softened).nonzero()
        if len(hit) != 1:
            continue
        return _axes_of(hit[0].tolist(), row, column)
    return None


def _placed(scores: Tensor, product_out: Tensor, queries: int, keys: int) -> tuple[int, int] | None:
    """The axes of the product that the given axes of the scores were."""
    if scores is product_out:
        return queries, keys
    sizes = scores.shape
    for row, column in ((sizes[queries] - 1, 1), (sizes[queries] - 2, 2 % sizes[keys]), (1, 0), (0, sizes[keys] - 1)):
        if row == column or column >= sizes[keys] or not 0 <= row < sizes[queries]:
            continue
        at = [0] * scores.dim()
        at[queries], at[keys] = row, column
        hit = slope(scores[tuple(at)], product_out).nonzero()
        if len(hit) == 1:
            return _axes_of(hit[0].tolist(), row, column)
    return None


def _axes_of(place: list[int], row: int, column: int) -> tuple[int, int] | None:
    """Which axes, from the end, have these two places; the last that fit."""
    backwards = place[::-1]
    if row in backwards and column in backwards:
        return -1 - backwards.index(row), -1 - backwards.index(column)
    return None


def rows_sum_to_one(weights: Tensor, axis: int) -> bool:
    """Whether the weights sum to one along an axis, wherever they are numbers."""
    total = weights.detach().sum(axis)
    total = total[torch.isfinite(total)]
    return bool(total.numel()) and bool((total - 1).abs().max() < 1e-5)
