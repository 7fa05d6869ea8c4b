"""The parameters of functions that are not written in Python, as their documentation begins with them."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any


def signature_of(function: Any) -> inspect.Signature:
    """Its parameters; those of the first line of its docstring, `name(a, b=None)`, where Python knows none.

    Raises:
        ValueError: if nobody says what they are.
    """
    try:
        found = inspect.signature(function)
        return found if _named(found) else _inside(function) or found
    except (TypeError, ValueError):
        name = re.escape(getattr(function, "__name__", ""))
        said = re.match(rf"\s*{name}\(([^()]*)\)", getattr(function, "__doc__", None) or "") if name else None
        if said is None:
            raise ValueError(f"no signature found for {function!r}") from None
        return _read(said[1])


def _named(found: inspect.Signature) -> bool:
    """Whether a parameter is called by a name: a wrapper that hands on `*args, **kwargs` has none but `self`."""
    any_number = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    kinds = {parameter.kind for name, parameter in found.parameters.items() if name != "self"}
    return not kinds or not kinds <= {*any_number}


def _inside(function: Any, deep: int = 4) -> inspect.Signature | None:
    """The parameters of the function that a wrapper holds, which it was written around without `functools.wraps`; None if it holds none."""
    plain = inspect.unwrap(function)
    cells = getattr(plain, "__closure__", None) or getattr(getattr(plain, "__func__", None), "__closure__", None) or ()
    held = [cell.cell_contents for cell in cells if inspect.isfunction(cell.cell_contents)]
    if len(held) != 1 or not deep:
        return None
    found = inspect.signature(held[0])
    if not _named(found):
        return _inside(held[0], deep - 1)
    own = list(found.parameters.values())
    bound = inspect.ismethod(function) and own[0].name == "self"
    return found.replace(parameters=own[1:] if bound else own)


def _read(text: str) -> inspect.Signature:
    """The parameters of a text such as "a, b=None, *, c=1"."""
    try:
        node = ast.parse(f"(lambda {text}: 0)", mode="eval").body
    except SyntaxError:
        raise ValueError(text) from None
    assert isinstance(node, ast.Lambda)
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + list(given.defaults)
    either, named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    named_only = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    found = [inspect.Parameter(a.arg, either, default=_value(d)) for a, d in zip(plain, defaults, strict=True)]
    found += [inspect.Parameter(a.arg, named, default=_value(d)) for a, d in named_only]
    return inspect.Signature(found)


def _value(node: ast.expr | None) -> Any:
    if node is None:
        return inspect.Parameter.empty
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None
