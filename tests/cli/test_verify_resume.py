"""`clearhead verify-resume`: what a user sees of the proof."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from clearhead.formats.run import read_run
from tests.cli.runs import SIZES, Clearhead, write_text


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two checkpoints; nobody may write into it."""
    from clearhead.cli.main import main  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("two")
    text = write_text(folder)
    rhythm = ("--steps", "6", "--batch", "3", "--checkpoint-every", "3", "--threads", "1", "--model.dropout", "0.1")
    assert main(["train", str(text), "--out", str(folder / "run"), *rhythm, *SIZES]) == 0
    return folder / "run"


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def test_an_equal_run_is_status_0_with_the_hashes(clearhead: Clearhead, two: Path) -> None:
    said = clearhead("verify-resume", two)
    assert said.status == 0, said
    rows = [line.split() for line in said.out.splitlines() if " == " in line]
    assert [row[5] for row in rows] == ["weights", "optimiser", "random", "losses"]
    assert all(row[1] == row[3] and len(row[1]) == 16 for row in rows)
    assert "from step 3" in said.out
    assert "step 6" in said.out
    assert "Replaying steps 3 to 6 on cpu, 1 thread" in said.err


def test_a_program_reads_the_same(clearhead: Clearhead, two: Path) -> None:
    said = clearhead("verify-resume", two, "--json")
    answer = json.loads(said.out)
    assert (said.status, answer["equal"], answer["first"], answer["last"], answer["fault"]) == (0, True, 3, 6, None)
    assert set(answer["parts"]) == {"weights", "optimizer", "random", "metrics"}
    assert all(len(part["recorded"]) == 64 and part["equal"] for part in answer["parts"].values())


@pytest.mark.parametrize("as_json", [False, True])
def test_an_unequal_run_is_status_1_and_names_the_fault(
    clearhead: Clearhead, two: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    monkeypatch.setattr(torch.optim.AdamW, "load_state_dict", lambda _self, _state: None)
    said = clearhead("verify-resume", two, *["--json"] * as_json)
    assert said.status == 1
    assert "resume.optimizer" in said.out
    assert ("!=" in said.out) == (not as_json)
    assert "First difference: blocks.0" in said.out
    if not as_json:
        assert "as recorded." in said.out.splitlines()[-1]


def test_the_threads_that_were_recorded_are_used_and_others_are_told(
    clearhead: Clearhead, two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.optim.AdamW, "load_state_dict", lambda _self, _state: None)
    torch.set_num_threads(2)
    assert "1 thread" in clearhead("verify-resume", two).err
    assert "threads 1 -> 2" in clearhead("verify-resume", two, "--threads", 2).out


def test_too_few_checkpoints_are_status_2_and_how_to_get_two_is_said(
    clearhead: Clearhead, two: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(two, tmp_path / "run"))
    shutil.rmtree(read_run(run).checkpoints()[0].path)
    mistake = clearhead("verify-resume", run).mistake
    assert "holds 1 checkpoint(s)" in mistake
    assert f"clearhead train --out {run} --resume" in mistake


def test_a_text_that_has_moved_may_be_named(clearhead: Clearhead, two: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(two, tmp_path / "run"))
    moved = write_text(tmp_path)
    config = run / "config.json"
    config.write_text(config.read_text(encoding="utf-8").replace(str(two.parent), "/nowhere"), encoding="utf-8")
    assert clearhead("verify-resume", run).status == 2
    assert clearhead("verify-resume", run, moved).status == 0


@pytest.mark.parametrize("typed", [["missing"], [], ["RUN", "--threads", "0"], ["RUN", "--device", "abacus"]])
def test_a_mistake_is_one_line(clearhead: Clearhead, two: Path, typed: list[str]) -> None:
    assert clearhead("verify-resume", *[str(two) if word == "RUN" else word for word in typed]).mistake


def test_it_says_the_same_in_chinese(clearhead: Clearhead, two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    said = clearhead("verify-resume", two)
    assert said.status == 0
    assert "逐位相同" in said.out
