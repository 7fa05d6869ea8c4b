"""Imports that a package asks for and that the class under check has no use for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class _Names(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class Nothing(metaclass=_Names):
    """Stands for whatever is asked for; classes may inherit from it."""


class _Empty(ModuleType):
    """A module in which every name stands for nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing


@contextmanager
def absent(*names: str) -> Iterator[None]:
    """While this lasts, these modules can be imported whether they are installed or not, and are empty."""
    kept = {name: sys.modules.pop(name, None) for name in names}
    sys.modules.update({name: _Empty(name) for name in names})
    for name in names:
        outer, _, inner = name.rpartition(".")
        if outer in names:
            setattr(sys.modules[outer], inner, sys.modules[name])
    try:
        yield
    finally:
        for name, module in kept.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module
