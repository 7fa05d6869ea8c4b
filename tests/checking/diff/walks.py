"""Walks of small models, opened once."""

from __future__ import annotations

from functools import cache
from typing import Any

from torch import nn

from clearhead.checking.diff.align import aligned, parting
from clearhead.checking.diff.code import CodeSide, open_code
from clearhead.checking.diff.formulas import formula_reasons
from clearhead.checking.diff.inputs import inputs_for
from clearhead.checking.diff.report import Pair, Reason
from clearhead.checking.diff.side import Given, Tuned, Walk
from clearhead.checking.settings import Settings
from clearhead.checking.target import target_of
from tests.checking.diff.small_modules import gpt, other


def opened(module: nn.Module, **settings: Any) -> CodeSide:
    """A module as a side."""
    return open_code(target_of(module, type(module).__name__, Settings(**settings)), Settings(**settings))


@cache
def right() -> tuple[CodeSide, Given, Walk]:
    """The right model, what it is given, and its walk."""
    side = opened(gpt())
    given = inputs_for(side, side, Tuned())
    return side, given, side.run(given)


@cache
def other_right() -> CodeSide:
    """The same model by another hand."""
    return opened(other())


def walk_of(module: nn.Module) -> Walk:
    """The walk of a model with other habits, called as the right one is."""
    side, given, _ = right()
    opening = (side if type(module).__name__ == "Gpt" else other_right()).opened
    return CodeSide(target_of(module, "other", Settings()), opening).run(given)


def found(module: nn.Module, start: Walk | None = None) -> tuple[tuple[Pair, ...], Pair | None, tuple[Reason, ...]]:
    """The pairs of the right model and another one, where they part, and why."""
    one, second = start or right()[2], walk_of(module)
    pairs = aligned(one, second)
    first = parting(pairs)
    return pairs, first, formula_reasons(one, second, first) if first else ()
