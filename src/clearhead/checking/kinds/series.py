"""Sublayers one after another within one branch, with no skip around the first."""

from __future__ import annotations

from clearhead.checking.kinds.block_graph import Node
from clearhead.checking.kinds.block_ops import ADDED
from clearhead.checking.kinds.branches import Branch, Chain, after, bends, weighted
from clearhead.checking.kinds.formula_graph import PRODUCTS


def in_series(chain: Chain, branch: Branch) -> Node | None:
    """Where attention is followed by a second sublayer within one branch, nothing skipping the first."""
    reader = chain.reader
    for score in branch.scores:
        later = after(branch.inside, score)
        if _skipped(chain, branch, later):
            continue
        projected = [n for n in later if weighted(n, reader) and n.value.numel() >= branch.out.value.numel() / 2]
        for projection in projected or ([score] if score.name == "multi_head_attention_forward" else []):
            beyond = after(branch.inside, projection)
            if any(n.name in PRODUCTS[:-2] and not weighted(n, reader) and n.value.dim() >= 3 for n in beyond):
                continue  # What is projected are weights: their sum of values is still to come.
            if any(other in beyond for other in branch.scores):
                return score
            for bend in (n for n in beyond if bends(n, reader) and n.value.dim() >= 2 and not _normalises(chain, n)):
                if any(weighted(n, reader) for n in after(branch.inside, bend)):
                    return score
    return None


def _skipped(chain: Chain, branch: Branch, later: set[Node]) -> bool:
    """Whether what attention made is added, within its branch, to a projected stream that it did not make: a bottleneck has a stream of its own."""
    reader, places = chain.reader, branch.out.shape[:-1]
    for node in (n for n in later if n.name in ADDED and n.value.dim() == 3 and n.shape[:-1] == places):
        others = [p for p in node.parents if p not in later and reader.depends(p) and p.shape == node.shape]
        if any(weighted(term, reader) for other in others for term in reader.terms(other)):
            return True
    return False


def _normalises(chain: Chain, node: Node) -> bool:
    """Whether an operation belongs to a norm."""
    return chain.reader.normed(node) is not None or node.shape[-1:] == (1,)
