"""Questions that need to see inside a language model's forward."""

from __future__ import annotations

import re

import torch
from torch import Tensor

from clearhead.checking.claims import says
from clearhead.checking.kinds.claimed import shuns_itself
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.lm_case import LmCase
from clearhead.checking.kinds.lm_finding import failed, passed, skipped
from clearhead.checking.kinds.lm_positions import declares_places
from clearhead.checking.kinds.lm_watch import ADDING, NORMS, Core, cores, maker_of, seen_by, tensor_arguments
from clearhead.checking.watch import Record
from clearhead.messages import say

LENGTH = 7
DENIED = ("nope", "no positional", "without position", "no position", "position-free")


def inside(case: LmCase) -> Found:
    """Masks, windows, positions and the last norm, as a watched forward shows them."""
    if case.last_only or case.call is not None:
        return Found()
    length = case.length(LENGTH)
    ids = case.ids(2, length)
    record = seen_by(case, ids)
    found = cores(record, length)
    out = _masks(case, found, length) + _windows(case, found, length)
    out += position_tables(case, record, ids)
    return out + final_norm(record)


def _masks(case: LmCase, found: list[Core], length: int) -> Found:
    """The triangle of each attention: with its diagonal, and made with -inf or a constant that nothing beats."""
    if not case.causal or not found:
        return Found()
    out = Found()
    for core in found:
        weights = core.weights.reshape(-1, length, length)
        own = weights.diagonal(dim1=1, dim2=2)[:, 1:]
        lower = weights.tril(-1)[:, 1:].sum(-1)
        if (own == 0).all() and (lower > 0).any() and not shuns_itself(case.case.target):
            out += failed("causal.self-masked", say("lm.self_masked", length=length), where=core.op.where)
            break
    for core in found:
        constant = _constant(core, length)
        if constant is not None and constant > -1e5:
            out += failed("causal.finite-mask", say("lm.finite", constant=f"{constant:.4g}"), where=core.op.where)
            break
        if constant is not None:
            out += Found(notes=(say("lm.finite_note", constant=f"{constant:.4g}", where=core.op.where),))
            break
    if not out.faults:
        out += passed("causal.self-masked", say("lm.masks_right", cores=len(found)))
    return out


def _constant(core: Core, length: int) -> float | None:
    """The finite constant of the hidden scores; None if they are -inf, or not told apart from the others."""
    if core.scores is None:
        return None
    above = core.scores.reshape(-1, length, length)[:, torch.ones(length, length, dtype=torch.bool).triu(1)]
    below = core.scores.reshape(-1, length, length)[:, torch.ones(length, length, dtype=torch.bool).tril()]
    if not torch.isfinite(above).all() or above.numel() == 0:
        return None
    highest, lowest = above.max().item(), below[torch.isfinite(below)].min().item()
    return highest if highest < -50 and highest < lowest - 50 else None


def _windows(case: LmCase, found: list[Core], length: int) -> Found:
    """A stated window against how many keys the last query of each attention sees."""
    if case.window is None or not found:
        return Found()
    if case.window + 1 >= length:
        return skipped("window.off-by-one", say("lm.window_wide", window=case.window, length=length))
    counts = [int((core.weights.reshape(-1, length, length)[:, -1] > 0).any(0).sum()) for core in found]
    wrong = [core for core, keys in zip(found, counts, strict=True) if keys not in (case.window, length)]
    if wrong or case.window not in counts:
        core = wrong[0] if wrong else found[0]
        keys = counts[found.index(core)]
        return failed("window.off-by-one", say("lm.window_wrong", window=case.window, found=keys), where=core.op.where)
    return passed("window.off-by-one", say("lm.window_right", window=case.window))


def position_tables(case: LmCase, record: Record, ids: Tensor) -> Found:
    """Whether vectors of positions are added to the stream more than once."""
    other = seen_by(case, (ids + 1) % case.vocab)
    if [op.name for op in record.ops] != [op.name for op in other.ops]:
        return Found()
    rows, length = ids.shape
    places = []
    for here, there in zip(record.ops, other.ops, strict=True):
        if here.name not in ADDING or not isinstance(here.result, Tensor) or here.result.shape[:-1] != (rows, length):
            continue
        for a, b in zip(tensor_arguments(here), tensor_arguments(there), strict=True):
            table = a.reshape(-1, a.shape[-1]) if a.dim() >= 2 else None
            # A bias of the scores, of one head, has as many columns as rows.
            wide = a.shape[-1] == here.result.shape[-1] != length
            if table is None or not wide or a.shape[-2] != length or a.dim() > 3:
                continue
            if torch.equal(a, b) and (table - table[:1]).abs().max() > 0 and not torch.equal(here.result, there.result):
                places.append(here)
    if len(places) < 2:
        return Found()
    where = places[1].where
    first = _same_table(places)
    return failed("position.every-block", say("lm.every_block", times=len(places), first=first), where=where)


def _same_table(places: list) -> str:  # type: ignore[type-arg]
    """The line of the first addition."""
    return str(places[0].where) or "?"


def final_norm(record: Record) -> Found:
    """Whether the head of a pre-norm stack reads a normalised stream."""
    head = next(
        (
            i
            for i in range(len(record.ops) - 1, -1, -1)
            if record.ops[i].name in ("linear", "matmul", "__matmul__", "einsum", "mm", "bmm")
        ),
        None,
    )
    normed = [op for op in record.ops if op.name in NORMS]
    runs = [
        ran
        for ran in record.runs
        if re.search(r"norm|(^|\.)ln", ran.module.split(".")[-1])
        and ran.inputs
        and ran.outputs
        # What gives back what it was given, such as nn.Identity, normalises nothing, whatever it is called.
        and not (ran.inputs[0].shape == ran.outputs[0].shape and torch.equal(ran.inputs[0], ran.outputs[0]))
    ]
    stream = next(iter(tensor_arguments(record.ops[head])), None) if head is not None else None
    if head is None or stream is None:
        return Found()
    inputs = [t for op in normed for t in tensor_arguments(op)[:1]] + [ran.inputs[0] for ran in runs]
    if not any(each.shape == stream.shape for each in inputs):
        return Found()
    maker = maker_of(record, stream, head)
    if maker is None or maker.name not in ADDING:
        return passed("norm.final-missing", say("lm.normed"))
    terms = [t for t in tensor_arguments(maker) if t.shape == stream.shape]
    if len(terms) != 2 or any(
        out.shape == stream.shape and torch.equal(out, stream) for ran in runs for out in ran.outputs
    ):
        return Found()
    if any(torch.equal(term, out) for ran in runs for term in terms for out in ran.outputs):
        return Found()
    return failed("norm.final-missing", say("lm.not_normed", where=maker.where), where=record.ops[head].where)


def order_matters(case: LmCase) -> Found:
    """Two tokens that are alike, at different places, must be told apart by what reads them."""
    if case.last_only or case.call is not None:
        return Found()
    length = case.length(8)
    pair = torch.tensor([1 % case.vocab, 2 % case.vocab])
    ids = pair.repeat(length)[:length].repeat(2, 1)
    record = seen_by(case, ids)
    attentions = cores(record, length)
    if not attentions:
        return skipped("position.unused", say("lm.no_cores"))
    weights = attentions[0].weights.reshape(-1, length, length)
    last = weights[:, -1]
    shown = last[0] > 0
    alike = max((_spread(last[:, place::2][:, shown[place::2]]) for place in (0, 1)), default=0.0)
    if alike > 1e-9:
        return passed("position.unused", say("lm.order_matters", apart=f"{alike:.1e}"), alike)
    # A causal model without positions is a known choice: only what has them, and does not use them, is wrong.
    if says(case.case.target, *DENIED) or (case.causal and not declares_places(case, record)):
        return Found(notes=(say("lm.nope"),))
    if int(shown.sum()) < 4 or _spread(last[:, shown]) < 1e-9:
        return skipped("position.unused", say("lm.uniform"))
    return failed(
        "position.unused", say("lm.order_unused", length=length, apart=f"{alike:.1e}"), where=attentions[0].op.where
    )


def _spread(weights: Tensor) -> float:
    """How far the weights of each row lie apart."""
    return (weights - weights[:, :1]).abs().max().item() if weights.numel() else 0.0
