"""The weights of a layer or a head, some queries at a time, so that no T×S matrix of all heads is ever held.

The definition is `ops.recompute`; a test holds the two to each other. What is gained here: nothing is computed for keys that no query of
the block may see, the softmax is one call, and all stays in the wider of float32 and the type of the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.ops.masks import Allowed
from clearhead.ops.softmax import at_least_float32
from clearhead.ops.tap import Ran

AT_ONCE = 2**19
"""How many weights are held at once, about: 2 MB in float32, which the caches of a processor hold."""


class Weighed(NamedTuple):
    """The weights of some queries over the keys that they may see."""

    queries: range
    keys: range
    """From the first that some query may see to the last; all others have the weight 0."""
    weights: Tensor
    """(h,t,s)."""


def wide(ran: Ran) -> Ran:
    """The same in the wider of float32 and its type: products of 16-bit numbers would be rounded to 16 bits, as no fused kernel does."""
    kind = at_least_float32(ran.q.dtype)
    bias = None if ran.bias is None else ran.bias.to(kind)
    return ran._replace(q=ran.q.to(kind), k=ran.k.to(kind), v=ran.v.to(kind), bias=bias)


def one_head(ran: Ran, head: int) -> Ran:
    """What a layer of this head alone would have worked on.

    Args:
        ran: what the layer worked on.
        head: which query head.
    """
    shared = head // (ran.q.shape[-3] // ran.k.shape[-3])
    return wide(
        ran._replace(
            mixed=ran.mixed[..., [head], :, :],
            q=ran.q[..., [head], :, :],
            k=ran.k[..., [shared], :, :],
            v=ran.v[..., [shared], :, :],
            bias=None if ran.bias is None else _of_head(ran.bias, head),
            visible=Allowed(_of_head(ran.visible.matrix(ran.q.device), head)),
            sinks=None if ran.sinks is None else ran.sinks[[head]],
        )
    )


def weighed(ran: Ran, field: tuple[int, int] = (1, 1)) -> Iterator[Weighed]:
    """The weights of all heads of the first row of the batch, block by block: each block's queries and keys begin at whole fields.

    Args:
        ran: what a kernel worked on, `wide`.
        field: how many queries and keys belong together.
    """
    q, k = ran.q[0], ran.k[0]
    (heads, queries, width), (groups, keys) = q.shape, k.shape[:2]
    scale = width**-0.5 if ran.scale is None else ran.scale
    q, turned = (q * scale).reshape(groups, heads // groups, queries, width), k.mT
    bias = None if ran.bias is None else first_row(ran.bias).expand(-1, queries, keys)
    seen = first_row(ran.visible.matrix(q.device)).expand(-1, queries, keys)
    step = max(AT_ONCE // (heads * keys) // field[0], 1) * field[0]
    for start in range(0, queries, step):
        rows = slice(start, min(start + step, queries))
        first, last = _span(seen[:, rows], field[1])
        some = slice(first, last)
        scores = (q[:, :, rows].reshape(groups, -1, width) @ turned[:, :, some]).reshape(heads, -1, last - first)
        if ran.cap is not None:
            scores = scores.div_(ran.cap).tanh_().mul_(ran.cap)
        if bias is not None:
            scores += bias[:, rows, some]
        yield Weighed(
            range(*rows.indices(queries)), range(first, last), _shared(scores, seen[:, rows, some], ran.sinks)
        )


def first_row(matrix: Tensor) -> Tensor:
    """What broadcasts to (B,H,T,S), of the first row of the batch: (H,T,S), axes of size 1 standing for all."""
    whole = matrix.reshape((1,) * (4 - matrix.dim()) + tuple(matrix.shape))
    return whole[0]


def _shared(scores: Tensor, seen: Tensor, sinks: Tensor | None) -> Tensor:
    """softmax of scores (h,t,s) that are written over; a query that sees nothing has zeros."""
    whole = bool(seen.all())
    if not whole:
        scores.masked_fill_(~seen, -torch.inf)
    weights = scores.softmax(-1)
    if sinks is not None:
        # exp(x) / (Σ exp + exp(sink)) is the softmax without the sink, times the part of the sum that the keys have.
        weights *= (scores.logsumexp(-1, keepdim=True) - sinks[:, None, None].to(scores.dtype)).sigmoid()
    if not whole and not (some := seen.any(-1, keepdim=True)).all():
        weights.masked_fill_(~some, 0.0)
    return weights


def _span(seen: Tensor, field: int) -> tuple[int, int]:
    """From the first key that a query sees, at the begin of its field, to behind the last; one key if they see nothing."""
    places = seen.flatten(0, 1).any(0).nonzero()
    if not len(places):
        return 0, 1
    return int(places[0]) // field * field, int(places[-1]) + 1


def _of_head(matrix: Tensor, head: int) -> Tensor:
    """One head of what broadcasts to (B,H,T,S)."""
    return matrix[..., [head], :, :] if matrix.dim() > 2 and matrix.shape[-3] > 1 else matrix
