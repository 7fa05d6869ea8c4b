"""Disks that are full, folders that cannot be written or are gone: one line, and the last good checkpoint stays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clearhead.cli.main import main
from clearhead.formats.load import load
from clearhead.formats.run import read_run
from clearhead.formats.weights import read_tensors
from clearhead.training.fit import Update
from clearhead.training.run import Evaluated, Saved, Training

TEXT = "".join(f"On day {n} the cat saw {n % 7} birds.\n" for n in range(60))
SIZES = ("--model.layers=1", "--model.heads=2", "--model.width=32", "--model.context=12")
RHYTHM = ("--batch", "2", "--checkpoint-every", "2", "--eval-every", "3")
# An evaluation reads token files before the next checkpoint is written.
DELETED = {"run": ("tokens", "cannot be read"), "run/checkpoints": ("cannot be written", "there is no folder")}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def mounted(*arguments: str) -> None:
    done = subprocess.run(arguments, capture_output=True, check=False, encoding="utf-8", errors="replace")
    if done.returncode:
        pytest.skip(f"{' '.join(arguments)}: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one MiB."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a small disk is mounted by Linux's root alone")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder))
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def called(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def one_line(capsys: pytest.CaptureFixture[str], *wanted: str) -> str:
    """The last line on standard error, which is the mistake in words; no traceback is there."""
    said = capsys.readouterr().err
    assert "Traceback" not in said
    last = said.splitlines()[-1].split("\r")[-1]
    assert last.strip().startswith("clearhead: "), said
    assert all(word in last for word in wanted), last
    assert said.count("clearhead: ") == 1
    return last


def whole(run: Path) -> list[int]:
    """The steps of the checkpoints, all of which can be read, and nothing unfinished beside them."""
    found = read_run(run).checkpoints()
    for each in found:
        assert read_tensors(each.path / "model.safetensors")
        assert "random.cpu" in read_tensors(each.path / "training.safetensors")
    assert load(run).model is not None
    assert not list((run / "checkpoints").glob(".partial-*"))
    return [each.step for each in found]


@pytest.mark.parametrize("left", [0, 8_192, 40_000], ids=["nothing", "the metrics", "some of a checkpoint"])
def test_a_full_disk(text: Path, disk: Path, capsys: pytest.CaptureFixture[str], left: int) -> None:
    run = disk / "run"
    assert called("train", text, "--out", run, "--steps", 4, *RHYTHM, *SIZES) == 0
    before = whole(run)
    with (disk / "ballast").open("wb", buffering=0) as ballast:
        ballast.write(b"x" * (shutil.disk_usage(disk).free - left))
    assert shutil.disk_usage(disk).free <= left
    capsys.readouterr()
    assert called("train", "--out", run, "--resume", "--steps", 9) == 2
    one_line(capsys, "cannot be written", "No space left")
    assert whole(run) == before
    (disk / "ballast").unlink()
    assert called("train", "--out", run, "--resume", "--steps", 9) == 0
    assert whole(run)[-1] == 9


def test_a_disk_that_becomes_read_only(text: Path, disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = disk / "run"
    assert called("train", text, "--out", run, "--steps", 4, *RHYTHM, *SIZES) == 0
    before = whole(run)
    mounted("mount", "-o", "remount,ro", str(disk))
    capsys.readouterr()
    assert called("train", "--out", run, "--resume", "--steps", 9) == 2
    one_line(capsys, "cannot be written", "Read-only")
    assert whole(run) == before


def test_a_folder_without_permission(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if sys.platform == "win32" or os.geteuid() == 0:
        pytest.skip("root writes whatever the permissions say; the disk that is read-only stands for it")
    run = tmp_path / "run"
    assert called("train", text, "--out", run, "--steps", 4, *RHYTHM, *SIZES) == 0
    before = whole(run)
    for folder in (run / "checkpoints", run):
        folder.chmod(0o500)
    capsys.readouterr()
    try:
        assert called("train", "--out", run, "--resume", "--steps", 9) == 2
    finally:
        for folder in (run, run / "checkpoints"):
            folder.chmod(0o700)
    one_line(capsys, "cannot be written", "Permission denied")
    assert whole(run) == before


def after_update(monkeypatch: pytest.MonkeyPatch, step: int, act: Callable[[], None]) -> None:
    """Somebody does something while a training runs."""
    right = Training.events

    def events(training: Training, stop: Callable[[], bool]) -> Iterator[Update | Evaluated | Saved]:
        for event in right(training, stop):
            yield event
            if isinstance(event, Update) and event.step == step:
                act()

    monkeypatch.setattr(Training, "events", events)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows deletes no file that is open")
@pytest.mark.parametrize("gone", DELETED)
def test_a_folder_that_is_deleted_while_the_training_runs(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    """It does not come back with a checkpoint alone in it, which nothing could use."""
    after_update(monkeypatch, 3, lambda: shutil.rmtree(tmp_path / gone))
    assert called("train", text, "--out", tmp_path / "run", "--steps", 9, *RHYTHM, *SIZES) == 2
    one_line(capsys, *DELETED[gone])
    assert not (tmp_path / gone).exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows deletes no file that is open")
def test_a_stop_after_the_folder_was_deleted_is_one_line_too(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import signal  # noqa: PLC0415

    def act() -> None:
        shutil.rmtree(tmp_path / "run")
        signal.raise_signal(signal.SIGINT)

    after_update(monkeypatch, 3, act)
    rhythm = ("--batch", 2, "--checkpoint-every", 100, "--eval-every", 100)
    assert called("train", text, "--out", tmp_path / "run", "--steps", 9, *rhythm, *SIZES) == 2
    one_line(capsys, "there is no folder")
