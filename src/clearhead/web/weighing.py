"""The weights of a layer or a head, some queries at a time, so that no T×S matrix of all heads is ever held.

The definition is `ops.recompute`; a test holds the two to each other. What is gained here: nothing is computed for keys that no query of
the block may see, the softmax is one call, and all stays in the wider of float32 and the type of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.ops.masks import Allowed
from clearhead.ops.softmax import at_least_float32
from clearhead.ops.tap import Ran

AT_ONCE = 2**19
"""How many weights are held at once, about: 2 MB in float32, which the caches of a processor hold."""


class Block(NamedTuple):
    """Some queries, and the keys that they may see."""

    queries: range
    keys: range
    """From the first that some of them may see, at the begin of a field, to the last; all others have the weight 0."""
    hidden: Tensor | None
    """Where a query may not look, (H,t,s) or (1,t,s); None if it may look everywhere."""
    clear: int
    """How many of the first keys every query may see: of a causal mask all but the last ones."""
    blind: Tensor | None
    """Which queries may look at nothing, (H,t,1) or (1,t,1); None if there is none."""


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


def blocks_of(ran: Ran, field: tuple[int, int] = (1, 1)) -> list[Block]:
    """In which blocks the weights are made, and what is hidden in each. Layers with the same mask and as many heads have the same.

    Args:
        ran: what a kernel worked on.
        field: how many queries and keys belong together; each block's queries and keys begin at whole fields.
    """
    (heads, queries), keys = ran.q.shape[-3:-1], ran.k.shape[-2]
    seen = first_row(ran.visible.matrix(ran.q.device)).expand(-1, queries, keys)
    step = max(AT_ONCE // (heads * keys) // field[0], 1) * field[0]
    return [_block(seen, range(start, min(start + step, queries)), field[1]) for start in range(0, queries, step)]


def _block(seen: Tensor, queries: range, field: int) -> Block:
    rows = seen[:, queries.start : queries.stop]
    places = rows.flatten(0, 1).any(0).nonzero()
    first, after = (int(places[0]) // field * field, int(places[-1]) + 1) if len(places) else (0, 1)
    rows = rows[..., first:after]
    if bool(rows.all()):
        return Block(queries, range(first, after), None, after - first, None)
    some, hidden = rows.any(-1, keepdim=True), ~rows
    clear = int(hidden.flatten(0, 1).any(0).nonzero()[0])
    return Block(queries, range(first, after), hidden, clear, None if bool(some.all()) else ~some)


def weighed(ran: Ran, blocks: Sequence[Block]) -> Iterator[tuple[Block, Tensor, Tensor]]:
    """Scores and weights (h,t,s) of all heads of the first row of the batch, block by block.

    Args:
        ran: what a kernel worked on, `wide`.
        blocks: its `blocks_of`.

    Yields:
        A block, its scores, a very low finite number where a query may not look, and its weights.
    """
    q, k = ran.q[0], ran.k[0]
    (heads, queries, width), (groups, keys) = q.shape, k.shape[:2]
    scale = width**-0.5 if ran.scale is None else ran.scale
    q, k = (q * scale).reshape(groups, heads // groups, queries, width), k.mT
    bias = None if ran.bias is None else first_row(ran.bias).expand(-1, queries, keys)
    for block in blocks:
        rows, some = slice(block.queries.start, block.queries.stop), slice(block.keys.start, block.keys.stop)
        # The heads that share keys stand below each other, as the queries of one product.
        scores = (q[:, :, rows].reshape(groups, -1, width) @ k[:, :, some]).reshape(heads, -1, len(block.keys))
        if ran.cap is not None:
            scores = scores.div_(ran.cap).tanh_().mul_(ran.cap)
        if bias is not None:
            scores += bias[:, rows, some]
        if block.hidden is not None:
            # Finite, so that a weight of 0 times its logarithm is 0; no score is as low.
            lowest = torch.finfo(scores.dtype).min / 4
            scores[..., block.clear :].masked_fill_(block.hidden[..., block.clear :], lowest)
        yield block, scores, _shared(scores, block, ran.sinks)


def entropies(scores: Tensor, weights: Tensor) -> Tensor:
    """-Σ p ln p of each row, p = w / Σ w: (h,t,s), (h,t,s) -> (h,t) in nats. A query that looks at nothing has 0.

    With m the largest score, -ln p = m - x - ln (largest p): one logarithm a row, none of a single weight, and no sum of large numbers.

    Args:
        scores: as `weighed` yields them.
        weights: the same.
    """
    total, largest = weights.sum(-1), weights.amax(-1)
    below = torch.linalg.vecdot(weights, scores - scores.amax(-1, keepdim=True))
    nothing = total == 0
    found: Tensor = (total / largest).log() - below / total
    return found.masked_fill_(nothing, 0.0)


def _shared(scores: Tensor, block: Block, sinks: Tensor | None) -> Tensor:
    """softmax of the scores; a query that sees nothing has zeros."""
    weights = scores.softmax(-1)
    if sinks is not None:
        # exp(x) / (Σ exp + exp(sink)) is the softmax without the sink, times the part of the sum that the keys have.
        weights *= (scores.logsumexp(-1, keepdim=True) - sinks[:, None, None].to(scores.dtype)).sigmoid()
    return weights if block.blind is None else weights.masked_fill_(block.blind, 0.0)


def first_row(matrix: Tensor) -> Tensor:
    """What broadcasts to (B,H,T,S), of the first row of the batch: (H,T,S), axes of size 1 standing for all."""
    whole = matrix.reshape((1,) * (4 - matrix.dim()) + tuple(matrix.shape))
    return whole[0]


def _of_head(matrix: Tensor, head: int) -> Tensor:
    """One head of what broadcasts to (B,H,T,S)."""
    return matrix[..., [head], :, :] if matrix.dim() > 2 and matrix.shape[-3] > 1 else matrix
