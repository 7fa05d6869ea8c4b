"""A block: its residual equation, its norms, its feed-forward, and everything that is asked of attention."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.case import Inputs
from clearhead.checking.common.devices import devices
from clearhead.checking.common.modes import modes
from clearhead.checking.common.precision import precision
from clearhead.checking.common.rows import rows
from clearhead.checking.common.unused import unused
from clearhead.checking.common.weights import weights
from clearhead.checking.kinds import norm
from clearhead.checking.kinds.attention import asked, behaviour
from clearhead.checking.kinds.block_claims import texts_of
from clearhead.checking.kinds.block_found import Watched, asked_of, blocks_in
from clearhead.checking.kinds.block_graph import graphed
from clearhead.checking.kinds.block_memory import memory_masks
from clearhead.checking.kinds.formula import formula_of_call
from clearhead.checking.kinds.kind import Found, Kind
from clearhead.checking.kinds.masks_tried import masks_of
from clearhead.checking.kinds.seeing import ready
from clearhead.checking.kinds.sequence import SequenceCase, open_sequence, run, run_all, stream_of
from clearhead.checking.report import Fault
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.checking.target import Target, target_of

ROWS, LENGTH, MEMORY = 3, 7, 11
"""Sizes unlike each other and unlike the usual numbers of heads."""


def followed(case: SequenceCase, module: Any, memory: bool) -> Watched:
    """A forward of the case that was followed, gradients with it.

    Args:
        case: how the module is called.
        module: a copy of the target.
        memory: whether another sequence is given for keys and values.
    """
    length = case.length(LENGTH)
    if length in (case.heads, case.kv_heads) and case.fixed is None:
        length -= 2
    x = case.inputs(ROWS, length, 21)
    if x.is_floating_point():
        # Not a leaf, so that code may change it in place.
        x = x.requires_grad_().clone()
    inputs = {"x": x}
    if memory:
        drawn = torch.Generator().manual_seed(22)
        inputs["memory"] = torch.randn(ROWS, MEMORY, case.width, generator=drawn, dtype=torch.float64).to(x.dtype)
        inputs["memory"] = inputs["memory"].to(case.case.dtype).requires_grad_().clone()
    with Seeded(), torch.enable_grad():
        graph = graphed(module, inputs, lambda: run(case, module, x, memory=inputs.get("memory")))
    result: Tensor = graph.result
    # Keys that a projection makes fewer, and those of sinks, are not as many as the queries.
    made = graph.keys(length)
    keys = frozenset({length, MEMORY, *made}) if memory else frozenset({length, *made})
    return Watched(graph, graph.node(result), frozenset({"x"}), length, keys, case.ids)


def inside(case: SequenceCase, target: Target, *, several: bool) -> tuple[Found, Watched, list[Any], Any]:
    """What is asked of the blocks of a case; with the forward, the blocks and the module."""
    module = ready(case)
    # Keys and values from elsewhere only where they cannot be the stream itself.
    seen = None
    with Attempt():
        seen = followed(case, module, required_memory(case))
    seen = seen or followed(case, module, False)
    blocks = blocks_in(seen, module, whole=not several)
    return asked_of(blocks, target, seen, several=several), seen, blocks, module


def formulas(case: SequenceCase) -> Found:
    """What the formula of attention says of each attention inside."""
    module = ready(case)
    sizes = {case.width, *(case.width // h for h in (case.heads or 0, case.kv_heads or 0) if h)}
    length = case.length(next(n for n in (7, 11, 5, 13) if n not in sizes))

    def call(x: Tensor) -> Tensor:
        return run(case, module, x)

    x = case.inputs(2, length, 5)
    return formula_of_call(module, call, x, width=case.width, source=texts_of(case.case.target))


def inner_norms(target: Target, settings: Settings) -> Found:
    """What the kind `norm` says of the norms inside that are of the user's own making, one of each class."""
    made = target.make()
    named = made.named_modules() if isinstance(made, nn.Module) else ()
    own = {type(m): (n, m) for n, m in named if n and _own_norm(n, m)}
    faults: list[Fault] = []
    for name, module in own.values():
        with Attempt():
            inner = target_of(module, name, settings)
            found = norm.KIND.check(norm.KIND.open(inner, Settings(seed=settings.seed)), settings).faults
            faults += [replace(f, where=f.where or name) for f in found if f.id.startswith("norm.")]
    return Found(faults=tuple(faults))


def _own_norm(path: str, module: nn.Module) -> bool:
    kind = type(module)
    if re.match(r"no_?norm", kind.__name__, re.IGNORECASE):
        return False
    named = re.search(r"norm$|^(rms|layer|scale)_?norm", kind.__name__, re.IGNORECASE) is not None
    # A class may be called LN, and what it is is then said by the names of its instances.
    called = re.fullmatch(r"(\w*_)?(norm|ln)_?\d*(_?[a-z])?", path.rpartition(".")[2], re.IGNORECASE) is not None
    # What has no weights and no arithmetic of its own, as a class called Identity, is no norm by the place where it stands.
    called = called and re.search(r"identity|no_?op", kind.__name__, re.IGNORECASE) is None
    return (named or called) and kind.__module__.split(".")[0] != "torch" and not any(True for _ in module.children())


def common(case: SequenceCase, settings: Settings) -> Found:
    """What every kind of sequences is asked."""
    found = asked("norm.formula", lambda: inner_norms(case.case.target, settings))
    found += asked("scale.missing", lambda: formulas(case))
    found += asked("weights.zero", lambda: weights(case.case.target))
    found += asked("parameter.unused", lambda: unused(case.case))
    found += asked("batch.mixing", lambda: rows(case.case))
    found += asked("dropout.active-in-eval", lambda: modes(case.case))
    found += asked("device.hard-coded", lambda: devices(case.case))
    return found + asked("score.precision", lambda: precision(case.case, settings))


def _open(target: Target, settings: Settings) -> SequenceCase:
    case = open_sequence(target, settings)
    # The stream itself as memory would show what its own masks hide.
    apart = replace(case, style=replace(case.style, elsewhere=case.width))
    with Attempt() as attempt:
        run(apart, apart.case.ready(), apart.inputs(ROWS, apart.length(LENGTH)))
    if attempt.error or not required_memory(case):
        return case
    apart = opened_apart(apart)
    masks = masks_of(apart, settings) if settings.call is None else ()
    return replace(apart, takes_mask=masks[0] if masks else None, masks=masks)


def required_memory(case: SequenceCase) -> bool:
    """Whether keys and values have to come from elsewhere."""
    return any(role == "memory" and name not in case.style.by_name for name, role in case.style.roles)


def opened_apart(case: SequenceCase) -> SequenceCase:
    """The case whose plain runs, too, are those of its own style."""

    def runs(module: Any, given: Inputs) -> Tensor:
        kinds = (p.dtype for p in module.parameters() if p.is_floating_point()) if isinstance(module, nn.Module) else ()
        plain = replace(case, case=replace(case.case, dtype=next(iter(kinds), case.case.dtype)))
        return stream_of(plain, run_all(plain, module, given[0]), given[0])

    return replace(case, case=replace(case.case, run=runs))


def _check(case: SequenceCase, settings: Settings) -> Found:
    found = asked("residual.missing", lambda: inside(case, case.case.target, several=False)[0])
    seen = asked("causal.future-leak", lambda: behaviour(case, settings)[0])
    seen += asked("mask.ignored", lambda: memory_masks(case))
    return found + seen + common(case, settings)


KIND = Kind("block", _open, _check)
