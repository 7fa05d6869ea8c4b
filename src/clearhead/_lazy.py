"""Names that are imported on first use (PEP 562), so that `import clearhead` does not wait for torch."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping


def lazily(module: str, sources: Mapping[str, str]) -> Callable[[str], object]:
    """A module's `__getattr__` that finds each name of `sources` in the module that holds it.

    Args:
        module: the name of the module that offers the names.
        sources: name -> the module that defines it.
    """

    def fetch(name: str) -> object:
        if name not in sources:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(importlib.import_module(sources[name]), name)

    return fetch
