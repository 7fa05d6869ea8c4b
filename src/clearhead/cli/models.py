"""`clearhead models`: the models that packages carry, which of them are installed, and how to get one."""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder

from jsonargparse import ArgumentParser

from clearhead.cli.options import parse, parser, tell
from clearhead.formats.packages import BUILT_IN, PACKAGES, built_in, lacks_extra, package_path, size_on_disk
from clearhead.messages import UserError, say

LICENCE = "Apache-2.0"
"""Of clearhead, and so of the model that comes with it."""

_UNREACHED = re.compile(
    r"connection|connect timeout|timed? ?out|getaddrinfo|name resolution|unreachable|proxy|from versions: none", re.I
)
"""What pip says where it reached no index, or one that is empty."""


def run(arguments: Sequence[str]) -> int:
    """List the models, or add the one that is named."""
    if arguments and arguments[0] == "add":
        return _add(parse(add_options(), arguments[1:]).name)
    if arguments and not arguments[0].startswith("-"):
        raise UserError(say("cli.models.unknown_action", action=arguments[0]))
    rows = [_own(), *(_row(name) for name in PACKAGES)]
    if parse(options(), arguments).json:
        print(json.dumps({"models": rows}, ensure_ascii=False))
    else:
        print("\n".join(_lines(row) for row in rows))
    return 0


def options() -> ArgumentParser:
    """The flags of `clearhead models`."""
    made = parser("models")
    made.description = say("cli.models.description", about=say("cli.models.about"))
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def add_options() -> ArgumentParser:
    """The flags of `clearhead models add`."""
    made = parser("models")
    made.prog, made.description = "clearhead models add", say("cli.models.add")
    made.add_argument("name", type=str, nargs="?", default=None, help=" or ".join(PACKAGES))
    return made


def _own() -> dict[str, object]:
    """The model that comes with clearhead itself, told as those of packages are."""
    path = built_in()
    return {
        "name": BUILT_IN,
        "title": say("cli.models.builtin.title"),
        "about": say("cli.models.builtin.about"),
        "kind": "decoder",
        "form": "safetensors",
        "licence": LICENCE,
        "distribution": "clearhead",
        "download": 0,
        "installed": path.is_dir(),
        "path": str(path) if path.is_dir() else None,
        "size": size_on_disk(path) if path.is_dir() else None,
        "lacks": None,
    }


def _row(name: str) -> dict[str, object]:
    """What is known of a model."""
    package, path = PACKAGES[name], package_path(name)
    return {
        "name": name,
        "title": package.title,
        "about": say(f"cli.models.{name}.about"),
        "kind": package.kind,
        "form": package.form,
        "licence": package.licence,
        "distribution": package.distribution,
        "download": package.download,
        "installed": path is not None,
        "path": None if path is None else str(path),
        "size": None if path is None else size_on_disk(path),
        "lacks": lacks_extra(name),
    }


def _lines(row: dict[str, object]) -> str:
    name, download = row["name"], _megabytes(row["download"])
    if name == BUILT_IN and row["installed"]:
        where = say("cli.models.own", name=name, path=row["path"], size=_megabytes(row["size"]))
    elif row["installed"]:
        where = say("cli.models.there", path=row["path"], size=_megabytes(row["size"]))
    elif name == BUILT_IN:
        where = say("explore.no_builtin", path=built_in())
    else:
        where = say("cli.models.not_there", name=name, size=download)
    facts = " · ".join(str(row[field]) for field in ("title", "kind", "form", "licence"))
    lines = [f"{name:<10}{row['about']}", facts, where]
    if row["installed"] and row["lacks"]:
        lines.append(say("cli.models.lacks", name=name, extra=row["lacks"]))
    return f"\n{'':<10}".join(lines)


def _megabytes(size: object) -> str:
    assert isinstance(size, int)
    return f"{size / 1e6:.0f} MB"


def _add(name: str | None) -> int:
    """Install the package of a model, without the packages that it names itself: those would bring another engine.

    Raises:
        UserError: if none is named, there is no such model, or pip does not install it.
    """
    known = ", ".join(PACKAGES)
    if not name:
        raise UserError(say("cli.models.unnamed", first=next(iter(PACKAGES)), known=known))
    if name == BUILT_IN:
        print(say("cli.models.own", name=name, path=built_in(), size=_megabytes(size_on_disk(built_in()))))
        return 0
    if name not in PACKAGES:
        near = difflib.get_close_matches(name, PACKAGES, 1) or [*PACKAGES][:1]
        raise UserError(say("cli.models.unknown", name=name, near=near[0], known=known))
    package = PACKAGES[name]
    path = package_path(name)
    if path is None:
        facts = f"{package.title} · {package.kind} · {package.form}"
        size, about = _megabytes(package.download), say(f"cli.models.{name}.about")
        tell(f"{name}: {about}", facts)
        tell(say("cli.models.adding", distribution=package.distribution, size=size, licence=package.licence))
        _install(name, package.distribution)
        path = package_path(name)
        if path is None:
            raise UserError(say("cli.models.elsewhere", distribution=package.distribution, python=sys.executable))
    print(say("cli.models.added", name=name, path=path, size=_megabytes(size_on_disk(path))))
    if extra := lacks_extra(name):
        tell(say("cli.models.lacks", name=name, extra=extra))
    return 0


def has_pip() -> bool:
    """Whether there is a pip to ask. Looked up past setuptools' own finder, which changes distutils for whoever asks for pip."""
    return PathFinder.find_spec("pip") is not None


def _install(name: str, distribution: str) -> None:
    """Let pip do it; what it says is seen while it works, but for the error that ours is made of.

    Raises:
        UserError: if there is no pip, or it fails.
    """
    if not has_pip():
        raise UserError(say("cli.models.no_pip", distribution=distribution))
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--disable-pip-version-check", distribution]
    said = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8", errors="replace") as pip:
        assert pip.stderr is not None
        for line in map(str.rstrip, pip.stderr):
            said.append(line)
            if line and not line.lower().startswith("error"):
                tell(line)
    if pip.returncode == 0:
        return
    errors = [line for line in said if line.lower().startswith("error")] or [line for line in said if line]
    reason = errors[-1] if errors else f"exit status {pip.returncode}"
    if any(_UNREACHED.search(line) for line in said):
        raise UserError(say("cli.models.no_network", name=name, distribution=distribution, reason=reason))
    raise UserError(say("cli.models.pip_failed", distribution=distribution, reason=reason))
