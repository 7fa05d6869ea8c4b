"""Parts that a module has and does not register: not saved, not moved, not trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Check, Fault
from clearhead.checking.target import Target
from clearhead.messages import say

OWN = ("_parameters", "_buffers", "_modules")
DEPTH = 4
PLAIN = (str, bytes, int, float, type(None))


def registered(target: Target, made: nn.Module) -> Found:
    """Whether everything trainable that can be reached from the module is among its parameters.

    Args:
        target: the code under check.
        made: a copy of it.
    """
    known = {id(parameter) for parameter in made.parameters()}
    parts = {id(module) for module in made.modules()}
    lost = [
        (where, what)
        for where, what, closed in _reached(made)
        if not (_is_known(what, known, parts) or _is_original(what, made) or (closed and _is_equal(what, made)))
    ]
    if not lost:
        return Found((Check("parameter.unregistered", "pass", say("common.registered", count=len(known))),))
    where, what = lost[0]
    count = sum(value.numel() for value in what.parameters()) if isinstance(what, nn.Module) else what.numel()
    evidence = say("common.unregistered", where=where, what=type(what).__name__, count=count)
    fault = Fault("parameter.unregistered", "reproduced", evidence, where, say("common.fix_unregistered"))
    return Found((Check("parameter.unregistered", "fail", evidence, 1.0),), (fault,))


def _is_known(what: nn.Module | Tensor, known: set[int], parts: set[int]) -> bool:
    """Whether it is registered, or hidden on purpose because it does not train."""
    if isinstance(what, Tensor):
        return id(what) in known or not what.requires_grad or not what.is_leaf
    if id(what) in parts:
        return True
    return all(id(value) in known or not value.requires_grad for value in what.parameters())


def _is_original(what: nn.Module | Tensor, made: nn.Module) -> bool:
    """Whether it is what this copy was made of: a function that its parts hold is not copied, nor is the module it is bound to."""
    if type(what) is not type(made) or not isinstance(what, nn.Module):
        return False
    own, other = dict(made.named_parameters()), dict(what.named_parameters())
    return own.keys() == other.keys() and all(torch.equal(own[name], other[name]) for name in own)


def _is_equal(what: nn.Module | Tensor, made: nn.Module) -> bool:
    """Whether a part has the same numbers: what a function closes over is of the module that this copy was made of."""
    if isinstance(what, Tensor):
        return any(what.shape == each.shape and torch.equal(what, each) for each in made.parameters())
    return any(_is_original(what, part) for part in made.modules())


def _reached(made: nn.Module) -> Iterator[tuple[str, nn.Module | Tensor, bool]]:
    """Modules and tensors in plain attributes, lists, dictionaries, objects and closures of the module's parts; and whether a function closes over it."""
    seen: set[int] = set()
    for path, part in made.named_modules():
        for name, value in vars(part).items():
            if name not in OWN and not (name.startswith("_") and name in nn.Module().__dict__):
                yield from _within(f"{path}.{name}".strip("."), value, seen, DEPTH)


def _within(
    where: str, value: Any, seen: set[int], depth: int, *, closed: bool = False
) -> Iterator[tuple[str, nn.Module | Tensor, bool]]:
    if isinstance(value, nn.Module | Tensor):
        yield where, value, closed
        return
    if depth == 0 or id(value) in seen or isinstance(value, (*PLAIN, type, ModuleType)):
        return
    seen.add(id(value))
    inner: Mapping[Any, Any] = {}
    if isinstance(value, Mapping):
        inner = value
    elif isinstance(value, list | tuple | set | frozenset):
        inner = dict(enumerate(list(value)[:64]))
    elif callable(value) and getattr(value, "__closure__", None):
        closed = True
        names = value.__code__.co_freevars
        inner = {name: _content(cell) for name, cell in zip(names, value.__closure__, strict=True)}
    elif hasattr(value, "__dict__") and not callable(value):
        inner = vars(value)
    for key, each in list(inner.items()):
        inside = f"{where}.{key}" if isinstance(key, str) else f"{where}[{key}]"
        yield from _within(inside, each, seen, depth - 1, closed=closed)


def _content(cell: Any) -> Any:
    """What a closure holds; None if it is empty as yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
