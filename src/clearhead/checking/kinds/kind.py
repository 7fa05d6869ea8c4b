"""What a kind of code is to the check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from clearhead.checking.report import Check, Fault, Sight
from clearhead.checking.settings import Settings
from clearhead.checking.target import Target


class NoInterfaceError(Exception):
    """The target could not be called as this kind is; `tried` says how, a line a try."""

    def __init__(self, tried: list[str]) -> None:
        super().__init__("; ".join(tried))
        self.tried = tried


class Found(NamedTuple):
    """What a kind, or one question of it, found."""

    checks: tuple[Check, ...] = ()
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    sight: Sight | None = None
    rounding: tuple[tuple[str, str, str, str], ...] = ()

    def __add__(self, other: object) -> Found:
        """Both, in their order."""
        assert isinstance(other, Found)
        return Found(
            self.checks + other.checks,
            self.faults + other.faults,
            self.notes + other.notes,
            self.sight or other.sight,
            self.rounding + other.rounding,
        )


class Kind(NamedTuple):
    """A kind of code."""

    name: str
    open: Callable[[Target, Settings], Any]
    """The target with a way to call it; raises `NoInterfaceError` with what was tried."""
    check: Callable[[Any, Settings], Found]
    """Everything that is asked of what `open` gave."""
