"""Objects of a package that is imported only when they are made."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def given(place: str) -> Any:
    """What a package calls by a name: `given("rotary_embedding_torch:apply_rotary_emb")`."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def later(place: str, *positional: Any, **named: Any) -> Callable[[], Any]:
    """What makes an object of a package when it is called: `later("linformer:Linformer", 24, 16, depth=2)`; an argument made by `later` is made first."""

    def make() -> Any:
        values = {key: _value(each) for key, each in named.items()}
        return given(place)(*map(_value, positional), **values)

    return make


def _value(each: Any) -> Any:
    return each() if getattr(each, "__qualname__", "") == "later.<locals>.make" else each
