"""How to say in three lines how somebody's code is run, where that could not be found out."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Sequence

from clearhead.checking.target import Target

GIVEN = {
    "sdpa": ("q", "k", "v"),
    "loss": ("logits", "targets"),
    "sampler": ("logits",),
    "lm": ("ids",),
    "seq2seq": ("source", "target"),
}
"""What a function of the user's is given after the module, by the kind; x (B,T,D) of all others."""
MOST = 4
"""Tries that a message tells."""


def told(tried: Sequence[tuple[str, str]]) -> str:
    """What was tried, each reason of a kind once: of two number types or widths that fail alike the first is enough.

    Args:
        tried: the kind, and how it was called and what came of it.
    """
    first: dict[tuple[str, str], str] = {}
    for kind, line in tried:
        reason = re.split(r"torch\.\w+: ", line, maxsplit=1)[-1]
        first.setdefault((kind, reason), f"{kind}: {line}")
    return "; ".join([*first.values()][:MOST])


def wrapper(target: Target, kind: str) -> str:
    """The lines of a function that runs the target, with its own names of what it wants; what nobody can know stands as `...`.

    Args:
        target: what could not be called.
        kind: as what it is to be checked.
    """
    given = GIVEN.get(kind, ("x",))
    named = [p for p in target.signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    wanted = [_argument(p) for p in named[len(given) :] if p.default is p.empty]
    call = f"module({', '.join([*given, *wanted])}){'[0]' if _gives_several(target) else ''}"
    if kind == "seq2seq":
        return f"    def call(module, given):\n        {', '.join(given)} = given\n        return {call}"
    return f"    def call(module, {', '.join(given)}):\n        return {call}"


def _argument(parameter: inspect.Parameter) -> str:
    return "..." if parameter.kind is parameter.POSITIONAL_ONLY else f"{parameter.name}=..."


def _gives_several(target: Target) -> bool:
    """Whether what is called returns more than one thing somewhere, as far as its text can be read."""
    called = target.kind_of.forward if target.is_module else target.kind_of
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(called)))
    except (OSError, TypeError, SyntaxError):
        return False
    return any(isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) for node in ast.walk(tree))
