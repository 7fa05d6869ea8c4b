"""Whether one tensor is another one rearranged: what fits in shape and means something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.checking.diff.relations_numbers import (
    EXACT,
    SINGLE,
    Linear,
    constant,
    factor_text,
    few_numbers,
    linear,
    narrowest,
    quantised,
)
from clearhead.checking.diff.relations_orders import Order, Shapes, known_order, named_order
from clearhead.checking.diff.relations_views import PIECE, Turn, View, matrix, near, sampled, views
from clearhead.messages import say

__all__ = ["Relation", "Shapes", "relation", "row_numbers"]


class Relation(NamedTuple):
    """How B's tensor comes from A's.

    Args:
        id: what kind of relation: "weights.transposed", "qkv.layout", "rotary.pairing", "weights.scaled" ...
        text: one sentence.
        turn: makes B's tensor from A's.
        exact: whether that gives B's numbers to rounding; else it says only what was seen.
    """

    id: str
    text: str
    turn: Callable[[Tensor], Tensor]
    exact: bool = True


def relation(a: Tensor, b: Tensor, shapes: Shapes | None = None) -> Relation | None:
    """How B's tensor comes from A's, None if it is the same one or no relation is known.

    Cheap questions come first; each is asked of some of the numbers, or of one number a row, and what they answer is held against
    all of them. A row's number is its product with a fixed vector: whatever the order of the rows, the numbers are the same, so that
    one sorting tells whether there is an order at all.

    Args:
        a: A's.
        b: B's.
        shapes: what is known of the sizes.
    """
    if not a.numel() or not b.numel() or not (a.is_floating_point() and b.is_floating_point()):
        return None
    shapes = shapes or Shapes()
    if a.numel() != b.numel():
        return _cropped(a, b)
    common = torch.promote_types(a.dtype, b.dtype)
    other = b.detach().to(common).reshape(matrix(tuple(b.shape)))
    one = a.detach().to(common).reshape(matrix(tuple(a.shape)))
    if a.shape == b.shape and near(one, other, 0.0):
        return None
    value = constant(other)
    if value is not None:
        return _constant(one, value, tuple(b.shape))
    kind = narrowest(one, other)
    rounded = one if kind is None else one.to(kind).to(common)
    for turn, order in _turns(rounded.reshape(a.shape), other, tuple(b.shape), shapes):
        return _said(turn._replace(kind=kind), order, shapes)
    return _coarser(one, other) if a.shape == b.shape else None


def _said(turn: Turn, order: Order | None, shapes: Shapes) -> Relation | None:
    """The relation in words: what was done to the numbers weighs more than their order, and that more than their axes."""
    said = [*_axes_said(turn)]
    if order is not None:
        place = say("weights.of_rows") if turn.columns is None else say("weights.of_columns")
        said.append((order.id, f"{place}{order.text}"))
    said += _numbers_said(turn, shapes)
    if not said:
        return None
    return Relation(said[-1][0], say("weights.related", how="; ".join(words for _, words in said)), turn.apply)


def _axes_said(turn: Turn) -> Iterator[tuple[str, str]]:
    if turn.kind is not None:
        yield "weights.rounded", say("weights.rounded", kind=str(turn.kind).removeprefix("torch."))
    if turn.view.transposed:
        yield "weights.transposed", say("weights.transposed")
    elif turn.view.turned:
        yield "weights.axes", say("weights.axes", split=turn.view.split, axes=turn.view.axes)


def _numbers_said(turn: Turn, shapes: Shapes) -> Iterator[tuple[str, str]]:
    if turn.shift:
        yield "weights.shifted", say("weights.shifted", number=f"{turn.shift:+.6g}")
    if turn.factor == -1.0:
        yield "weights.negated", say("weights.negated")
    elif turn.factor != 1.0:
        yield "weights.scaled", say("weights.scaled", factor=factor_text(turn.factor, shapes))


def _turns(a: Tensor, b: Tensor, shape: tuple[int, ...], shapes: Shapes) -> Iterator[tuple[Turn, Order | None]]:
    """What turns A's into B's: first without an order of rows, then with one of rows, then of columns."""
    every = list(views(tuple(a.shape), shape))
    for view in every:
        for found in _places(view.of(a), b):
            turn = Turn(view, shape, factor=found.factor, shift=found.shift)
            if turn.agrees(a, b, _allowed(found)):
                yield turn, None
    for view in every:
        for turn, order in _orders(view, a, b, shape, shapes):
            if turn.agrees(a, b, _allowed(Linear(turn.factor, turn.shift))):
                yield turn, order


def _allowed(found: Linear) -> float:
    return 0.0 if found in ((1.0, 0.0), (-1.0, 0.0)) else SINGLE


def _places(seen: Tensor, b: Tensor) -> Iterator[Linear]:
    """The factors and sums that fit at some places of two matrices."""
    places = sampled((b.shape[0], b.shape[1]))
    one, other = seen[places].double(), b[places].double()
    for found in linear(one, other):
        if near(one * found.factor + found.shift, other, _allowed(found)):
            yield found


def _orders(
    view: View, a: Tensor, b: Tensor, shape: tuple[int, ...], shapes: Shapes
) -> Iterator[tuple[Turn, Order | None]]:
    """Orders of rows or columns in which the numbers of the rows are B's."""
    seen = view.of(a)
    for across in (False, True):
        one, other = (seen.t(), b.t()) if across else (seen, b)
        if len(one) < 2 or (across and one.shape[1] == 1):
            continue
        if not _may_be_ordered(one, other):
            continue
        weight = _vector(one.shape[1])
        mine, theirs, offset = _numbers(one, weight), _numbers(other, weight), float(weight.sum())
        for found, order in _order(mine, theirs, offset, shapes):
            turn = Turn(view, shape, factor=found.factor, shift=found.shift)
            yield turn._replace(columns=order.rows) if across else turn._replace(rows=order.rows), order


def _may_be_ordered(one: Tensor, other: Tensor) -> bool:
    """Whether one column of each, sorted, is the same but for a factor or a sum: without, there is no order of the rows."""
    column = one.shape[1] // 2
    mine, theirs = one[:, column].double(), other[:, column].double()
    goal, allowed = theirs.sort().values, 1e-6 * float(theirs.abs().max())
    if float(mine.abs().max()) == 0.0 or float(goal[0]) == float(goal[-1]):
        # Such a column tells nothing.
        return True
    return any(
        bool((((mine * found.factor + found.shift).sort().values - goal).abs() <= allowed).all())
        for found in _sorted_fits(mine, goal, 1.0)
    )


def _order(mine: Tensor, theirs: Tensor, offset: float, shapes: Shapes) -> Iterator[tuple[Linear, Order]]:
    """Orders that turn A's number of each row into B's, by their names or as they were found."""
    goal = theirs.sort()
    for found in _sorted_fits(mine, goal.values, offset):
        made = mine * found.factor + found.shift * offset
        allowed = 1e-6 * float(theirs.abs().max())
        if not bool(((made.sort().values - goal.values).abs() <= allowed).all()):
            continue

        def fits(rows: Tensor, made: Tensor = made, allowed: float = allowed) -> bool:
            return bool(((made[rows] - theirs).abs() <= allowed).all())

        known = known_order(len(mine), shapes, fits)
        if known is not None:
            yield found, known
        rows = torch.empty_like(goal.indices)
        rows[goal.indices] = made.sort().indices
        yield found, named_order(rows, shapes)


def _sorted_fits(mine: Tensor, goal: Tensor, offset: float) -> Iterator[Linear]:
    """Factors and sums, of numbers in whatever order."""
    up = mine.sort().values
    yield from linear(up, goal, offset)
    norm = float(up.norm())
    if len(up) >= 4 and norm > 0.0:
        down = up.flip(0)
        yield from (found for found in linear(down, goal, offset) if found.factor < 0)


def _vector(length: int) -> Tensor:
    """Numbers between a half and one and a half that no two columns share."""
    return 0.5 + (torch.arange(1, length + 1, dtype=torch.float64) * 0.6180339887498949) % 1.0


def _numbers(x: Tensor, weight: Tensor) -> Tensor:
    """One number a row (R,), from a matrix (R,C) and a vector (C,), in float64; read as it lies in memory."""
    if x.stride(0) < x.stride(1):
        step = max(1, PIECE // max(1, x.shape[0]))
        pieces = zip(torch.split(x.t(), step), torch.split(weight, step), strict=True)
        return torch.stack([part @ piece.double() for piece, part in pieces]).sum(0)
    return torch.cat([piece.double() @ weight for piece in torch.split(x, max(1, PIECE // max(1, x.shape[1])))])


def row_numbers(x: Tensor) -> Tensor:
    """One number for each row of a matrix (R,C), by which the same row is found again elsewhere."""
    return _numbers(x.detach(), _vector(x.shape[1]))


def _constant(one: Tensor, value: float, shape: tuple[int, ...]) -> Relation:
    """B's are one number everywhere."""
    if value == 0.0:
        return Relation("weights.zero", say("weights.zero"), lambda x: x.new_zeros(shape))
    text = say("weights.constant", number=f"{value:.6g}", low=f"{float(one.min()):.4g}", high=f"{float(one.max()):.4g}")
    return Relation("weights.constant", text, lambda x: x.new_full(shape, value))


def _cropped(a: Tensor, b: Tensor) -> Relation | None:
    """B has some rows of A, one after the other, or A's and rows of zeros."""
    if a.dim() != b.dim() or a.shape[1:] != b.shape[1:] or min(a.numel(), b.numel()) < 4:
        return None
    common = torch.promote_types(a.dtype, b.dtype)
    long, short = (a, b) if len(a) > len(b) else (b, a)
    starts = _starts(long.to(common), short.to(common))
    if not starts:
        return None
    start, count, extra = starts[0], len(short), len(long) - len(short)
    if long is a:
        text = say("weights.cropped", first=start, last=start + count - 1, number=len(a))
        return Relation("weights.cropped", text, lambda x: x[start : start + count])
    rest = torch.cat([long[:start], long[start + count :]])
    empty = not bool(rest.any())
    key = say("weights.padded_zeros") if empty else say("weights.padded_other")
    text = say("weights.padded", start=start, number=extra, what=key)

    def padded(x: Tensor) -> Tensor:
        made = x.new_zeros(tuple(b.shape))
        made[start : start + count] = x
        return made

    return Relation("weights.padded", text, padded, empty)


def _starts(long: Tensor, short: Tensor) -> list[int]:
    """Rows of the longer from which on it is the shorter; the first few are tried, and the last."""
    extra = len(long) - len(short)
    places = [*range(min(extra, 8) + 1), *([extra] if extra > 8 else [])]
    return [place for place in places if near(long[place : place + len(short)], short, 0.0)]


def _coarser(one: Tensor, other: Tensor) -> Relation | None:
    """One of two matrices of a shape is the other with less precision."""
    found = quantised(one, other)
    if found is not None:
        bits, group, quantise = found
        text = say("weights.quantised", bits=bits, group=group)
        return Relation("weights.quantised", text, quantise, False)
    number = few_numbers(one, other)
    if number is not None:
        return Relation("weights.quantised", say("weights.few_numbers", number=number), _same, False)
    kind = narrowest(other, one)
    if kind is not None and near(other.to(kind).to(one.dtype), one, 0.0):
        text = say("weights.rounded_a", kind=str(kind).removeprefix("torch."))
        return Relation("weights.rounded", text, _same, False)
    if near(one, other, SINGLE) and not near(one, other, EXACT):
        return Relation("weights.rounded", say("weights.nearly", size=f"{SINGLE:.0e}"), _same, False)
    return None


def _same(x: Tensor) -> Tensor:
    return x
