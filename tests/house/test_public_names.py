"""The public names are a list, public_names.txt: a name that comes or goes shows in the diff of a file that people read.

After a change that is meant: python tests/house/test_public_names.py --write
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

import clearhead

LIST = Path(__file__).with_name("public_names.txt")
# Rooms that are typed, not imported.
NO_API = {"cli"}


def rooms(package: ModuleType) -> list[ModuleType]:
    """The package and its rooms, one level deep."""
    found = [info.name for info in pkgutil.iter_modules(package.__path__) if info.ispkg and info.name not in NO_API]
    return [package, *(importlib.import_module(f"{package.__name__}.{name}") for name in sorted(found))]


def names_of(module: ModuleType) -> list[str]:
    """What a module offers, by its whole name; a module that does not say so gets a line that says that."""
    offered: list[str] | None = getattr(module, "__all__", None)
    return (
        sorted(f"{module.__name__}.{name}" for name in offered)
        if offered is not None
        else [f"{module.__name__} has no __all__"]
    )


def public_names() -> list[str]:
    """Every public name there is."""
    return [name for module in rooms(clearhead) for name in names_of(module)]


def missing_from(module: ModuleType) -> list[str]:
    """The names that a module offers and does not have."""
    return [name for name in getattr(module, "__all__", []) if not hasattr(module, name)]


def test_the_public_names_are_those_of_the_list() -> None:
    assert public_names() == LIST.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("module", rooms(clearhead), ids=lambda module: module.__name__)
def test_every_public_name_is_there_once(module: ModuleType) -> None:
    assert missing_from(module) == []
    assert len(set(module.__all__)) == len(module.__all__)


def test_a_planted_fault_is_found() -> None:
    planted = ModuleType("planted")
    assert names_of(planted) == ["planted has no __all__"]
    planted.__all__ = ["here", "gone"]  # type: ignore[attr-defined]
    planted.here = 1  # type: ignore[attr-defined]
    assert names_of(planted) == ["planted.gone", "planted.here"]
    assert missing_from(planted) == ["gone"]


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(f"usage: python {sys.argv[0]} --write")
    LIST.write_text("".join(f"{name}\n" for name in public_names()), encoding="utf-8", newline="\n")
