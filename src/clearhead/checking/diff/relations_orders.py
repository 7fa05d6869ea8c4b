"""The orders in which rows may lie: q, k, v by part or by head, heads or features first, rotary features in pairs or halves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.messages import say

Fits = Callable[[Tensor], bool]
"""Whether A's rows, picked so, are B's."""


class Shapes(NamedTuple):
    """What is known of the sizes of a model; None where it is not, and all that divide are tried.

    Args:
        heads: H.
        kv_heads: K.
        head_width: d.
        width: D.
    """

    heads: int | None = None
    kv_heads: int | None = None
    head_width: int | None = None
    width: int | None = None


class Order(NamedTuple):
    """An order of rows that has a name.

    Args:
        id: "qkv.layout".
        text: how B holds what A holds.
        rows: which row of A's is each of B's.
    """

    id: str
    text: str
    rows: Tensor


def known_order(rows: int, shapes: Shapes, fits: Fits) -> Order | None:
    """The order with a name that fits.

    Args:
        rows: how many there are.
        shapes: what is known.
        fits: tells whether one does.
    """
    for search in (_parts, _by_head, _by_group, _pairs, _grouped):
        for order in search(rows, shapes, fits):
            return order
    return None


def named_order(rows: Tensor, shapes: Shapes) -> Order:
    """What can be said of an order that was found by the rows themselves: heads, one turned round, rolled, or any.

    Args:
        rows: which row of A's is each of B's.
        shapes: what is known.
    """
    number = len(rows)
    counted = torch.arange(number)
    if torch.equal(rows, counted.flip(0)):
        return Order("weights.flipped", say("weights.flipped"), rows)
    steps = torch.unique((counted - rows) % number)
    if len(steps) == 1:
        step = int(steps) if 2 * int(steps) <= number else int(steps) - number
        return Order("weights.rolled", say("weights.rolled", step=step), rows)
    for heads in _heads(number, shapes, smallest=2):
        blocks = rows.view(heads, -1)
        first = blocks[:, 0]
        if blocks.shape[1] > 1 and torch.equal(blocks, first[:, None] + torch.arange(blocks.shape[1])):
            order = (first // blocks.shape[1]).tolist()
            shown = ", ".join(map(str, order[:12])) + (" ..." if heads > 12 else "")
            return Order("heads.order", say("weights.heads_order", heads=heads, order=shown), rows)
    moved = int((rows != counted).sum())
    place = int((rows != counted).nonzero()[0]) if moved else 0
    text = say("weights.permuted", moved=moved, number=number, row=place, other=int(rows[place]))
    return Order("weights.permuted", text, rows)


def regrouped(groups: tuple[int, ...], axes: tuple[int, ...]) -> Tensor:
    """Rows seen as groups, with the axes in another order: which old row is each new one."""
    return torch.arange(torch.Size(groups).numel()).view(groups).permute(axes).reshape(-1)


def _parts(rows: int, shapes: Shapes, fits: Fits) -> Iterator[Order]:
    """q, k and v in another order, or two halves in each other's place."""
    sizes = [[rows // 3] * 3] if rows % 3 == 0 else []
    if shapes.heads and shapes.kv_heads and shapes.head_width and shapes.heads != shapes.kv_heads:
        query, key = shapes.heads * shapes.head_width, shapes.kv_heads * shapes.head_width
        sizes = [[query, key, key]] if rows == query + 2 * key else sizes
    for each in sizes:
        pieces = torch.split(torch.arange(rows), each)
        for order in permutations(range(3)):
            picked = torch.cat([pieces[place] for place in order])
            if order != (0, 1, 2) and fits(picked):
                named = ", ".join("qkv"[place] for place in order)
                yield Order("qkv.layout", say("weights.parts", order=named), picked)
    if rows % 2 == 0 and rows > 2:
        picked = torch.arange(rows).roll(rows // 2)
        if fits(picked):
            yield Order("weights.halves", say("weights.halves"), picked)


def _by_head(rows: int, shapes: Shapes, fits: Fits) -> Iterator[Order]:
    """q, k and v of a head side by side, against all q, all k, all v."""
    if rows % 3:
        return
    for heads in _heads(rows // 3, shapes, smallest=2):
        width = rows // 3 // heads
        picked = regrouped((3, heads, width), (1, 0, 2))
        if fits(picked):
            yield Order("qkv.layout", say("weights.by_head", heads=heads, width=width), picked)
        picked = regrouped((heads, 3, width), (1, 0, 2))
        if fits(picked):
            yield Order("qkv.layout", say("weights.by_part", heads=heads, width=width), picked)


def _by_group(rows: int, shapes: Shapes, fits: Fits) -> Iterator[Order]:
    """The queries of a group, their key and their value side by side, against all queries, all keys, all values."""
    heads, kv, width = shapes.heads, shapes.kv_heads, shapes.head_width
    if not heads or not kv or not width or heads % kv or rows != (heads + 2 * kv) * width:
        return
    query, key, value = torch.split(torch.arange(rows), [heads * width, kv * width, kv * width])
    groups = [query.view(kv, -1, width), key.view(kv, 1, width), value.view(kv, 1, width)]
    picked = torch.cat(groups, 1).reshape(-1)
    if fits(picked):
        yield Order("qkv.layout", say("weights.by_group", groups=kv, width=width), picked)
    back = torch.argsort(picked)
    if fits(back):
        yield Order("qkv.layout", say("weights.by_group_back", groups=kv, width=width), back)


def _pairs(rows: int, shapes: Shapes, fits: Fits) -> Iterator[Order]:
    """The features of a head that turn together: neighbours, or one in each half."""
    for heads, ends in _turning(rows, shapes):
        width = rows // ends // heads
        for turned in dict.fromkeys((width, width // 2, width // 4)):
            if turned < 4 or turned % 2:
                continue
            for groups in ((2, turned // 2), (turned // 2, 2)):
                inner = torch.arange(width)
                inner[:turned] = regrouped(groups, (1, 0))
                picked = (torch.arange(rows // ends).view(heads, width)[:, inner]).reshape(-1)
                # Of a fused projection values are not turned.
                whole = picked if ends == 1 else torch.cat([picked, picked + len(picked), _last(rows)])
                if fits(whole):
                    text = say(
                        "weights.pairs" if groups[0] == 2 else "weights.halves_turned",
                        width=width,
                        turned=turned,
                        half=turned // 2,
                    )
                    yield Order("rotary.pairing", text, whole)


def _last(rows: int) -> Tensor:
    return torch.arange(rows // 3 * 2, rows)


def _turning(rows: int, shapes: Shapes) -> Iterator[tuple[int, int]]:
    """How many heads the rows may be of, and into how many parts (one, or q, k and v) they fall."""
    for parts in (1, 3):
        if rows % parts == 0:
            for heads in _heads(rows // parts, shapes, smallest=1):
                yield heads, parts


def _grouped(rows: int, shapes: Shapes, fits: Fits) -> Iterator[Order]:
    """Rows counted through heads first, or through features first."""
    for heads, parts in _turning(rows, shapes):
        width = rows // parts // heads
        if heads == 1 or width == 1:
            continue
        for swapped in (False, True):
            groups = (parts, width, heads) if swapped else (parts, heads, width)
            picked = regrouped(groups, (0, 2, 1))
            if fits(picked):
                text = say("weights.heads_first" if swapped else "weights.features_first", heads=heads, width=width)
                yield Order("heads.grouping", text, picked)


def _heads(rows: int, shapes: Shapes, *, smallest: int) -> list[int]:
    """How many heads rows may be of: what is known first, then all that divide."""
    known = [each for each in (shapes.heads, shapes.kv_heads) if each and rows % each == 0]
    if shapes.head_width and rows % shapes.head_width == 0:
        known.append(rows // shapes.head_width)
    every = [each for each in range(1, min(rows, 512) + 1) if rows % each == 0]
    return [each for each in dict.fromkeys((*known, *every)) if smallest <= each < rows]
