"""Which words of the source an encoder-decoder looked at while it wrote: cross-attention, the mean of many heads or one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.messages import say
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.recompute import scores_of, weights_of
from clearhead.ops.softmax import at_least_float32
from clearhead.ops.tap import Ran
from clearhead.web.answer import Answer, as_json, packed
from clearhead.web.head import SIDE
from clearhead.web.place import number, parts_of
from clearhead.web.pooling import field_of, pooled, roots
from clearhead.web.session import RefusedError, Session
from clearhead.web.weighing import blocks_of, one_head, weighed, wide
from clearhead.web.writing import own_answer

PART = "decoder.cross_attention"


class Heads(NamedTuple):
    """Whose mean is shown.

    Args:
        layer: of the decoder; None for all.
        head: of the layer; None for all.
        ran: what each of these layers worked on.
    """

    layer: int | None
    head: int | None
    ran: list[Ran]


@torch.no_grad()
def answer(session: Session, query: Mapping[str, str]) -> Answer:
    """The mean of cross-attention over all layers and heads, over the heads of a layer, or one head: a row a token of the target.

        mean[t, s] = 1/n Σ weights[layer, head, t, s]

    Args:
        session: the forward of an encoder-decoder.
        query: `layer` and `head`; both, `layer` alone, or neither.

    Returns:
        Packed: `weights` as `roots` (target, source), both at most 512, by the largest of a field; of each row `largest`, the source token
        with the largest weight (-1 where it sees nothing), and `highest`, that weight. The header has `layer`, `head` (null for all),
        `queries`, `keys`, `pooled` and `most`.

    Raises:
        RefusedError: 400 if the model has no cross-attention, or no such layer or head.
    """
    heads = _heads(session, query)
    mean = mean_of(heads)
    queries, keys = mean.shape
    field = field_of(queries, SIDE), field_of(keys, SIDE)
    picture = pooled(mean[None], field)[0]
    most = float(picture.nan_to_num(0.0).amax())
    highest, largest = mean.max(-1)
    header = {**_whose(heads), "queries": queries, "keys": keys, "pooled": list(field), "most": most}
    numbers = {
        "weights": roots(picture, most),
        "largest": largest.masked_fill(highest == 0, -1).float(),
        "highest": highest.float(),
    }
    return packed(header, [(name, each.cpu().numpy()) for name, each in numbers.items()])


@torch.no_grad()
def row(session: Session, query: Mapping[str, str]) -> Answer:
    """One token of the target: how much it looks at each token of the source, and which head looks there most.

    Args:
        session: the forward of an encoder-decoder.
        query: `query`, and `layer` and `head` as in `answer`.

    Returns:
        Packed, a number a source token: `weights`, the mean; `highest`, the largest weight that a head of these gives it; `layers` and
        `heads`, whose that is.

    Raises:
        RefusedError: as `answer`, and 400 if there is no such token.
    """
    heads = _heads(session, query)
    queries = heads.ran[0].q.shape[-2]
    position = number(query, "query", queries)
    rows = torch.stack([_row(ran, heads.head, position) for ran in heads.ran])
    highest, place = rows.flatten(0, 1).max(0)
    count = rows.shape[1]
    header = {**_whose(heads), "query": position, "queries": queries, "keys": rows.shape[-1]}
    numbers = {
        "weights": rows.mean((0, 1)),
        "highest": highest,
        "layers": place.div(count, rounding_mode="floor") + (heads.layer or 0),
        "heads": place % count + (heads.head or 0),
    }
    return packed(header, [(name, each.float().cpu().numpy()) for name, each in numbers.items()])


def written(session: Session, query: Mapping[str, str]) -> Answer:
    """What the model answers to the source by itself, the most probable token each time.

    Args:
        session: the forward of an encoder-decoder.
        query: not read.

    Returns:
        JSON: `{target, ended}`; `ended` is whether it came to its end, and not to the end of the room that it has.

    Raises:
        RefusedError: 400 if the model writes no target.
    """
    if not isinstance(session.loaded.model, EncoderDecoder):
        raise RefusedError(400, say("alignment.one_text"))
    found = own_answer(session.loaded, session.text)
    return as_json({"target": found.text, "ended": found.finish_reason == "eos"})


def mean_of(heads: Heads) -> Tensor:
    """The mean of the heads' weights (T,S), in at least float32; no more than one layer's is held at a time.

    Args:
        heads: whose.
    """
    total: Tensor | None = None
    count = 0
    for ran in heads.ran:
        own = wide(ran) if heads.head is None else one_head(ran, heads.head)
        (number_of, queries), keys = own.q.shape[-3:-1], own.k.shape[-2]
        if total is None:
            total = torch.zeros(queries, keys, dtype=at_least_float32(own.q.dtype), device=own.q.device)
        for block, _, weights in weighed(own, blocks_of(own)):
            rows, some = slice(block.queries.start, block.queries.stop), slice(block.keys.start, block.keys.stop)
            total[rows, some] += weights.sum(0)
        count += number_of
    assert total is not None, "a decoder has layers"
    return total / count


def _row(ran: Ran, head: int | None, query: int) -> Tensor:
    """The weights of a query in each of these heads: (h,S)."""
    own = wide(ran) if head is None else one_head(ran, head)
    heads = range(own.q.shape[-3])
    scores = scores_of(own, heads, [query])
    return weights_of(own, scores, heads, [query])[0, :, 0]


def _whose(heads: Heads) -> dict[str, int | None]:
    """What a header says of them."""
    return {"layer": heads.layer, "head": heads.head}


def _heads(session: Session, query: Mapping[str, str]) -> Heads:
    layers = parts_of(session).get(PART)
    if layers is None:
        raise RefusedError(400, say("alignment.one_text"))
    if "layer" not in query and "head" in query:
        raise RefusedError(400, say("alignment.no_layer"))
    if "layer" not in query:
        return Heads(None, None, layers)
    layer = number(query, "layer", len(layers))
    head = number(query, "head", layers[layer].q.shape[-3]) if "head" in query else None
    return Heads(layer, head, [layers[layer]])
