"""Parameters that never get a gradient, and one block that runs in place of several."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case
from clearhead.checking.claims import size
from clearhead.checking.common.chance import chances
from clearhead.checking.common.shared import claims_sharing
from clearhead.checking.common.trial import Trial, given, run, trial, with_zeros_filled
from clearhead.checking.common.unused_grown import first_of_growing
from clearhead.checking.common.unused_parts import unused_parts
from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Check, Fault
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.messages import say

SEEDS = (31, 32, 33)
CHOSEN = r"expert|moe|rout|branch_?\d"
"""Names of parts of which each input uses a few."""


def unused(case: Case) -> Found:
    """Whether each parameter gets a gradient from some input, and each layer that is claimed has weights of its own.

    A gradient that is zero but for rounding, as that of the bias of the keys, is one; only parameters with none at all, or with
    zeros from end to end for every input, are named. All weights are moved off zero first, so that a branch which starts as
    nothing hides none. What is called under some condition only (a memory, a target) is left alone.

    Args:
        case: how the code is run.
    """
    size_taken = trial(case)
    if size_taken is None or not case.target.is_module or not any(True for _ in case.ready().parameters()):
        return Found()
    module = with_zeros_filled(case.ready())
    with Attempt() as attempt:
        found = _parameters(case, size_taken, module)
        if not found.faults:
            found += unused_parts(case, size_taken, module, SEEDS)
        return found + _again(case, size_taken)
    return Found((Check("parameter.unused", "skipped", say("common.no_gradient", reason=attempt.reason)),))


def _parameters(case: Case, size_taken: Trial, module: nn.Module) -> Found:
    trained = {name: value for name, value in module.named_parameters() if value.requires_grad}
    reached: set[str] = set()
    for seed in SEEDS:
        reached |= _reached(case, size_taken, module, trained, seed)
    if not reached:
        return Found((Check("parameter.unused", "skipped", say("common.no_gradient", reason="no gradient")),))
    if not bool(run(case, module, given(case, *size_taken)).isfinite().all()):
        return Found((Check("parameter.unused", "skipped", say("common.no_gradient", reason="NaN")),))
    ran = _ran(case, size_taken, module)
    lost = [name for name in trained if name not in reached and _should_train(module, name, ran)]
    lost = [name for name in lost if not first_of_growing(module, name, reached)]
    asked = say("common.unused_asked", count=len(trained), inputs=len(SEEDS))
    if not lost:
        return Found((Check("parameter.unused", "pass", asked),))
    evidence = say("common.unused", names=", ".join(lost[:4]), count=len(lost), inputs=len(SEEDS))
    where = re.sub(r"\.(weight|bias)$", "", lost[0])
    fault = Fault("parameter.unused", "consistent", evidence, where, say("common.fix_unused"))
    return Found((Check("parameter.unused", "fail", evidence, float(len(lost))),), (fault,))


def _reached(case: Case, size_taken: Trial, module: nn.Module, trained: Mapping[str, Tensor], seed: int) -> set[str]:
    """The parameters that get a gradient other than zero."""
    whole: list[Tensor] = []
    handle = module.register_forward_hook(lambda _module, _args, found: whole.extend(_floats(found)))
    try:
        with Seeded(seed), torch.enable_grad():
            whole.append(run(case, module, given(case, *size_taken, seed)))
            drawn = torch.Generator().manual_seed(seed)
            parts = [each for each in whole if each.requires_grad]
            total = sum((_weighed(each, drawn) for each in parts), torch.zeros(()))
            gradients = torch.autograd.grad(total, list(trained.values()), allow_unused=True)
    finally:
        handle.remove()
    return {name for name, each in zip(trained, gradients, strict=True) if each is not None and bool((each != 0).any())}


def _weighed(found: Tensor, drawn: torch.Generator) -> Tensor:
    kept = torch.where(found.isfinite(), found, torch.zeros_like(found))
    return (kept * torch.randn(found.shape, generator=drawn, dtype=torch.float64).to(found.dtype)).sum()


def _floats(value: Any, depth: int = 0) -> Iterator[Tensor]:
    """All tensors of real numbers in what a module returned."""
    if isinstance(value, Tensor):
        if value.is_floating_point():
            yield value
    elif depth < 4 and not isinstance(value, str | bytes | nn.Module):
        inner = value if isinstance(value, list | tuple) else [*getattr(value, "__dict__", {}).values()]
        for each in value.values() if isinstance(value, Mapping) else inner:
            yield from _floats(each, depth + 1)


def _ran(case: Case, size_taken: Trial, module: nn.Module) -> set[str]:
    """The parameters that were used by some operation, and all those of parts that ran."""
    used: set[str] = set()
    handles = []
    for path, part in module.named_modules():
        if path and not any(True for _ in part.children()):
            own = {f"{path}.{name}" for name, _ in part.named_parameters(recurse=False)}
            handles.append(part.register_forward_hook(lambda *_, own=own: used.update(own)))
    try:
        with torch.no_grad(), Seeded(1):
            seen = chances(lambda: run(case, module, given(case, *size_taken)))
    finally:
        for handle in handles:
            handle.remove()
    return used | {name for name, value in module.named_parameters() if id(value) in seen.leaves}


def _should_train(module: nn.Module, name: str, ran: set[str]) -> bool:
    """Whether a parameter without gradient is a mistake: it was used, or no line of its owner ever uses it."""
    if re.search(CHOSEN, name, re.IGNORECASE):
        return False
    if name in ran:
        return True
    path = name.split(".")
    owner: Any = module
    for index, step in enumerate(path):
        known = _uses(owner, step)
        if known is False:
            return True
        if known is None:
            return False
        if index < len(path) - 1:
            owner = getattr(owner, step, None)
    return False


def _uses(owner: Any, attribute: str) -> bool | None:
    """Whether some method of a part other than its constructor names an attribute, or goes over all; None if that cannot be read."""
    if not isinstance(owner, nn.Module) or type(owner).__module__.startswith("torch"):
        return True
    texts = _methods(type(owner))
    if texts is None:
        return None
    text = "\n".join(texts)
    if not text:
        return None
    looped = re.search(r"children\(|modules\(|named_parameters\(|getattr\(|__dict__|_modules|vars\(|parameters\(", text)
    return looped is not None or re.search(rf"\b{re.escape(attribute)}\b", text) is not None


def _methods(owner: type) -> list[str] | None:
    """The texts of the methods of a class that may run, its constructor left out; None if one cannot be read."""
    texts: list[str] = []
    replaced: set[str] = set()
    for kind in owner.__mro__:
        if kind.__module__.startswith("torch") or kind is object:
            continue
        for name, method in vars(kind).items():
            function = getattr(method, "__func__", getattr(method, "fget", method))
            unread = name in replaced or name == "__init__" or re.search(r"init|reset", name)
            if unread or not inspect.isfunction(function):
                continue
            try:
                texts.append(inspect.getsource(function))
            except (OSError, TypeError):
                return None
            if "super(" not in texts[-1]:
                # What a derived class writes anew never runs as its parent wrote it.
                replaced.add(name)
    return texts


def _again(case: Case, size_taken: Trial) -> Found:
    """Whether one block runs as often as there should be blocks."""
    layers = size(case.target, Settings(), "layers")
    if layers is None or layers < 2 or claims_sharing(case.target):
        return Found()
    counts: dict[str, int] = {}
    module = case.ready()
    handles = [
        part.register_forward_hook(lambda *_, path=path: counts.update({path: counts.get(path, 0) + 1}))
        for path, part in module.named_modules()
        if not path or sum(parameter.dim() >= 2 for parameter in part.parameters()) >= 2
    ]
    try:
        with torch.no_grad(), Seeded(1):
            run(case, module, given(case, *size_taken))
    finally:
        for handle in handles:
            handle.remove()
    often = [path for path, count in counts.items() if path and count == layers]
    # Where one answer takes several calls of the whole, every block runs again.
    if not often or counts.get("", 1) > 1:
        return Found()
    evidence = say("common.block_again", block=often[-1], count=layers)
    fault = Fault("blocks.shared", "consistent", evidence, often[-1], say("common.fix_shared"))
    return Found((Check("blocks.shared", "fail", evidence, 1.0),), (fault,))
