"""An encoder and a decoder as one: m(source, target) gives a vector or logits for each position of the target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from clearhead.checking.case import Inputs
from clearhead.checking.common.modes import modes
from clearhead.checking.common.precision import precision
from clearhead.checking.common.rows import rows
from clearhead.checking.common.unused import unused
from clearhead.checking.common.weights import weights
from clearhead.checking.kinds.attention import asked
from clearhead.checking.kinds.block_found import Watched, asked_of, blocks_in
from clearhead.checking.kinds.block_graph import graphed
from clearhead.checking.kinds.kind import Found, Kind
from clearhead.checking.kinds.seeing import moved, size_of
from clearhead.checking.kinds.seq2seq_opening import (
    ABOVE,
    LENGTH,
    ROWS,
    SOURCE,
    Pair,
    called,
    changed,
    open_pair,
    stream,
    triangle_of,
)
from clearhead.checking.report import Check, Fault
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.messages import say


@torch.no_grad()
def sight(pair: Pair) -> Found:
    """Whether the target sees its past and not its future, and the source from end to end."""
    case = pair.case
    module, (source, wanted) = case.ready(), case.inputs(ROWS, LENGTH, 4, case.dtype)
    with Seeded():
        base = case.run(module, (source, wanted))
        ahead, behind = 0.0, 0.0
        where = (0, 0)
        for position in range(1, LENGTH):
            out = moved(base, case.run(module, (source, changed(wanted, position)))).amax((0, 2)) / size_of(base)
            if float(out[:position].max()) > ahead:
                ahead, where = float(out[:position].max()), (int(out[:position].argmax()), position)
        first = moved(base, case.run(module, (source, changed(wanted, 0)))).amax((0, 2)) / size_of(base)
        behind = float(first[1:].max())
        unseen = [s for s in range(source.shape[1]) if _reach(pair, module, (source, wanted), s, base) <= ABOVE]
    found = tuple(_sighted(ahead, where, behind, pair))
    faults = [f for _, f in found if f is not None]
    checks = [c for c, _ in found]
    if len(unseen) == source.shape[1]:
        evidence = say("block.memory_unseen", length=source.shape[1])
        faults.append(Fault("parameter.unused", "consistent", evidence, "", say("block.fix_memory")))
        checks.append(Check("parameter.unused", "fail", evidence))
    return Found(tuple(checks), tuple(faults))


def _reach(pair: Pair, module: Any, given: Inputs, position: int, base: Tensor) -> float:
    out = pair.case.run(module, (changed(given[0], position), given[1]))
    return float(moved(base, out).max()) / size_of(base)


def _sighted(ahead: float, where: tuple[int, int], behind: float, pair: Pair) -> Iterator[tuple[Check, Fault | None]]:
    evidence = say("block.target_future", length=LENGTH, ahead=f"{ahead:.1e}", seen=where[0], later=where[1])
    above = ABOVE if pair.case.dtype == torch.float64 else 2e-5
    if max(ahead, behind) <= above:
        yield Check("causal.future-leak", "skipped", say("block.no_numbers")), None
        return
    if ahead > above:
        fault = Fault("causal.future-leak", "consistent", evidence, "", say("block.fix_future"), ahead)
        yield Check("causal.future-leak", "fail", evidence, ahead), fault
    else:
        yield Check("causal.future-leak", "pass", evidence, ahead), None
    past = say("block.target_past", length=LENGTH, behind=f"{behind:.1e}")
    if behind <= above:
        yield (
            Check("causal.past-lost", "fail", past),
            Fault("causal.past-lost", "consistent", past, "", say("block.fix_past")),
        )
    else:
        yield Check("causal.past-lost", "pass", past, behind), None


@torch.no_grad()
def padding(pair: Pair) -> Found:
    """Whether a source position that the mask hides has no influence; either polarity will do where none is known."""
    name, case = "mask.ignored", pair.case
    if not pair.mask:
        return Found((Check(name, "skipped", say("block.no_mask")),))
    module, given = case.ready(), case.inputs(ROWS, LENGTH, 6, case.dtype)
    tried: list[tuple[float, float]] = []
    for shaped in ("BS", "B1S", "B11S"):
        for keeps in (pair.keeps, not pair.keeps):
            with Attempt():
                tried.append(_hidden(pair, module, given, shaped, keeps))
    usable = [t for t in tried if t[1] > ABOVE]
    if not usable:
        return Found((Check(name, "skipped", say("block.no_mask")),))
    least = min(t[0] for t in usable)
    evidence = say("block.source_mask", mask=pair.mask, moved=f"{least:.1e}")
    if least <= ABOVE:
        return Found((Check(name, "pass", evidence, least),))
    return Found(
        (Check(name, "fail", evidence, least),),
        (Fault(name, "consistent", evidence, "", say("block.fix_mask"), least),),
    )


def _hidden(pair: Pair, module: Any, given: Inputs, shaped: str, keeps: bool) -> tuple[float, float]:
    """How far the output moves when a hidden position is changed, and when a kept one is."""
    source, wanted = given
    keep = torch.ones(source.shape[:2], dtype=torch.bool)
    keep[:, -2:] = False
    mask = keep if keeps else ~keep
    mask = {"BS": mask, "B1S": mask[:, None], "B11S": mask[:, None, None]}[shaped]

    def out(x: Tensor) -> Tensor:
        more = {pair.mask: mask, **({pair.pairs: triangle_of(pair.triangle, wanted)} if pair.triangle else {})}
        return stream(called(pair.case.target, module, (x, wanted), pair.batch_first, more), wanted, pair.batch_first)

    base = out(source)
    if base.shape[:2] != wanted.shape[:2] or not bool(base.isfinite().all()):
        return 0.0, 0.0
    hidden, kept = (float(moved(base, out(changed(source, at))).max()) / size_of(base) for at in (-1, 1))
    return hidden, kept


def blocks(pair: Pair) -> Found:
    """What is asked of the blocks of both sides."""
    case = pair.case
    module, given = case.ready(), case.inputs(ROWS, LENGTH, 8, case.dtype)
    if not pair.ids:
        given = tuple(each.requires_grad_().clone() for each in given)
    inputs = dict(zip(("source", "target"), given, strict=True))
    with Seeded(), torch.enable_grad():
        graph = graphed(module, inputs, lambda: case.run(module, given))
    found = Found()
    for name, length in (("source", SOURCE), ("target", LENGTH)):
        seen = Watched(
            graph, graph.node(graph.result), frozenset({name}), length, frozenset({LENGTH, SOURCE}), pair.ids
        )
        inner = [b for b in blocks_in(seen, module, whole=False) if b.module and b.chain.end.shape[1:2] == (length,)]
        if inner:
            found += asked_of(inner, case.target, seen, several=True)
    return found


def _check(pair: Pair, settings: Settings) -> Found:
    case = pair.case
    found = asked("weights.zero", lambda: weights(case.target))
    found += asked("causal.future-leak", lambda: sight(pair))
    found += asked("mask.ignored", lambda: padding(pair))
    found += asked("residual.missing", lambda: blocks(pair))
    found += asked("parameter.unused", lambda: unused(case))
    found += asked("batch.mixing", lambda: rows(case))
    found += asked("dropout.active-in-eval", lambda: modes(case))
    return found + asked("score.precision", lambda: precision(case, settings))


KIND = Kind("seq2seq", open_pair, _check)
