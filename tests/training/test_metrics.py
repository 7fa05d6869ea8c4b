"""`metrics.jsonl`: its keys, and what a kill and a resume leave in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clearhead.messages import UserError
from clearhead.training.fit import Update
from clearhead.training.metrics import MetricsFile
from clearhead.training.run import Evaluated, Saved
from tests.training.toy import new_run, training

KEYS = ["step", "loss", "lr", "grad_norm", "tokens_per_second"]


def update(step: int) -> Update:
    return Update(step, loss=2.5, lr=0.25, grad_norm=1.5, terms=30, seconds=0.5)


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_line_per_update_with_the_names_that_stay(tmp_path: Path) -> None:
    trained = training(tmp_path / "run")
    with MetricsFile(trained.run, 0) as metrics:
        for event in trained.events():
            metrics.take(event)
    written = lines(tmp_path / "run")
    assert [line["step"] for line in written] == list(range(1, 15))
    evaluated = {4, 8, 12, 14}
    assert [list(line) for line in written] == [KEYS + ["val_loss"] * (n in evaluated) for n in range(1, 15)]
    assert written[-1]["val_loss"] == trained.val_loss
    assert all(line["tokens_per_second"] > 0 for line in written)


def test_the_numbers_are_those_of_the_event(tmp_path: Path) -> None:
    with MetricsFile(new_run(tmp_path), 0) as metrics:
        metrics.take(update(1))
        metrics.take(Evaluated(1, 3.5))
        metrics.take(Saved(1))
    wanted = {"step": 1, "loss": 2.5, "lr": 0.25, "grad_norm": 1.5, "tokens_per_second": 60.0, "val_loss": 3.5}
    assert lines(tmp_path) == [wanted]


def test_lines_are_on_disk_when_their_checkpoint_is(tmp_path: Path) -> None:
    """A kill after a checkpoint must not leave it without its lines: a resume begins after them."""
    with MetricsFile(new_run(tmp_path), 0) as metrics:
        for step in (1, 2, 3):
            metrics.take(update(step))
        metrics.take(Saved(3))
        assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3]


def test_a_failure_in_the_loop_keeps_the_lines_before_it(tmp_path: Path) -> None:
    def stopped() -> Iterator[Update]:
        yield update(1)
        raise KeyboardInterrupt

    def follow() -> None:
        with MetricsFile(new_run(tmp_path), 0) as metrics:
            for event in stopped():
                metrics.take(event)

    with pytest.raises(KeyboardInterrupt):
        follow()
    assert [line["step"] for line in lines(tmp_path)] == [1]


@pytest.mark.parametrize("cut", [1, 5, 20, 60])
def test_a_half_written_last_line_is_dropped(tmp_path: Path, cut: int) -> None:
    run = new_run(tmp_path)
    with MetricsFile(run, 0) as metrics:
        metrics.take(update(1))
        metrics.take(update(2))
    run.metrics.write_bytes(run.metrics.read_bytes()[:-cut])
    with MetricsFile(run, 9) as metrics:
        metrics.take(update(3))
    assert [line["step"] for line in lines(tmp_path)] == ([1, 2, 3] if cut == 1 else [1, 3])


def test_lines_that_are_done_again_are_dropped(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    with MetricsFile(run, 0) as metrics:
        for step in range(1, 8):
            metrics.take(update(step))
    with MetricsFile(run, 4) as metrics:
        assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3, 4]
        metrics.take(update(5))
    assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3, 4, 5]


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    run.metrics.mkdir()
    with pytest.raises(UserError, match=r"metrics\.jsonl cannot be") as error:
        MetricsFile(run, 0)
    assert "\n" not in str(error.value)
