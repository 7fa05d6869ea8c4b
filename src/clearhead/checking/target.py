"""What is under check: found by its name, built, and copied as often as a check needs a fresh one."""

from __future__ import annotations

import ast
import copy
import inspect
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.constructing import constructed
from clearhead.checking.importing import imported, raised_at
from clearhead.checking.settings import Settings
from clearhead.checking.signatures import signature_of
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.messages import UserError, say


@dataclass(frozen=True)
class Target:
    """Somebody's code.

    Args:
        name: as the user called it.
        make: a fresh, equal copy at each call: a module in training mode with its author's weights, or a function.
        kind_of: the class or function itself, for its name, signature and source.
        values: what its constructor was given, by name, defaults among it.
    """

    name: str
    make: Callable[[], Any]
    kind_of: Any
    values: dict[str, Any]

    @cached_property
    def sample(self) -> Any:
        """One instance to look at; what is to run is made afresh."""
        return self.make()

    @property
    def is_module(self) -> bool:
        """Whether it is a module, not a function."""
        return isinstance(self.kind_of, type) and issubclass(self.kind_of, nn.Module)

    @cached_property
    def signature(self) -> inspect.Signature:
        """The parameters with which it is called, `self` left out; none that can be known gives an empty one."""
        called = self.kind_of.forward if self.is_module else self.kind_of
        if isinstance(self.kind_of, type) and not self.is_module:
            called = self.kind_of.__call__
        try:
            found = signature_of(called)
        except (TypeError, ValueError):
            return inspect.Signature()
        parameters = list(found.parameters.values())
        bound = isinstance(self.kind_of, type)
        return found.replace(parameters=parameters[1:] if bound else parameters)

    @cached_property
    def source(self) -> str:
        """The text of the class or function, with that of its own base classes; "" if there is none to read.

        Bases that an installed library shares among all its models say nothing of this one, and are long.
        """
        kinds = [self.kind_of] if not isinstance(self.kind_of, type) else list(self.kind_of.__mro__)
        home = getattr(self.kind_of, "__module__", "")
        texts: list[str] = []
        replaced: set[str] = set()
        for each in kinds:
            place = getattr(each, "__module__", "")
            if place.split(".")[0] in ("torch", "builtins") or (place != home and _installed(place)):
                continue
            try:
                text = inspect.getsource(each)
            except (OSError, TypeError):
                continue
            texts.append(without_methods(text, replaced))
            replaced |= {name for name, value in vars(each).items() if inspect.isfunction(value)} - {"__init__"}
        return "\n".join(texts)

    @cached_property
    def texts(self) -> str:
        """The source, and that of all parts of a module."""
        made = self.sample
        kinds = {type(m) for m in made.modules()} if isinstance(made, nn.Module) else set()
        texts = [self.source]
        for kind in sorted(kinds - {self.kind_of}, key=lambda k: k.__qualname__):
            if kind.__module__.split(".")[0] == "torch":
                continue
            try:
                texts.append(inspect.getsource(kind))
            except (OSError, TypeError):
                continue
        return "\n".join(texts)


def without_methods(text: str, names: set[str]) -> str:
    """The text of a class without the methods that a class derived from it has in their place: they are not run."""
    lines = text.splitlines()
    try:
        (found,) = ast.parse(textwrap.dedent(text)).body
    except (SyntaxError, ValueError):
        return text
    for node in found.body if isinstance(found, ast.ClassDef) else ():
        if isinstance(node, ast.FunctionDef) and node.name in names:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            lines[first - 1 : node.end_lineno] = [""] * (1 + (node.end_lineno or first) - first)
    return "\n".join(lines)


def resolve(name: str, settings: Settings) -> Target:
    """The target that `FILE.py:NAME` or `package.module:NAME` names, built.

    Args:
        name: NAME is a class, an instance, a function, or a factory: a function that needs no argument and gives any of these.
        settings: sizes and values for a constructor.

    Raises:
        UserError: if there is no such file, module or name, if importing it fails, or if a constructor cannot be given what it asks for.
    """
    return target_of(named(name), name, settings)


def named(name: str) -> Any:
    """What `FILE.py:NAME` or `package.module:NAME` names, as it stands there.

    Raises:
        UserError: if there is no such file, module or name, or if importing it fails.
    """
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise UserError(say("check.no_name", name=name))
    found: Any = imported(place)
    for part in attribute.split("."):
        if not hasattr(found, part):
            known = _own_names(found)
            raise UserError(say("check.no_attribute", place=place, name=part, known=known))
        found = getattr(found, part)
    return found


def caller(name: str) -> Callable[..., Any]:
    """The function that `FILE.py:NAME` names, by which a user runs their code: `call(module, input)`.

    Raises:
        UserError: as `named`, or if it is no function.
    """
    found = named(name)
    if not callable(found) or isinstance(found, type):
        raise UserError(say("check.no_call", name=name, found=type(found).__name__))
    return found  # type: ignore[no-any-return]


def target_of(found: Any, name: str, settings: Settings) -> Target:
    """The target of an object in hand.

    Args:
        found: a class, an instance, a function, or a factory.
        name: what it is called in the report.
        settings: sizes and values for a constructor.

    Raises:
        UserError: as `resolve`.
    """
    if isinstance(found, type):
        made, values = constructed(found, settings)
        return _of_instance(made, name, values, lambda: constructed(found, settings)[0])
    if isinstance(found, nn.Module):
        return _of_instance(found, name, {}, None)
    if not callable(found):
        raise UserError(say("check.not_callable", name=name, found=type(found).__name__))
    if _needs_nothing(found):
        # A factory; what it gives is looked at as if it had been named.
        return _of_factory(found, name, settings)
    if settings.values:
        raise UserError(say("check.values_of_function", name=name, parameter=min(settings.values)))
    kind_of = found if inspect.isroutine(found) else type(found)
    return Target(name, lambda: found, kind_of, {})


def _own_names(place: Any) -> str:
    """What a module or class holds of its own, the first names of it: what it has only imported is left out."""
    home = getattr(place, "__name__", "")
    held = vars(place).items()
    names = [key for key, value in held if getattr(value, "__module__", "") == home or isinstance(value, nn.Module)]
    shown = sorted(name for name in names if not name.startswith("_"))
    return ", ".join(shown[:12]) + (" ..." if len(shown) > 12 else "") if shown else "-"


def _of_factory(factory: Callable[[], Any], name: str, settings: Settings) -> Target:
    with Seeded(), Attempt() as attempt:
        made = factory()
    if attempt.error is not None:
        line = raised_at(attempt.error) or "-"
        raise UserError(say("check.factory_raises", name=name, reason=attempt.reason, line=line)) from attempt.error
    if isinstance(made, type) or (callable(made) and not isinstance(made, nn.Module)):
        return target_of(made, name, settings)
    return _of_instance(made, name, {}, factory)


def _of_instance(made: Any, name: str, values: dict[str, Any], again: Callable[[], Any] | None) -> Target:
    """A target whose copies are copies of one instance, or built again where that cannot be copied."""
    pristine = None if again is not None and _holds_itself(made) and _same_again(made, again) else _copy(made)

    def make() -> Any:
        if pristine is not None:
            return copy.deepcopy(pristine)
        if again is None:
            return made
        with Seeded():
            return again()

    return Target(name, make, type(made), values)


def _holds_itself(made: Any) -> bool:
    """Whether a function in it closes over a module or a tensor: a copy shares the function, and with it what is not the copy's."""
    parts = made.modules() if isinstance(made, nn.Module) else ()
    values = [value for part in parts for value in vars(part).values()]
    hooks = [hook for value in values if isinstance(value, dict) for hook in value.values()]
    cells = [cell for each in (*values, *hooks) if inspect.isfunction(each) for cell in each.__closure__ or ()]
    with Attempt():
        held = [cell.cell_contents for cell in cells]
        return any(isinstance(getattr(each, "__self__", each), nn.Module | Tensor) for each in held)
    return False


def _same_again(made: nn.Module, again: Callable[[], Any]) -> bool:
    """Whether it is made with the same numbers each time."""
    with Seeded(), Attempt():
        one, other = made.state_dict(), again().state_dict()
        return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
    return False


def _copy(made: Any) -> Any:
    """A copy, or None if there can be none."""
    with Attempt():
        return copy.deepcopy(made)
    return None


def _installed(place: str) -> bool:
    """Whether a module belongs to an installed library."""
    return "site-packages" in (getattr(sys.modules.get(place), "__file__", None) or "")


def _needs_nothing(function: Any) -> bool:
    """Whether a function can be called without an argument, and its name is not that of a formula."""
    inner = function.func if isinstance(function, partial) else function
    if not (inspect.isfunction(inner) or (inner is not function and isinstance(inner, type))):
        return False
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
