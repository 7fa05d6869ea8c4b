"""A module of a set: with a planted fault, or right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """One module of a set.

    Args:
        name: of the class, factory or function in its file.
        kind: as what it is checked.
        fault: the id of the planted fault; None if the module is right.
        also: other names that may come first: faults that cannot be told from it.
        options: what a user would have to say: {"vocab": 61}; empty where it must be found out.
        guess: whether the kind is to be guessed.
    """

    name: str
    kind: str
    fault: str | None = None
    also: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    guess: bool = False
