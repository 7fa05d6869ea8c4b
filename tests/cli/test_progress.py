"""Bars: a line that never wraps in a terminal, whole lines in a log, a line that is rewritten in a notebook."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TextIO

import pytest
from tqdm import tqdm

from clearhead.cli import bar
from clearhead.cli.bar import LoggedBar, MovingBar, bar_of, is_notebook, plain_signs
from clearhead.cli.main import main
from clearhead.cli.progress import Progress, Smoothed, reading_bar
from clearhead.messages import say
from clearhead.text.columns import columns_of
from clearhead.training.fit import Update
from tests.cli.runs import SIZES, Clearhead
from tests.cli.terminals import Clock, Log, Notebook, Terminal, moved, too_wide


def note() -> str:
    """What a training has to tell, in the user's language."""
    return say("cli.train.postfix", loss="12.345", speed="123,456") + say("cli.train.ceiling", share="31%")


def shown(stream: TextIO) -> None:
    """A training's line: some updates, an evaluation, lines above it, the end."""
    with bar_of(say("cli.train.step"), 1200, stream=stream) as shown:
        for _ in range(3):
            shown.move(200, note())
            shown.busy(say("cli.train.evaluating"))
            shown.busy(None)
        shown.write("    it writes")
        shown.move(600, note())


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("columns", [24, 41, 80, 111, 200])
def test_a_line_in_a_terminal_never_wraps(monkeypatch: pytest.MonkeyPatch, language: str, columns: int) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", language)
    with Terminal(columns) as terminal:
        shown(terminal.stream)
    assert too_wide(terminal.text, columns) == []
    states = moved(terminal.text)
    # The first and the last, and each evaluation's beginning and end.
    assert len(states) >= 8
    assert all(
        say("cli.train.step") in line or say("cli.train.evaluating") in line or "it writes" in line for line in states
    )
    if columns >= 80:
        assert "12.345" in states[-1]
        assert "1200/1200" in states[-1]
    if columns >= 111:
        assert note() in states[-1]


@pytest.mark.parametrize("fault", ["a fixed bar and no width", "characters for columns"])
def test_a_line_that_wraps_is_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    if fault == "characters for columns":
        monkeypatch.setattr("tqdm.std.disp_len", len)
        monkeypatch.setattr("tqdm.utils.disp_len", len)
        monkeypatch.setattr("tqdm.std.disp_trim", lambda text, length: text[:length])
    else:
        monkeypatch.setattr(bar, "_Line", lambda **given: tqdm(**given | {"ncols": None, "dynamic_ncols": False}))
    with Terminal(41) as terminal:
        shown(terminal.stream)
    assert too_wide(terminal.text, 41)


def test_time_left_and_a_part_done_before_are_shown() -> None:
    with Terminal(120) as terminal, bar_of("training", 1000, done=900, stream=terminal.stream) as resumed:
        resumed.move(50, "loss 1")
        resumed.busy(None)
    assert "950/1000" in moved(terminal.text)[-1]
    assert "<00:0" in moved(terminal.text)[-1]


@pytest.mark.parametrize(
    ("encoding", "language", "plain"), [("utf-8", "en", False), ("ascii", "en", True), ("utf-8", "zh", True)]
)
def test_blocks_are_drawn_where_they_are_sure_to_be_one_column(
    monkeypatch: pytest.MonkeyPatch, encoding: str, language: str, plain: bool
) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", language)
    with Terminal(120, encoding) as terminal:
        assert plain_signs(terminal.stream) is plain
        shown(terminal.stream)
    assert ("█" in terminal.text, "#" in terminal.text) == (not plain, plain)


def logged(log: Log, clock: Clock, *, total: int = 1000, delay: float = 0.0, leave: bool = True) -> LoggedBar:
    return LoggedBar("training", total, done=0, size=False, delay=delay, leave=leave, stream=log, clock=clock)


def test_a_log_gets_whole_lines_seldom() -> None:
    """One after 10 seconds, not sooner; the last one once, even if it has just been written."""
    log, clock = Log(), Clock()
    with logged(log, clock) as bar:
        for second in range(1, 101):
            clock.now = second * 0.5
            bar.move(10, f"loss {second}")
    done = ["200/1,000", "400/1,000", "600/1,000", "800/1,000", "1,000/1,000"]
    assert [line.split()[1] for line in log.lines] == done
    assert log.lines[0] == "training 200/1,000 (20%) [00:10 gone, 00:40 left] loss 20"
    assert "\r" not in log.getvalue()


def test_a_long_training_fills_no_log() -> None:
    """Ten hours, an update a second: a line for each hundredth, not 3,600."""
    log, clock = Log(), Clock()
    with logged(log, clock, total=36_000) as bar:
        for second in range(1, 36_001):
            clock.now = float(second)
            bar.move(1)
    assert len(log.lines) == 600
    with logged(log, clock, total=3600) as bar:
        for _ in range(3600):
            clock.now += 1
            bar.move(1)
    assert len(log.lines) == 700


def test_a_log_is_told_nothing_of_what_ends_soon() -> None:
    log, clock = Log(), Clock()
    with logged(log, clock, delay=2, leave=True) as bar:
        bar.move(1000)
    with logged(log, clock, leave=False) as bar:
        clock.now = 9
        bar.move(1000)
    assert log.lines == []
    with logged(log, clock, delay=2, leave=True) as bar:
        clock.now += 3
        bar.move(1000)
    assert len(log.lines) == 1


@pytest.mark.parametrize("make", [bar_of, lambda what, total, stream: tqdm(desc=what, total=total, file=stream)])
def test_carriage_returns_in_a_log_are_found(make: Callable[..., object]) -> None:
    """The check of the tests above: tqdm itself writes them."""
    log = Log()
    with make("training", 7, stream=log) as bar:  # type: ignore[attr-defined]
        (bar.move if make is bar_of else bar.update)(7)
    assert ("\r" in log.getvalue()) is (make is not bar_of)


def test_a_notebook_gets_a_line_that_is_rewritten() -> None:
    notebook = Notebook()
    assert is_notebook(notebook)
    assert not is_notebook(Log())
    shown(notebook)
    assert isinstance(bar_of("x", 1, stream=notebook), MovingBar)
    text = notebook.getvalue()
    assert "\r" in text
    assert "\x1b" not in text, "a notebook knows no cursor that goes up"
    assert too_wide(text, bar.NOTEBOOK_COLUMNS) == []


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("columns", [36, 90])
def test_a_whole_training_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch, text: Path, tmp_path: Path, language: str, columns: int
) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", language)
    with Terminal(columns) as terminal:
        monkeypatch.setattr(sys, "stderr", terminal.stream)
        flags = ("--steps", "6", "--batch", "2", "--eval-every", "3", *SIZES)
        assert main(["train", str(text), "--out", str(tmp_path / "run"), *flags]) == 0
        monkeypatch.undo()
    monkeypatch.setenv("CLEARHEAD_LANG", language)
    words = say("cli.train.step"), say("cli.train.evaluating")
    bars = [line for line in moved(terminal.text) if line.startswith(words)]
    assert len(bars) >= 5
    assert [line for line in bars if columns_of(line) >= columns] == []
    told = say("cli.train.evaluated", step=3, loss="").split("：")[0].split(": ")[0]
    assert terminal.text.count(told) == 1


def test_a_whole_training_in_a_log(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    flags = ("--steps", 6, "--batch", 2, "--eval-every", 3, *SIZES)
    said = clearhead("train", text, "--out", tmp_path / "run", *flags)
    assert "\r" not in said.err
    assert said.err.count("step 3: validation loss") == 1
    bars = [line for line in said.err.splitlines() if line.startswith("training ")]
    assert len(bars) == 1
    assert bars[0].startswith("training 6/6 (100%) [")
    assert bars[0].endswith("% of the ceiling")


def test_files_read_in_a_moment_show_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with reading_bar("reading", 1 << 20) as told:
        told(1 << 20)
    assert capsys.readouterr().err == ""


def test_bytes_are_told_as_bytes() -> None:
    log, clock = Log(), Clock()
    with LoggedBar("reading", 3 << 20, done=0, size=True, delay=2, leave=False, stream=log, clock=clock) as bar:
        clock.now = 12
        bar.move(1 << 20)
    assert log.lines == ["reading 1.00MB/3.00MB (33%) [00:12 gone, 00:24 left]"]


def test_the_loss_shown_is_smoothed() -> None:
    """m ← 0.9 m + 0.1 x over 1 - 0.9^n; what is no number is left out."""
    smoothed = Smoothed()
    assert math.isnan(smoothed.take(math.nan))
    assert smoothed.take(4.0) == pytest.approx(4.0)
    assert smoothed.take(2.0) == pytest.approx((0.9 * 4 + 2) / 1.9)
    assert smoothed.take(math.inf) == pytest.approx((0.9 * 4 + 2) / 1.9)
    assert smoothed.take(1.0) == pytest.approx((0.81 * 4 + 0.9 * 2 + 1) / 2.71)


def test_the_share_of_the_ceiling_is_shown_if_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plan:
        settings = SimpleNamespace(steps=2, eval_every=99)

    class Training:
        step = 0

    log = Log()
    monkeypatch.setattr(sys, "stderr", log)
    shares = iter([None, 0.314])
    with Progress(Training(), Plan(), share=lambda _: next(shares)) as progress:  # type: ignore[arg-type]
        for step in (1, 2):
            assert progress.take(Update(step, 2.5, 1e-3, 1.0, 70, 0.5)) is None
    (line,) = log.lines
    assert line.endswith("] loss 2.500, 140 tokens/s, 31% of the ceiling")
