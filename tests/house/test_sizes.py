"""What the source may not hold: long files, open signatures, globals, blanket excepts, words from elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.source import PACKAGE, ROOT, files, parse, write_tree

LONGEST = 300
CODE = (".py", ".js", ".css", ".html")
TEXT = (*CODE, ".md", ".toml", ".txt", ".yml", ".yaml", ".json", ".cfg", "")
# function -> why its signature is open.
OPEN_SIGNATURES = {
    "clearhead/messages/__init__.py: say": "a message names its fields; test_messages.py checks each call"
}
# Words that do not belong, put together here so that this file does not hold them.
FOREIGN_WORDS = ("sub" + "agent", ".." + "/shared", "/work" + "/main")
BLANKET = {"Exception", "BaseException"}


def long_files(folder: Path) -> list[str]:
    """The files of code with more lines than a reader should have to hold."""
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files(folder, *CODE)}
    return [f"{path.relative_to(folder).as_posix()}: {count} lines" for path, count in lines.items() if count > LONGEST]


def faults_of(tree: ast.Module) -> Iterator[str]:
    """What a syntax tree holds and may not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.args.kwarg:
            yield node.name
        elif isinstance(node, ast.Lambda) and node.args.kwarg:
            yield "lambda"
        elif isinstance(node, ast.Global):
            yield f"global {', '.join(node.names)}"
        elif isinstance(node, ast.ExceptHandler) and _names(node.type) & BLANKET:
            yield f"except {' or '.join(sorted(_names(node.type) & BLANKET))}"


def code_faults(source: Path) -> list[str]:
    """What the Python files under a folder hold and may not."""
    paths = {path.relative_to(source).as_posix(): path for path in files(source, ".py")}
    return [f"{name}: {fault}" for name, path in paths.items() for fault in faults_of(parse(path))]


def foreign_words(root: Path) -> list[str]:
    """Where a text holds a word that does not belong in it."""
    texts = {path: path.read_text(encoding="utf-8", errors="replace").lower() for path in files(root, *TEXT)}
    return [
        f"{path.relative_to(root).as_posix()}: {word}"
        for path, text in texts.items()
        for word in FOREIGN_WORDS
        if word in text
    ]


def _names(kind: ast.expr | None) -> set[str]:
    """The exceptions that a handler catches; a bare one catches all."""
    if kind is None:
        return {"BaseException"}
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return {getattr(each, "id", getattr(each, "attr", "")) for each in kinds}


@pytest.mark.parametrize("folder", ["src", "tests", "bench", "examples", "proofs"])
def test_no_file_is_too_long(folder: str) -> None:
    assert long_files(ROOT / folder) == []


def test_signatures_are_closed_and_excepts_say_what_they_expect() -> None:
    assert [fault for fault in code_faults(PACKAGE.parent) if fault not in OPEN_SIGNATURES] == []


def test_every_exception_to_the_rule_is_needed() -> None:
    assert set(OPEN_SIGNATURES) <= set(code_faults(PACKAGE.parent))


def test_no_word_from_elsewhere() -> None:
    assert foreign_words(ROOT) == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("def f(a, **options): ...", "a.py: f"),
        ("class A:\n    async def f(self, **options): ...", "a.py: f"),
        ("f = lambda **options: 0", "a.py: lambda"),
        ("def f():\n    global n, m\n    n = m = 1", "a.py: global n, m"),
        ("try:\n    f()\nexcept Exception:\n    pass", "a.py: except Exception"),
        ("try:\n    f()\nexcept (OSError, builtins.BaseException) as e:\n    raise", "a.py: except BaseException"),
        ("try:\n    f()\nexcept:\n    pass", "a.py: except BaseException"),
    ],
)
def test_a_planted_fault_is_found(tmp_path: Path, source: str, fault: str) -> None:
    sound = "def f(*a, b=1):\n    try:\n        f(**a)\n    except OSError:\n        pass"
    assert code_faults(write_tree(tmp_path, {"a.py": source, "b/sound.py": sound})) == [fault]


def test_a_planted_long_file_or_foreign_word_is_found(tmp_path: Path) -> None:
    write_tree(
        tmp_path, {"a.py": "x = 1\n" * LONGEST, "b/long.js": "x\n" * (LONGEST + 1), "c.md": f"see {FOREIGN_WORDS[1]}"}
    )
    assert long_files(tmp_path) == ["b/long.js: 301 lines"]
    assert foreign_words(tmp_path) == [f"c.md: {FOREIGN_WORDS[1]}"]
