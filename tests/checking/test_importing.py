"""Files that ask for their neighbours, and factories that raise."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

from clearhead.checking.settings import Settings
from clearhead.checking.target import named, resolve, target_of
from clearhead.messages import UserError

CODE = """
from .helper import SIZE
from ..{root} import VALUE
from torch import nn

class R(nn.Linear):
    def __init__(self):
        super().__init__(SIZE, VALUE)
"""


def package(folder: Path, size: int) -> Path:
    """A package `outer_part` with a package in it, written down."""
    inner = folder / "outer_part" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / "__init__.py").write_text("VALUE = 7\n")
    (inner / "__init__.py").write_text("")
    (inner / "helper.py").write_text(f"SIZE = {size}\n")
    (inner / "rel.py").write_text(CODE.format(root="__init__").replace("..__init__", ".."))
    return inner / "rel.py"


def test_a_file_of_a_package_finds_its_neighbours_and_two_packages_of_a_name_stay_two(tmp_path: Path) -> None:
    for folder, size in (("one", 5), ("two", 6), ("one", 5)):
        path = tmp_path / folder / "outer_part" / "inner" / "rel.py"
        path = path if path.exists() else package(tmp_path / folder, size)
        made = resolve(f"{path}:R", Settings()).sample
        assert (made.in_features, made.out_features) == (size, 7)


def test_relative_imports_without_a_package_are_said(tmp_path: Path) -> None:
    (tmp_path / "lone.py").write_text("from .helper import SIZE\n")
    with pytest.raises(UserError, match=r"lone\.py cannot be imported by itself: .* no __init__\.py"):
        named(f"{tmp_path}/lone.py:R")
    (tmp_path / "__init__.py").write_text("")
    with pytest.raises(UserError, match="mend that first"):
        named(f"{tmp_path}/lone.py:R")


def broken() -> nn.Module:
    raise ValueError("no such weights")


def test_a_factory_that_raises_gets_its_line() -> None:
    with pytest.raises(
        UserError, match=r"factory broken raises ValueError: no such weights \(test_importing\.py:\d+\)"
    ):
        target_of(broken, "broken", Settings())
    assert target_of(lambda: nn.Linear(2, 3), "whole", Settings()).is_module
