"""The public names are a list, public_names.txt: a name that comes or goes shows in the diff of a file that people read.

After a change that is meant: .venv/bin/python -m tests.house.test_public_names --write
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

import clearhead
from tests.house.source import write_tree

LIST = Path(__file__).with_name("public_names.txt")
# Rooms that are typed, not imported.
NO_API = {"cli"}


def rooms(package: ModuleType) -> list[ModuleType]:
    """The package and its rooms, one level deep."""
    found = [info.name for info in pkgutil.iter_modules(package.__path__) if info.ispkg and info.name not in NO_API]
    return [package, *(importlib.import_module(f"{package.__name__}.{name}") for name in sorted(found))]


def names_of(module: ModuleType) -> list[str]:
    """What a room offers, by its whole name: its `__all__`, or without one what each of its files defines and does not hide."""
    offered: list[str] | None = getattr(module, "__all__", None)
    if offered is not None:
        return sorted(f"{module.__name__}.{name}" for name in offered)
    return [
        name
        for info in pkgutil.iter_modules(module.__path__)
        if info.name[0] != "_"
        for name in _defined_in(f"{module.__name__}.{info.name}")
    ]


def _defined_in(name: str) -> list[str]:
    """The classes and functions that stand in a file under a public name."""
    found = vars(importlib.import_module(name)).items()
    return sorted(
        f"{name}.{key}" for key, value in found if key[0] != "_" and getattr(value, "__module__", None) == name
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
    offered = names_of(module)
    assert len(set(offered)) == len(offered)


def test_a_planted_fault_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "from pathlib import Path\nX = 1\ndef seen(): ...\ndef _hidden(): ...\nclass Seen: ..."
    write_tree(tmp_path, {"planted_room/__init__.py": "", "planted_room/file.py": source})
    monkeypatch.syspath_prepend(tmp_path)
    planted = importlib.import_module("planted_room")
    assert names_of(planted) == ["planted_room.file.Seen", "planted_room.file.seen"]
    planted.__all__ = ["here", "gone"]
    planted.here = 1
    assert names_of(planted) == ["planted_room.gone", "planted_room.here"]
    assert missing_from(planted) == ["gone"]


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.house.test_public_names --write")
    LIST.write_text("".join(f"{name}\n" for name in public_names()), encoding="utf-8", newline="\n")
