"""Comparing two of anything: sides are opened, given the same inputs, and walked until they part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from torch import nn

from clearhead.checking.diff.report import Difference
from clearhead.formats.load import Loaded


def diff(
    a: str | nn.Module | type | Callable[..., Any] | Loaded,
    b: str | nn.Module | type | Callable[..., Any] | Loaded,
    *,
    text: str | None = None,
    weights: Literal["own", "a"] | None = None,
    kind: str | None = None,
    values: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Difference:
    """Where two models first part, and why; `clearhead diff` runs it in a process of its own.

    Args:
        a: a MODEL (path, name, or loaded), or somebody's code: a module, a class, a factory, or its name "att.py:Attention".
        b: another one.
        text: a text that both read; random ids, or vectors, if None.
        weights: "own" to leave each its own weights, "a" to give B those of A; by default B gets A's if it is a class.
        kind: of code, as `check` takes it; guessed if None.
        values: arguments of constructors by name, where they have them.
        seed: of random inputs.

    Raises:
        UserError: if one of them cannot be opened or run, or the two do not take the same inputs.
    """
    raise NotImplementedError
