"""What only a process of its own can show: signals, pipes, consoles, a disk that refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clearhead.formats.load import load
from clearhead.formats.run import read_run
from tests.cli.runs import SIZES, Clearhead, start

needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and limits")


def lines_until(process: subprocess.Popen[bytes], word: bytes) -> bytes:
    """What a process has said on standard error when `word` appears."""
    assert process.stderr is not None
    said = b""
    while word not in said:
        new = os.read(process.stderr.fileno(), 4096)
        assert new, said.decode()
        said += new
    return said


@needs_posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_saves_and_the_command_that_it_prints_goes_on(
    clearhead: Clearhead, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    long = ("--steps", 1_000_000, "--batch", 1, "--eval-every", 50, "--checkpoint-every", 100_000)
    process = start("train", text.name, "--out", "run", *long, *SIZES, cwd=tmp_path)
    lines_until(process, b"step 50:")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in err
    stopped = read_run(tmp_path / "run").latest().step
    assert f"after step {stopped}." in out.decode()
    command = out.decode()[out.decode().index("clearhead train") :].split()
    assert command == ["clearhead", "train", "--out", "run", "--resume"]
    monkeypatch.chdir(tmp_path)
    assert clearhead(*command[1:], "--steps", stopped + 2).status == 0
    steps = [json.loads(line)["step"] for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert steps == list(range(1, stopped + 3))


@needs_posix
def test_a_kill_leaves_a_run_that_loads_and_goes_on(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    """Checkpoints are written all the time, so the kill falls into the middle of one, or close."""
    long = ("--steps", 1_000_000, "--batch", 1, "--eval-every", 1, "--checkpoint-every", 1)
    process = start("train", text, "--out", tmp_path / "run", *long, *SIZES, cwd=tmp_path)
    lines_until(process, b"step 6:")
    process.kill()
    process.communicate(timeout=60)
    latest = read_run(tmp_path / "run").latest().step
    assert latest >= 5
    assert load(tmp_path / "run").model is not None
    again = ("--resume", "--steps", latest + 1, "--eval-every", 50)
    assert clearhead("train", "--out", tmp_path / "run", *again).status == 0
    steps = [json.loads(line)["step"] for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert steps == list(range(1, latest + 2))


@needs_posix
@pytest.mark.parametrize("limit", [1_000, 4_000], ids=["the metrics", "the weights"])
def test_a_disk_that_refuses_is_one_line(text: Path, tmp_path: Path, limit: int) -> None:
    """The limit on the size of a file stands for a full disk: the system refuses the write."""
    code = (
        "import resource, sys; from clearhead.cli.main import main; "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); sys.exit(main(sys.argv[1:]))"
    )
    arguments = ["train", str(text), "--out", "run", "--steps", "60", "--batch", "1", *SIZES]
    # The metrics are the larger file if nothing is saved before the end.
    arguments += ["--eval-every", "60", "--tokenizer", "byte"] if limit == 1_000 else ["--eval-every", "2"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 2, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    last = done.stderr.decode().splitlines()[-1]
    assert "clearhead: " in last
    assert "cannot be written" in last
    assert not list((tmp_path / "run/checkpoints").glob(".partial-*"))


@pytest.mark.parametrize(
    ("typed", "encoding", "language"),
    [("generate", "ascii", "en"), ("generate", "gbk", "zh"), ("info", "ascii", "zh"), ("--help", "latin-1", "zh")],
)
def test_a_console_of_another_encoding_is_no_crash(
    trained: Path, tmp_path: Path, typed: str, encoding: str, language: str
) -> None:
    arguments = [typed, *([trained] if typed != "--help" else [])]
    arguments += ["-p", "小猫😀", "--max-tokens", 20] if typed == "generate" else []
    process = start(*arguments, cwd=tmp_path, PYTHONIOENCODING=encoding, CLEARHEAD_LANG=language, PYTHONUTF8="0")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, b"Traceback" in err) == (0, False)
    said = out.decode(encoding)
    assert said
    if encoding == "gbk":
        assert said.startswith("小猫?")


@needs_posix
@pytest.mark.parametrize("typed", ["--help", "train --help", "info --json", "generate RUN --max-tokens 20"])
def test_a_reader_who_has_gone_is_no_error(trained: Path, tmp_path: Path, typed: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start(*typed.replace("RUN", str(trained)).split(), cwd=tmp_path, stdout=writing)
    os.close(writing)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")


def test_a_mistake_is_status_2_without_a_traceback(tmp_path: Path) -> None:
    process = start("train", "missing.txt", "--out", "run", "--steps", 1, cwd=tmp_path)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, b"")
    assert err.decode().splitlines()[-1].startswith("clearhead: There is no file missing.txt")
