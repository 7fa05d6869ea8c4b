"""The formula of attention, followed operation by operation in a forward as it ran: what is computed where, and what it is called.

Behaviour decides elsewhere that something is wrong; here each stage of each attention that a forward has is held against the one
formula, softmax(q kᵀ / √d) v over the keys, with heads split, shared and merged position by position. Gradients between the recorded
tensors say which number came from which, whatever the layout or the spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.kinds.formula_graph import Graph, linked_to
from clearhead.checking.kinds.formula_rotary import ROUGH, Turns, turns
from clearhead.checking.kinds.formula_scaling import scaled
from clearhead.checking.kinds.formula_stages import Scene, fault, stages
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.scores import Core, cores
from clearhead.checking.kinds.sequence_case import SequenceCase, run_all
from clearhead.checking.report import Check, Fault
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.checking.watch import watched
from clearhead.messages import say

QUESTIONS = (
    "scale",
    "softmax.axis",
    "heads",
    "qkv.layout",
    "scores.key-reshaped",
    "projection.activation",
    "projection.output-missing",
    "score.dropout",
    "score.precision",
    "rotary",
)
LENGTHS = (7, 11, 5, 13)
MOST = 3
"""Attentions of one forward that are looked at: the first ones and the last."""


def formula(case: SequenceCase, settings: Settings) -> Found:
    """What the formula says of a module of sequences.

    Args:
        case: the module and how it is called.
        settings: what the user says of it.
    """
    del settings
    sizes = {case.width, *(case.width // h for h in (case.heads or 0, case.kv_heads or 0) if h)}
    length = case.length(next(n for n in LENGTHS if n not in sizes))
    module = case.case.ready()

    def call(x: Tensor) -> Any:
        return run_all(case, module, x)

    return formula_of_call(
        module, call, case.inputs(2, length, 5), width=case.width, whole=True, source=case.case.target.texts
    )


def formula_of_call(
    module: nn.Module | None,
    call: Callable[[Tensor], Any],
    x: Tensor,
    *,
    width: int,
    whole: bool = False,
    source: str = "",
) -> Found:
    """What the formula says of each attention that a call runs.

    Args:
        module: whose names and lines are told; in evaluation mode. It is run in training mode, too, and left as it was.
        call: runs it on an input of the shape of `x`.
        x: (B,T,D), or ids (B,T).
        width: D.
        whole: whether the call gives the attention's own output and nothing else, as opposed to a block's or a model's.
        source: the text of the code, in which words such as "muP" or "relative bias" are claims.
    """
    with Attempt() as attempt:
        graph = _watch(module, call, x)
        found = cores(graph, tuple(x.shape[1:2]))
        if not found:
            return _unseen(QUESTIONS, say("formula.no_core"))
        faults, unseen = _faults(graph, found, module, width=width, whole=whole, source=source)
        faults += _dropped(module, call, x, faults)
        rotary, seen = _rotary(module, call, x, source)
        return _told(len(found), [*faults, *rotary], unseen if seen else {*unseen, "rotary"})
    return _unseen(QUESTIONS, say("formula.failed", reason=attempt.reason))


def _watch(module: nn.Module | None, call: Callable[[Tensor], Any], x: Tensor) -> Graph:
    """The graph of one forward, with gradients."""
    fed = x.detach().clone()
    if fed.is_floating_point():
        fed.requires_grad_(True)
    if module is not None:
        module.requires_grad_(True)
    with torch.enable_grad(), Seeded():
        record = watched(module, lambda: call(fed), live=True)
    return Graph(record, [fed])


def _faults(
    graph: Graph, found: Sequence[Core], module: nn.Module | None, *, width: int, whole: bool, source: str
) -> tuple[list[Fault], set[str]]:
    """The faults of the attentions of a forward, and the questions that could not be answered."""
    faults: list[Fault] = []
    unseen: set[str] = set()
    contexts = tuple(core.context for core in found)
    chosen = [*found[: MOST - 1], found[-1]] if len(found) > MOST else found
    side = _side_by_side(found)
    for core in chosen:
        scene = Scene(graph, core, module, width, graph.inputs[0], whole, source, side, contexts)
        wrong, open_questions = stages(scene)
        scale, seen = ([], False) if "scale" in open_questions else scaled(scene, bool(wrong))
        faults += [*wrong, *scale]
        unseen |= {*open_questions, *(set() if seen else {"scale"})}
    return faults, unseen


def _side_by_side(found: Sequence[Core]) -> int:
    """How many attentions run beside the first one, itself among them: a list of heads."""
    first = found[0]
    return 1 + sum(not any(linked_to(core.q, [first.context])) for core in found[1:] if core.q.shape == first.q.shape)


def _dropped(module: nn.Module | None, call: Callable[[Tensor], Any], x: Tensor, known: Sequence[Fault]) -> list[Fault]:
    """Dropout between the scores and the softmax, in training mode."""
    if module is None or known:
        return []
    modes = {each: each.training for each in module.modules()}
    module.train()
    with Attempt() as attempt:
        graph = _watch(module, call, x)
        found = cores(graph, tuple(x.shape[1:2]))
    for each, mode in modes.items():
        each.training = mode
    if attempt.error is not None:
        return []
    return _between(graph, found[0]) if found else []


def _between(graph: Graph, core: Core) -> list[Fault]:
    """Dropout of the scores of one attention."""
    if core.pairs is None or core.scores is None:
        return []
    for index in range(core.start + 1, core.middle):
        op, made = graph.record.ops[index], graph.result(index)
        if "dropout" not in op.name or made is None or made.numel() != core.scores.numel():
            continue
        if any(linked_to(made, [core.pairs.out])):
            return [fault("score.dropout", say("formula.dropped", rate=op.argument(1, "p", 0.5)), op.where)]
    return []


def _rotary(
    module: nn.Module | None, call: Callable[[Tensor], Any], x: Tensor, source: str
) -> tuple[list[Fault], bool]:
    """What is wrong with rotary positions, told by a forward that has the same content at every position; whether it could be told."""
    same = x[:, :1].expand_as(x).clone()
    with Attempt():
        graph = _watch(module, call, same)
        core = cores(graph, tuple(x.shape[1:2]))[0]
        found = turns(graph, core)
        if found is None:
            return [], False
        return _turned(found, graph.record.ops[core.start].where, source), True
    return [], False


def _turned(found: Turns, where: str, source: str) -> list[Fault]:
    faults = []
    if found.values and (found.queries or found.keys):
        faults.append(fault("rotary.values", say("formula.values_turned"), where))
    if found.heads:
        faults.append(fault("rotary.axis", say("formula.by_head"), where))
    elif found.queries != found.keys:
        turned, still = ("q", "k") if found.queries else ("k", "q")
        faults.append(fault("rotary.one-side", say("formula.one_side", turned=turned, still=still), where))
    elif found.queries and found.parted > ROUGH[0] and not _gridded(source):
        name = "rotary.low-precision" if found.parted < ROUGH[1] else "rotary.not-relative"
        faults.append(fault(name, say("formula.parted", parted=f"{found.parted:.2g}"), where, "consistent"))
    return faults


def _gridded(source: str) -> bool:
    """Whether positions are those of a grid, so that one distance is many."""
    return any(word in source.lower() for word in ("2d", "axial", "grid", "height"))


def _told(count: int, faults: Sequence[Fault], unseen: set[str]) -> Found:
    """The checks of all questions, with the faults."""
    checks = [Check(each.id, "fail", each.evidence, each.effect or 0.0) for each in faults]
    failed = {each.id.split(".")[0] for each in faults} | {each.id for each in faults}
    for question in QUESTIONS:
        if question in failed:
            continue
        if question in unseen:
            checks.append(Check(question, "skipped", say("formula.unseen")))
        else:
            checks.append(Check(question, "pass", say("formula.held", count=count)))
    return Found(tuple(checks), tuple(faults))


def _unseen(questions: Sequence[str], reason: str) -> Found:
    return Found(tuple(Check(question, "skipped", reason) for question in questions))
