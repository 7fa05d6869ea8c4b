"""A class of a published package, made small."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Subject:
    """What is checked of a package.

    Args:
        package: its name on the registry: "x-transformers".
        name: what of it, and with which options: "Attention, rotary_pos_emb".
        make: makes one, small; imports the package itself.
        kind: as what it is checked.
        options: what a user would have to say to `check`: {"vocab": 61, "call": ...}; empty where it is found out.
        confirmed: ids of faults that it has, each written up in docs/findings.md.
        blind: ids of planted faults that cannot show in it, with the reason: {"softmax.axis": "a linear attention has no softmax"}.
    """

    package: str
    name: str
    make: Callable[[], Any]
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    confirmed: tuple[str, ...] = ()
    blind: Mapping[str, str] = field(default_factory=dict)
