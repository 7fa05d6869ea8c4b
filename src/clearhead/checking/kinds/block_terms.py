"""A tensor as a sum of others: additions, factors and what changes no value are seen through; everything else is a term."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from torch import Tensor

from clearhead.checking.kinds.block_graph import Node
from clearhead.checking.kinds.block_ops import (
    ADDED,
    GATES,
    NORMS,
    OVER,
    PARTING,
    PASSING,
    REDUCING,
    STATISTIC,
    TAKEN,
    TIMES,
)


@dataclass(frozen=True)
class Way:
    """One way in which a term came into a sum.

    Args:
        scale: the product of the plain numbers that it was multiplied by.
        stated: whether a parameter or buffer scaled it, so that no number can be wrong.
        by: the operations that multiplied it by a number.
    """

    scale: float = 1.0
    stated: bool = False
    by: tuple[Node, ...] = ()


Terms = dict[Node, tuple[Way, ...]]


class Reader:
    """Reads tensors as sums, down to the nodes at which the stream begins.

    Args:
        begins: where the stream begins: nodes that are seen as they are.
        followed: the names of the inputs that count; what depends on none of them is a constant.
        length: T.
    """

    def __init__(self, begins: Iterable[Node], followed: frozenset[str], length: int) -> None:
        self.begins = frozenset(begins)
        self.followed, self.length = followed, length
        self.width = next((node.shape[-1] for node in self.begins), 0)
        self._terms: dict[Node, Terms] = {}
        self._streams: dict[Node, bool] = {}

    def depends(self, node: Node) -> bool:
        """Whether a node depends on an input."""
        return bool(node.origins & self.followed)

    def terms(self, node: Node) -> Terms:
        """The node as a sum; constants with an axis of positions are terms, others are left out."""
        known = self._terms.get(node)
        if known is None:
            known = self._read(node)
            self._terms[node] = known
        return known

    def _read(self, node: Node) -> Terms:
        if node in self.begins:
            return {node: (Way(),)}
        if not self.depends(node):
            return {node: (Way(),)} if self._of_positions(node) else {}
        return self._combined(node)

    def _combined(self, node: Node) -> Terms:
        if node.name in ADDED | TAKEN:
            return self._sum(node)
        if node.name in TIMES | OVER:
            return self._scaled(node)
        if node.name in ("sum", "mean") and (stacked := _stacked(node)) is not None:
            share = Way(1.0) if node.name == "sum" else Way(1.0 / len(stacked), False, (node,))
            return _united([_times(self.terms(part), share) for part in stacked])
        if node.name in PARTING and node.parents and node.shape == node.parents[0].shape:
            # A text no longer than one piece is one piece.
            return self.terms(node.parents[0])
        if node.name in PASSING:
            given = node.parents[:1] if node.name in LIKE else node.parents
            through = [*{p for p in given if self.depends(p) and p.value.is_floating_point() and p.value.numel()}]
            if len(through) == 1 and _kept(node, through[0], self.width):
                return self.terms(through[0])
        return {node: (Way(),)}

    def _of_positions(self, node: Node) -> bool:
        """Whether a constant is a table with a row for each position."""
        if node.value.dim() < 2 or self.length not in node.shape[-3:-1] or not node.value.is_floating_point():
            return False
        axis = node.value.dim() - 3 + node.shape[-3:].index(self.length) if node.value.dim() >= 3 else 0
        first = node.value.select(axis, 0).unsqueeze(axis)
        return bool((node.value != first).any())

    def _sum(self, node: Node) -> Terms:
        first, second = node.argument(0, "input"), node.argument(1, "other")
        if node.name in ("rsub", "__rsub__"):
            first, second = second, first
        alpha = node.keywords.get("alpha", 1)
        sign = -1.0 if node.name in TAKEN else 1.0
        factor = sign * float(alpha) if isinstance(alpha, int | float) else sign
        by = (node,) if abs(factor) != 1 else ()
        parts: list[Terms] = []
        for part, scale, ops in ((first, 1.0, ()), (second, factor, by)):
            if not isinstance(part, Node):
                continue
            if self.depends(part) and part.value.numel() != node.value.numel() and part.value.numel() > 1:
                # A statistic or a row that is spread: no part of the stream.
                parts.append({part: (Way(scale, False, ops),)})
            else:
                parts.append(_times(self.terms(part), Way(scale, False, ops)))
        return _united(parts)

    def _scaled(self, node: Node) -> Terms:
        first, second = node.argument(0, "input"), node.argument(1, "other")
        if isinstance(second, Node) and self.depends(second):
            if isinstance(first, Node) and self.depends(first):
                return {node: (Way(),)}
            if node.name in OVER:
                return {node: (Way(),)}
            first, second = second, first
        if not isinstance(first, Node):
            return {node: (Way(),)}
        return _times(self.terms(first), _factor(node, second, node.name in OVER))

    def stream(self, node: Node) -> bool:
        """Whether a node is the stream: its beginning, or a sum with it, or a norm of it."""
        known = self._streams.get(node)
        if known is None:
            self._streams[node] = False
            known = self.depends(node) and any(self._carries(term) for term in self.terms(node))
            self._streams[node] = known
        return known

    def _carries(self, term: Node) -> bool:
        if term in self.begins:
            return True
        normed = self.normed(term)
        if normed is not None:
            return self.stream(normed)
        # A gate lets a share of the stream through.
        return term.name in GATES and any(self.depends(p) and self.stream(p) for p in term.parents)

    def normed(self, node: Node) -> Node | None:
        """What a norm normalises; None if the node is no norm's output."""
        if node.name in NORMS:
            first = node.argument(0, "input")
            return first if isinstance(first, Node) else None
        if node.name not in TIMES | OVER:
            return None
        both = [a for a in (node.argument(0, "input"), node.argument(1, "other")) if isinstance(a, Node)]
        if len(both) != 2 or not all(self.depends(a) for a in both):
            return None
        whole, part = sorted(both, key=lambda a: -a.value.numel())
        if part.value.numel() == node.value.numel() or whole.value.numel() != node.value.numel():
            return None
        return whole if self._statistic(part) else None

    def _statistic(self, node: Node) -> bool:
        """Whether a node is made by reductions of the stream and functions of them alone."""
        todo, reduced = [node], False
        seen: set[Node] = set()
        while todo:
            each = todo.pop()
            if each in seen or not self.depends(each):
                continue
            seen.add(each)
            if each in self.begins or each.name not in STATISTIC:
                if each is node:
                    return False
                continue
            reduced = reduced or each.name in REDUCING
            if each.name in REDUCING and each.value.numel() < each.parents[0].value.numel():
                continue
            todo += each.parents
        return reduced


LIKE = frozenset({"type_as", "view_as", "reshape_as", "expand_as", "to"})
"""What takes a second tensor for its type or shape alone."""
RESHAPING = frozenset({"view", "reshape", "flatten", "unflatten", "view_as", "reshape_as"})


def _kept(node: Node, parent: Node, width: int) -> bool:
    """Whether what passes keeps its features: a part of them, one position, or another order of numbers, is something else."""
    if node.name in RESHAPING:
        # (B,T,D) to (B,T,H,d), to (BT,D) and back; not (B,D,T) to (B,T,D).
        return not width or all(width in _trailing(each.shape) for each in (node, parent))
    if node.name not in ("__getitem__", "narrow", "cat", "concat", "pad"):
        return True
    return node.value.dim() == parent.value.dim() and node.shape[-1] == parent.shape[-1]


def _trailing(shape: tuple[int, ...]) -> set[int]:
    """The products of the last axes."""
    return {math.prod(shape[-count:]) for count in range(1, len(shape) + 1)}


def _stacked(node: Node) -> list[Node] | None:
    """The parts of a stack that is summed up along its own axis."""
    stack = node.argument(0, "input")
    if not isinstance(stack, Node) or stack.name != "stack":
        return None
    parts = stack.argument(0, "tensors")
    axis = node.argument(1, "dim", None)
    axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
    return [p for p in parts if isinstance(p, Node)] if axis == stack.argument(1, "dim", 0) else None


def _factor(node: Node, factor: object, divided: bool) -> Way:
    """How a factor that depends on no input scales."""
    if isinstance(factor, int | float):
        if factor == 0:
            return Way(0.0, False, (node,))
        scale = 1.0 / factor if divided else float(factor)
        return Way(scale, False, () if scale == 1 else (node,))
    if isinstance(factor, Node) and factor.value.numel() == 1 and factor.name != "constant":
        # Made in the forward from numbers: as good as a number.
        number = float(factor.value)
        scale = 1.0 / number if divided and number else number
        return Way(scale, False, () if scale == 1 else (node,))
    return Way(1.0, True)


def _times(terms: Terms, way: Way) -> Terms:
    if way.scale == 1 and not way.stated:
        return terms
    return {
        node: tuple(
            replace(old, scale=old.scale * way.scale, stated=old.stated or way.stated, by=old.by + way.by)
            for old in ways
        )
        for node, ways in terms.items()
    }


def _united(parts: list[Terms]) -> Terms:
    out: Terms = {}
    for part in parts:
        for node, ways in part.items():
            out[node] = out.get(node, ()) + ways
    return out


def summed(terms: Terms) -> Tensor | None:
    """The value of a sum whose terms are scaled by plain numbers alone; None if it cannot be told."""
    total: Tensor | None = None
    for node, ways in terms.items():
        if any(way.stated for way in ways):
            return None
        part = node.value * sum(way.scale for way in ways)
        total = part if total is None else total + alike(part, total)
    return total


def alike(value: Tensor, like: Tensor) -> Tensor:
    """A value in the layout of another: positions first where that has them first, heads put together."""
    if value.shape == like.shape or value.numel() != like.numel():
        return value
    if value.dim() == 3 and value.transpose(0, 1).shape == like.shape:
        return value.transpose(0, 1)
    return value.reshape(like.shape)
