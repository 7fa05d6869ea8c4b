"""Imports that a package asks for and that the class under check has no use for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class _Empty(ModuleType):
    """A module in which every name stands for nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


@contextmanager
def absent(*names: str) -> Iterator[None]:
    """While this lasts, these modules can be imported whether they are installed or not, and are empty."""
    kept = {name: sys.modules.pop(name, None) for name in names}
    sys.modules.update({name: _Empty(name) for name in names})
    try:
        yield
    finally:
        for name, module in kept.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module
