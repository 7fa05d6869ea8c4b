"""Importing somebody's file or module: a file by itself, or as part of its package where it asks for its neighbours."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import sys
import zlib
from pathlib import Path
from types import ModuleType

from clearhead.checking.strangers import Attempt
from clearhead.messages import UserError, say

HOME = Path(__file__).resolve().parent.parent
RELATIVE = "relative import"
"""What Python says of an import with a dot in a file that is part of nothing."""


def imported(place: str) -> ModuleType:
    """The module of a file or of a dotted name.

    Args:
        place: "att.py", or "package.module".

    Raises:
        UserError: if there is no such file, importing it fails, or it has relative imports and is part of no package.
    """
    if not place.endswith(".py"):
        _look_in("")
        with Attempt() as attempt:
            return importlib.import_module(place)
        raise _failed(place, attempt)
    path = Path(place)
    if not path.is_file():
        raise UserError(say("check.no_file", path=path))
    # Its own folder is where it finds its neighbours, as when it is run.
    _look_in(str(path.resolve().parent))
    with Attempt() as attempt:
        # A name that no other module has: by its name a class is asked for its source, and two files may be called alike.
        return _loaded(path, f"{path.stem}_{_sum(path)}")
    if isinstance(attempt.error, ImportError) and RELATIVE in str(attempt.error):
        if not (path.resolve().parent / "__init__.py").is_file():
            raise UserError(say("check.import_relative", place=place)) from attempt.error
        with Attempt() as attempt:
            return _of_package(path)
    raise _failed(place, attempt)


def _of_package(path: Path) -> ModuleType:
    """A file by the dotted name that it has in its package; the package is imported first."""
    folders = [path.resolve().parent]
    while (folders[0].parent / "__init__.py").is_file():
        folders.insert(0, folders[0].parent)
    root = folders[0]
    first = sys.modules.get(root.name)
    # Two packages may be called alike, too: the second gets a name of its own.
    taken = first is not None and str(root) not in getattr(first, "__path__", ())
    name = f"{root.name}_{_sum(root)}" if taken else root.name
    if name not in sys.modules:
        _loaded(root / "__init__.py", name, root)
    words = [name, *(folder.name for folder in folders[1:])]
    return importlib.import_module(".".join(words if path.stem == "__init__" else [*words, path.stem]))


def _loaded(path: Path, name: str, folder: Path | None = None) -> ModuleType:
    """A file as a module of this name, a package if it has a folder."""
    places = None if folder is None else [str(folder)]
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=places)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    linecache.checkcache(str(path))
    spec.loader.exec_module(module)
    return module


def _sum(path: Path) -> str:
    return f"{zlib.crc32(str(path.resolve()).encode()):08x}"


def _look_in(folder: str) -> None:
    """Let imports look there first."""
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _failed(place: str, attempt: Attempt) -> UserError:
    failed = UserError(say("check.import_failed", place=place, reason=attempt.reason))
    failed.__cause__ = attempt.error
    return failed


def raised_at(error: BaseException) -> str:
    """The line of somebody's code that raised, "model.py:31": the last that is of no installed library; "" if there is none."""
    trace, found = error.__traceback__, ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "site-packages" not in name and HOME not in Path(name).parents and Path(name).is_file():
            found = f"{Path(name).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found
