"""The blocks, attentions and norms inside a language model, asked what they are asked when they stand alone."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.checking.claims import size
from clearhead.checking.kinds.block import inner_norms
from clearhead.checking.kinds.block_found import Watched, asked_of, blocks_in
from clearhead.checking.kinds.block_graph import graphed
from clearhead.checking.kinds.formula import formula_of_call
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.lm_case import LmCase, logits_of
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Seeded

LENGTHS = (7, 11, 5, 13)


def attentions(case: LmCase, settings: Settings) -> Found:
    """What the formula of attention says of each attention of a forward."""
    module = case.case.ready()
    width = _width(case, settings)
    if width is None or case.last_only or case.call is not None or not isinstance(module, nn.Module):
        return Found()
    ids = case.ids(2, _length(case, settings), 5)

    def call(x: Tensor) -> Tensor:
        return logits_of(case, module, x)

    return formula_of_call(module, call, ids, width=width, source=case.case.target.texts)


def blocks(case: LmCase, settings: Settings) -> Found:
    """What is asked of the blocks: residuals, placement of norms, feed-forward."""
    module = case.case.ready()
    if case.last_only or case.call is not None or not isinstance(module, nn.Module):
        return Found()
    length = _length(case, settings)
    ids = case.ids(3, length, 21)
    with Seeded(), torch.enable_grad():
        graph = graphed(module, {"x": ids}, lambda: logits_of(case, module, ids))
    # Keys of memories and of sinks stand before those of the text: then there are more keys than queries.
    keys = graph.keys(length)
    seen = Watched(graph, graph.node(graph.result), frozenset({"x"}), length, frozenset({length, *keys}), True)
    return asked_of(blocks_in(seen, module, whole=False), case.case.target, seen, several=True)


def norms(case: LmCase, settings: Settings) -> Found:
    """What the kind `norm` says of the norms of the user's own making."""
    return inner_norms(case.case.target, settings)


def _width(case: LmCase, settings: Settings) -> int | None:
    """D: as said or stated, or of the embedding of ids."""
    made = case.case.target.make()
    tables = [m for m in made.modules() if isinstance(m, nn.Embedding)] if isinstance(made, nn.Module) else []
    found = [m.embedding_dim for m in tables if m.num_embeddings == case.vocab]
    return found[0] if found else size(case.case.target, settings, "width")


def _length(case: LmCase, settings: Settings) -> int:
    """A length unlike the width and the numbers of heads."""
    sizes = {size(case.case.target, settings, name) for name in ("width", "heads", "kv_heads", "head_width")}
    return case.length(next(n for n in LENGTHS if n not in sizes))
