"""TensorBoard: what its writer is asked for. The writer itself is not ours, so one that keeps what it is told stands in."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from clearhead.messages import UserError
from clearhead.training.dashboard import Dashboards
from clearhead.training.fit import Update
from clearhead.training.run import Evaluated
from clearhead.training.tensorboard import TensorBoard

MODULE = "torch.utils.tensorboard"


class Writer:
    """The part of torch's SummaryWriter that is used."""

    made: ClassVar[list[Writer]] = []

    def __init__(self, log_dir: str, purge_step: int) -> None:
        Path(log_dir).mkdir(parents=True, exist_ok=True)
        self.calls: list[tuple[Any, ...]] = [("made", log_dir, purge_step)]
        Writer.made.append(self)

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        self.calls.append((tag, scalar_value, global_step))

    def add_text(self, tag: str, text_string: str, global_step: int) -> None:
        self.calls.append((tag, text_string, global_step))

    def close(self) -> None:
        self.calls.append(("closed",))


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """`torch.utils.tensorboard` as if its package were installed."""
    stand_in = ModuleType(MODULE)
    stand_in.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, MODULE, stand_in)
    monkeypatch.setattr(Writer, "made", [])


@pytest.mark.usefixtures("writer")
def test_every_number_and_text_reaches_the_writer(tmp_path: Path) -> None:
    said: list[str] = []
    settings = {"lr": 0.25, "note": "a|b\nc"}
    with Dashboards([TensorBoard(tmp_path / "tb")], settings, 3, said.append) as told:
        told.take(Update(4, loss=2.5, lr=0.25, grad_norm=1.5, terms=30, seconds=0.5))
        told.take(Evaluated(4, 3.5))
        told.write(4, {"sample": "小猫\n# no heading"})
    assert said == []
    assert Writer.made[0].calls == [
        ("made", str(tmp_path / "tb"), 4),
        ("settings", "| | |\n|---|---|\n| lr | 0.25 |\n| note | a\\|b c |\n", 3),
        ("loss", 2.5, 4),
        ("lr", 0.25, 4),
        ("grad_norm", 1.5, 4),
        ("tokens", 30, 4),
        ("tokens_per_second", 60.0, 4),
        ("val_loss", 3.5, 4),
        ("sample", "    小猫\n    # no heading\n", 4),
        ("closed",),
    ]


@pytest.mark.usefixtures("writer")
def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    said: list[str] = []
    with Dashboards([TensorBoard(tmp_path / "file" / "tb")], {}, 0, said.append) as told:
        told.write(1, {"sample": "a"})
    assert len(said) == 1
    assert "cannot be written" in said[0]
    assert "\n" not in said[0]


def test_without_the_package_one_line_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, None)
    with pytest.raises(UserError, match="pip install tensorboard") as error:
        TensorBoard(tmp_path)
    assert "\n" not in str(error.value)
