"""Models in installed packages: found without importing anything of the package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from clearhead.formats.packages import PACKAGES, Package, lacks_extra, package_path, size_on_disk

TOY = Package("clearhead-toy", "clearhead_toy", "toy.gguf", "Toy", "decoder", "GGUF F32", "MIT", 1_000)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that fails when it is imported; it is not there yet."""
    monkeypatch.setitem(PACKAGES, "smollm2", TOY)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "clearhead_toy"


def test_what_is_not_installed(toy: Path) -> None:
    assert package_path("smollm2") is None
    toy.mkdir()
    (toy / "__init__.py").write_text("raise SystemExit('imported')")
    # The package without its model.
    assert package_path("smollm2") is None


def test_what_is_installed(toy: Path) -> None:
    assert package_path("smollm2") is None
    toy.mkdir()
    (toy / "__init__.py").write_text("raise SystemExit('imported')")
    (toy / "toy.gguf").write_bytes(b"GGUF")
    assert package_path("smollm2") == toy / "toy.gguf"
    assert "clearhead_toy" not in sys.modules


def test_a_folder_without_init(toy: Path) -> None:
    toy.mkdir()
    (toy / "toy.gguf").write_bytes(b"GGUF")
    assert package_path("smollm2") == toy / "toy.gguf"


def test_sizes(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/one").write_bytes(b"123")
    (tmp_path / "a/b/two").write_bytes(b"12345")
    assert (size_on_disk(tmp_path / "a/one"), size_on_disk(tmp_path / "a")) == (3, 8)


def test_the_extra_of_gguf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert [lacks_extra(name) for name in PACKAGES] == ["gguf", None]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    assert [lacks_extra(name) for name in PACKAGES] == [None, None]


@pytest.mark.parametrize("name", PACKAGES)
def test_the_real_ones_where_they_are_installed(name: str) -> None:
    path = package_path(name)
    if path is None:
        pytest.skip(f"{PACKAGES[name].distribution} is not installed")
    # A wheel is packed, and no smaller than a tenth of what is in it.
    assert PACKAGES[name].download < 2 * size_on_disk(path) < 20 * PACKAGES[name].download
