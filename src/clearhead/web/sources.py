"""The line of clearhead's own source that computes a tensor, found where the tensor is shown to the tap."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from clearhead.layers.attention import MultiHeadAttention
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.attention import weigh

Function = Callable[..., Any]

ROOT = Path(__file__).parents[2]
"""The folder that the package is in."""


class Source(NamedTuple):
    """A statement."""

    file: str
    """From the package on: "clearhead/layers/attention.py"."""
    line: int
    """Its first line, counted from 1."""
    text: str
    """As it stands there, without what it is indented by."""


def source_of(model: nn.Module, name: str) -> Source | None:
    """The statement that makes a tensor; None where no source is at hand.

    Of scores and weights it is the definition, whichever kernel ran.

    Args:
        model: whose forward it was.
        name: of the tensor.
    """
    stack, own = model, name
    if isinstance(model, EncoderDecoder):
        part, _, own = name.partition(".")
        stack = model.encoder if part == "encoder" else model.decoder
    if not isinstance(stack, Decoder | Encoder):
        return None
    function = _function(stack, own)
    return None if function is None else _statements(function).get(own.rpartition(".")[2])


def _function(stack: Decoder | Encoder, name: str) -> Function | None:
    """Who shows the tensor: the name without `encoder.` or `decoder.`."""
    function: Function | None = None
    match name.split("."):
        case ["blocks", index, *rest]:
            function = _of_block(stack.blocks[int(index)], rest)
        case ["head", _]:
            function = _forward(stack.head)
        case ["logits"]:
            function = type(stack).forward
        case ["positions" | "segments" as part]:
            function = _forward(getattr(stack, part))
        case [_]:
            function = type(stack).features
    return function


def _of_block(block: nn.Module, name: list[str]) -> Function | None:
    function: Function | None = None
    match name:
        case [_]:
            function = _forward(block)
        case [_, "scores" | "weights"]:
            function = weigh
        case ["attention" | "cross_attention", "mixed" | "output"]:
            function = MultiHeadAttention._mixed
        case ["cross_attention", "q"]:
            function = MultiHeadAttention.across
        case ["cross_attention", _]:
            function = MultiHeadAttention.keys_values
        case [branch, _]:
            function = _forward(getattr(block, branch))
    return function


def _forward(module: nn.Module) -> Function:
    found: Function = type(module).forward
    return found


@cache
def _statements(function: Function) -> dict[str, Source]:
    """The statement behind each name that a function shows to its tap."""
    try:
        lines, first = inspect.getsourcelines(function)
        path = Path(inspect.getsourcefile(function) or "")
    except (OSError, TypeError):
        return {}
    file = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    found: dict[str, Source] = {}
    tree = ast.parse(textwrap.dedent("".join(lines)))
    plain = [each for each in ast.walk(tree) if isinstance(each, ast.stmt) and not hasattr(each, "body")]
    for statement in plain:
        for name, shown in _shown(statement):
            made = _made_before(statement, shown, plain)
            text = "".join(lines[made.lineno - 1 : made.end_lineno])
            found.setdefault(name, Source(file, first + made.lineno - 1, textwrap.dedent(text).rstrip()))
    return found


def _shown(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement shows to `tap`, and what it shows."""
    for call in ast.walk(statement):
        match call:
            case ast.Call(func=ast.Name(id="tap"), args=[ast.Constant(value=str(name)), shown]):
                yield name, shown


def _made_before(statement: ast.stmt, shown: ast.expr, statements: list[ast.stmt]) -> ast.stmt:
    """What computes it: the last statement before that assigns it, if all that is shown is a name; else the statement itself."""
    if not isinstance(shown, ast.Name):
        return statement
    before = [
        each
        for each in statements
        if isinstance(each, ast.Assign)
        and each.lineno < statement.lineno
        and any(isinstance(target, ast.Name) and target.id == shown.id for target in each.targets)
    ]
    return max(before, key=lambda each: each.lineno, default=statement)
