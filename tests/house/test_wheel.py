"""The wheel is built, put into an environment of its own, and trains and writes there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.house.source import PACKAGE, ROOT, files

TINY = ["--model.layers", "1", "--model.heads", "2", "--model.width", "16", "--model.context", "32", "--batch", "4"]


def run(*command: str | Path, folder: Path) -> str:
    """What a command prints; its errors are the test's."""
    environment = {
        name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    }
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=environment | {"PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the source, so that nothing lies about in the repository; no network is asked."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", copy / "dist", folder=copy)
    return next((copy / "dist").glob("clearhead-*-py3-none-any.whl"))


@pytest.fixture(scope="module")
def commands(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of an empty environment in which the wheel alone is installed.

    Its dependencies are those of the tests' environment, behind it on the path. Only the folder itself is added: an
    editable clearhead there is found through a .pth file, and such a file counts in an environment's own folder alone.
    """
    home = tmp_path_factory.mktemp("empty") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", home, folder=home.parent)
    paths = sysconfig.get_paths(vars={"base": str(home), "platbase": str(home)})
    pip = (sys.executable, "-m", "pip", "--python", Path(paths["scripts"], "python"), "--disable-pip-version-check")
    run(*pip, "install", "-q", "--no-deps", "--no-index", wheel, folder=home)
    shared = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    Path(paths["purelib"], "dependencies.pth").write_text("\n".join(sorted(shared)) + "\n", encoding="utf-8")
    return Path(paths["scripts"])


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    packaged = {name for name in names if ".dist-info/" not in name}
    assert packaged == {path.relative_to(PACKAGE.parent).as_posix() for path in files(PACKAGE)}
    assert "clearhead/py.typed" in packaged
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_it_comes_from_the_wheel(commands: Path, tmp_path: Path) -> None:
    where = run(commands / "python", "-c", "import clearhead; print(clearhead.__file__)", folder=tmp_path).strip()
    assert Path(where).resolve().is_relative_to(commands.parent.resolve())
    command = next(commands.glob("clearhead*")).read_bytes()
    assert str(commands).encode() in command, "the command is run by another environment's Python"


def test_it_trains_and_writes(commands: Path, tmp_path: Path) -> None:
    run(commands / "clearhead", "train", "--out", "runs/x", "--steps", "5", *TINY, folder=tmp_path)
    written = run(
        commands / "clearhead", "generate", "runs/x", "-p", "A", "--max-tokens", "9", "--seed", "1", folder=tmp_path
    )
    assert written.strip()
    assert "clearhead" in run(commands / "python", "-m", "clearhead", "--help", folder=tmp_path)
