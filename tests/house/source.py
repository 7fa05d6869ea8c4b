"""Where the source lies and how the house tests read it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "clearhead"
NOT_SOURCE = {"__pycache__", "build", "dist", "runs", "node_modules"}


def files(folder: Path, *suffixes: str) -> Iterator[Path]:
    """The files under a folder that were written by hand, in order; hidden folders and what tools make are left out."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if path.name not in NOT_SOURCE and not path.name.endswith(".egg-info") and _is_shown(path.name):
                yield from files(path, *suffixes)
        elif not suffixes or path.suffix in suffixes:
            yield path


def parse(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def trees(folder: Path) -> Iterator[tuple[str, ast.Module]]:
    """Each Python file under a folder: its path from there, with slashes, and its syntax tree."""
    for path in files(folder, ".py"):
        yield path.relative_to(folder).as_posix(), parse(path)


def write_tree(folder: Path, sources: dict[str, str]) -> Path:
    """Plants a source tree, path -> text, for the faults that a test must find."""
    for name, text in sources.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def _is_shown(name: str) -> bool:
    return not name.startswith(".") or name in {".ci", ".github"}
