"""A run that the commands of this folder look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.cli.main import main
from tests.cli.runs import SIZES, Clearhead, caller, write_text


@pytest.fixture
def clearhead(capsys: pytest.CaptureFixture[str]) -> Clearhead:
    """`clearhead ARGUMENTS`."""
    return caller(capsys)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; its text is beside it. Nobody may write into it."""
    folder = tmp_path_factory.mktemp("trained")
    text = write_text(folder)
    assert main(["train", str(text), "--out", str(folder / "run"), "--steps", "6", "--batch", "3", *SIZES]) == 0
    return folder / "run"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A text to train on."""
    return write_text(tmp_path)
