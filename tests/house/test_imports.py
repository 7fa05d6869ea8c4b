"""Imports run one way: the source is read, and an arrow that runs back is found."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.source import PACKAGE, trees, write_tree

# room -> the rooms that it may import besides itself.
BASE = {"_lazy", "messages"}
OPS = BASE
LAYERS = OPS | {"ops"}
MODELS = LAYERS | {"layers"}
TEXT = BASE
FORMATS = MODELS | {"text", "models"}
GENERATION = FORMATS | {"formats"}
TRACING = FORMATS | {"formats"}
TRAINING = FORMATS | {"formats", "generation", "tracing"}
CHECKING = TRAINING | {"training"}
WEB = CHECKING
CLI = CHECKING | {"checking", "web"}
MAY_IMPORT: dict[str, set[str]] = {
    "_lazy": set(),
    "messages": {"_lazy"},
    "ops": OPS,
    "layers": LAYERS,
    "models": MODELS,
    "text": TEXT,
    "formats": FORMATS,
    "generation": GENERATION,
    "tracing": TRACING,
    "training": TRAINING,
    "checking": CHECKING,
    "web": WEB,
    "cli": CLI,
}
# Files beside the rooms that stand at the front door and may look into every room.
FRONT = {"__init__", "__main__", "api"}
NO_TORCH = re.compile(r"^(text|messages)/|^models/(choices|config|cost|explain|low_rank|presets)\.py$|^_lazy\.py$")


def arrows(path: str, tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The modules that a file names: by import, wherever it stands, or as a string that is a module's whole name."""
    package = ["clearhead", *path.split("/")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Constant) and re.fullmatch(r"clearhead(\.\w+)+|torch", str(node.value)):
            yield str(node.value), node.lineno


def fault_of(path: str, module: str) -> str | None:
    """What is wrong with the file at `path` importing `module`, if anything is."""
    if module == "clearhead.__version__":
        return None
    parts = module.split(".")
    if parts[0] == "torch" and NO_TORCH.search(path):
        return "imports torch"
    room = path.partition("/")[0].removesuffix(".py")
    if parts[0] != "clearhead" or room in FRONT:
        return None
    if room not in MAY_IMPORT:
        return f"{room} has no place in the house: give it one in {Path(__file__).name}"
    target = parts[1] if len(parts) > 1 else "__init__"
    if target == room or target in MAY_IMPORT[room]:
        return None
    return f"{room} may not import {target}" if target in MAY_IMPORT else f"imports the front door, {module}"


def faults(package: Path) -> list[str]:
    """Each arrow under a package that runs back."""
    return [
        f"{path}:{line}: {fault}"
        for path, tree in trees(package)
        for module, line in arrows(path, tree)
        if (fault := fault_of(path, module))
    ]


def test_no_arrow_runs_back() -> None:
    assert faults(PACKAGE) == []


def test_the_rooms_are_there() -> None:
    """The reading itself: nothing would be found in a folder that is not there."""
    read = {path for path, _ in trees(PACKAGE)}
    assert {"ops/attention.py", "layers/attention.py", "layers/block.py", "models/decoder.py"} <= read


@pytest.mark.parametrize(
    ("path", "source", "fault"),
    [
        ("ops/norm.py", "from clearhead.layers import LayerNorm", "ops may not import layers"),
        ("ops/norm.py", "from ..layers.norm import LayerNorm", "ops may not import layers"),
        ("layers/a/b.py", "from ... import models", "layers may not import models"),
        ("layers/norm.py", "def f():\n    import clearhead.models.config", "layers may not import models"),
        (
            "models/x.py",
            "import importlib\nimportlib.import_module('clearhead.training.fit')",
            "may not import training",
        ),
        ("generation/loop.py", "from clearhead.tracing import trace", "generation may not import tracing"),
        ("tracing/trace.py", "from clearhead import generation", "tracing may not import generation"),
        ("web/server.py", "import clearhead.checking", "web may not import checking"),
        ("text/files.py", "from clearhead.ops import softmax", "text may not import ops"),
        ("text/files.py", "def f():\n    import torch.utils.data", "imports torch"),
        ("text/files.py", "__import__('torch')", "imports torch"),
        ("models/config.py", "from torch import Tensor", "imports torch"),
        ("models/choices.py", "from torch import Tensor", "imports torch"),
        ("models/explain.py", "import torch", "imports torch"),
        ("messages/__init__.py", "from clearhead.text import read", "messages may not import text"),
        ("training/fit.py", "import clearhead as ch", "imports the front door"),
        ("training/fit.py", "from clearhead import generate", "imports the front door"),
        ("attic/box.py", "from clearhead.ops import softmax", "attic has no place"),
    ],
)
def test_a_planted_arrow_is_found(tmp_path: Path, path: str, source: str, fault: str) -> None:
    sound = "from clearhead import __version__\nfrom clearhead.web import server"
    found = faults(write_tree(tmp_path, {path: source, "cli/main.py": sound}))
    assert len(found) == 1
    assert fault in found[0]


def imported_by(*arguments: str) -> set[str]:
    """The modules that an interpreter of its own has imported when the command is done."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=True,
    )
    return {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


@pytest.mark.parametrize(
    "arguments",
    [
        ("-c", "import clearhead"),
        ("-c", "import clearhead.messages"),
        ("-c", "import clearhead.text"),
        ("-c", "import clearhead.models.config, clearhead.models.codec, clearhead.models.cost"),
        ("-c", "import clearhead.models.presets, clearhead.models.explain"),
        ("-m", "clearhead", "--help"),
    ],
    ids=lambda arguments: " ".join(arguments[1:]),
)
def test_torch_is_not_imported_before_it_must(arguments: tuple[str, ...]) -> None:
    imported = imported_by(*arguments)
    assert "clearhead" in imported
    assert "torch" not in imported


def test_torch_is_seen_where_it_is_imported() -> None:
    assert "torch" in imported_by("-c", "import clearhead.ops")
