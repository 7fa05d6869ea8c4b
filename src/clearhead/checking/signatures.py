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
        return inspect.signature(function)
    except (TypeError, ValueError):
        name = re.escape(getattr(function, "__name__", ""))
        said = re.match(rf"\s*{name}\(([^()]*)\)", getattr(function, "__doc__", None) or "") if name else None
        if said is None:
            raise ValueError(f"no signature found for {function!r}") from None
        return _read(said[1])


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
