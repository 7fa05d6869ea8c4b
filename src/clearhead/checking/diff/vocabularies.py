"""Two that know other numbers of ids: rows and columns of the ids that both know are compared, the others are said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from torch import Tensor

from clearhead.checking.diff.copying import Fitted
from clearhead.checking.diff.report import Reason, TensorRow
from clearhead.checking.diff.side import Side, Walk
from clearhead.messages import say


class Common(NamedTuple):
    """Two walks that end in the logits of the ids that both know.

    Args:
        walks: of A and of B.
        reason: that one knows more ids; None if both know the same.
    """

    walks: tuple[Walk, Walk]
    reason: Reason | None = None


def common_ids(a: Side, b: Side, walks: tuple[Walk, Walk]) -> Common:
    """The walks, their logits without those of ids that one side alone knows."""
    sizes = a.vocab, b.vocab
    if None in sizes or sizes[0] == sizes[1] or not all(walk.stages for walk in walks):
        return Common(walks)
    shapes = [walk.stages[-1].value.shape for walk in walks]
    if any(not shape or shape[-1] != size for shape, size in zip(shapes, sizes, strict=True)):
        return Common(walks)
    least = min(size for size in sizes if size is not None)
    one, other = (_cropped(walk, least) for walk in walks)
    text = say("diff.ids_apart", a=sizes[0], b=sizes[1], least=least)
    id = "weights.cropped" if sizes[1] == least else "weights.padded"
    return Common((one, other), Reason(id, "consistent", one.stages[-1].name, text, float("inf"), 0.0))


def _cropped(walk: Walk, ids: int) -> Walk:
    last = walk.stages[-1]
    return replace(walk, stages=(*walk.stages[:-1], replace(last, value=last.value[..., :ids].clone())))


def with_common_rows(
    found: Fitted, giver: Side, own: Mapping[str, Tensor], vocabs: tuple[int | None, int | None]
) -> Fitted:
    """What is given, with the rows of the ids that both know of tables and heads.

    Args:
        found: what fits as it is.
        giver: whose weights are given.
        own: tensors of the taker by name.
        vocabs: how many ids the giver knows, and the taker.
    """
    theirs, mine = vocabs
    if theirs is None or mine is None or theirs == mine:
        return found
    used = {name for row in found.rows if row.b for name in row.a.split(", ")}
    tables = {name: each for name, each in giver.weights.items() if name not in used and each.shape[:1] == (theirs,)}
    tensors, rows = dict(found.tensors), list(found.rows)
    for name, tensor in own.items():
        if name in tensors or tensor.shape[:1] != (mine,):
            continue
        fitting = [key for key, each in tables.items() if each.shape[1:] == tensor.shape[1:]]
        if not fitting:
            continue
        key = name if name in fitting else fitting[0]
        made, least = tensor.detach().to(tables[key].dtype).clone(), min(theirs, mine)
        made[:least] = tables.pop(key)[:least]
        tensors[name] = made
        rows = [row for row in rows if (row.a, row.b) not in ((key, ""), ("", name))]
        rows.append(TensorRow(key, name, "related", *_told(theirs, mine)))
    return found._replace(tensors=tensors, rows=tuple(rows))


def _told(theirs: int, mine: int) -> tuple[str, str]:
    if mine < theirs:
        return say("weights.cropped", first=0, last=mine - 1, number=theirs), "weights.cropped"
    return say("weights.padded", start=0, number=mine - theirs, what=say("weights.padded_other")), "weights.padded"
