"""Classes of other people's model files, by path, without running what else the files do."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType

DEFINITIONS = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef)


def definitions(path: Path, given: dict[str, object] | None = None) -> ModuleType:
    """The imports, classes and functions of a file, and its constants; a script's training is left out.

    Args:
        path: a Python file.
        given: names that the file computes from data, such as `vocab_size`.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kept = [node for node in tree.body if isinstance(node, DEFINITIONS) or _is_constant(node)]
    module = ModuleType(f"peer_{path.stem}")
    # A dataclass looks its own module up among the imported ones.
    sys.modules[module.__name__] = module
    exec(compile(ast.Module(kept, []), str(path), "exec"), module.__dict__)
    module.__dict__.update(given or {})
    return module


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
