"""`metrics.jsonl`: its keys, and what a kill and a resume leave in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from clearhead.messages import UserError
from clearhead.training.fit import Update
from clearhead.training.metrics import Line, MetricsFile, read_metrics
from clearhead.training.run import Evaluated, Saved
from tests.training.toy import new_run, training

KEYS = ["step", "loss", "lr", "grad_norm", "tokens", "tokens_per_second"]


def update(step: int, loss: float = 2.5, *, skipped: bool = False) -> Update:
    return Update(step, loss, lr=0.25, grad_norm=1.5, terms=30, seconds=0.5, skipped=skipped)


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
    wanted = {"step": 1, "loss": 2.5, "lr": 0.25, "grad_norm": 1.5, "tokens": 30, "tokens_per_second": 60.0}
    assert lines(tmp_path) == [wanted | {"val_loss": 3.5}]


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


def test_what_else_is_known_stands_in_the_line(tmp_path: Path) -> None:
    share, memory = {1: 0.5, 2: float("inf")}, iter((7_000, None))
    with MetricsFile(
        new_run(tmp_path), 0, share=lambda update: share[update.step], memory=lambda: next(memory)
    ) as metrics:
        metrics.take(update(1))
        metrics.take(update(2, float("nan"), skipped=True))
    first, second = lines(tmp_path)
    assert list(first) == [*KEYS, "ceiling_share", "memory"]
    assert (first["ceiling_share"], first["memory"]) == (0.5, 7_000)
    # What is no number is null; what nobody knows is left out.
    assert list(second) == [*KEYS, "ceiling_share", "skipped"]
    assert (second["loss"], second["ceiling_share"], second["skipped"]) == (None, None, True)


def test_a_sample_goes_into_the_line_of_its_evaluation(tmp_path: Path) -> None:
    with MetricsFile(new_run(tmp_path), 0) as metrics:
        metrics.sampled("of no update")
        for step in (1, 2):
            metrics.take(update(step))
            metrics.take(Evaluated(step, 3.5 - step, {"exact_match": 0.25}))
            metrics.sampled(f"小猫\n{step} \u2028😀")
        metrics.take(update(3))
    written = lines(tmp_path)
    assert [line.get("sample") for line in written] == ["小猫\n1 \u2028😀", "小猫\n2 \u2028😀", None]
    assert list(written[0]) == [*KEYS, "val_loss", "exact_match", "sample"]
    assert "小猫" in (tmp_path / "metrics.jsonl").read_text(encoding="utf-8")


def test_every_line_is_on_disk_as_soon_as_its_event_was_taken(tmp_path: Path) -> None:
    """A kill while the checkpoint is written, before anybody hears of it, must find them."""
    with MetricsFile(new_run(tmp_path), 0) as metrics:
        for step in (1, 2, 3):
            metrics.take(update(step))
            assert [line["step"] for line in lines(tmp_path)] == list(range(1, step + 1))
        metrics.take(Evaluated(3, 3.5))
        assert lines(tmp_path)[-1]["val_loss"] == 3.5
        metrics.take(Evaluated(3, 3.0))
        assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3]


def test_a_reader_gets_typed_lines(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    with MetricsFile(run, 0, share=lambda _: 0.5, memory=lambda: 7_000) as metrics:
        metrics.take(update(1, float("inf"), skipped=True))
        metrics.take(update(2))
        metrics.take(Evaluated(2, 3.5, {"exact_match": 0.25, "other": float("nan")}))
        metrics.sampled("once")
    first, second = read_metrics(run.metrics)
    assert first == Line(1, None, 0.25, 1.5, 30, 60.0, 0.5, 7_000, skipped=True)
    assert second == Line(
        2, 2.5, 0.25, 1.5, 30, 60.0, 0.5, 7_000, False, 3.5, "once", {"exact_match": 0.25, "other": None}
    )


def test_lines_of_older_versions_are_read(tmp_path: Path) -> None:
    old = '{"step": 4, "loss": 2.5, "lr": 0.25, "grad_norm": null, "tokens_per_second": 60.0, "val_loss": 3.5}\n'
    (tmp_path / "metrics.jsonl").write_text(old, encoding="utf-8")
    wanted = Line(step=4, loss=2.5, lr=0.25, tokens_per_second=60.0, val_loss=3.5)
    assert read_metrics(tmp_path / "metrics.jsonl") == [wanted]
    with MetricsFile(new_run(tmp_path), 4) as metrics:
        metrics.take(update(5))
    assert [line.step for line in read_metrics(tmp_path / "metrics.jsonl")] == [4, 5]
    assert (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").startswith(old)


@pytest.mark.parametrize(
    "last",
    [
        b'{"step": 3, "loss"',
        '{"step": 3, "sample": "小'.encode()[:-1],
        b'{"step": true}',
        b"[3]",
        b"\x00\x00",
        b"[" * 100_000,
    ],
    ids=["cut", "cut in a character", "no number", "no object", "zeros", "deep"],
)
def test_a_reader_stops_at_a_line_that_is_none(tmp_path: Path, last: bytes) -> None:
    run = new_run(tmp_path)
    with MetricsFile(run, 0) as metrics:
        metrics.take(update(1))
        metrics.take(update(2))
    with run.metrics.open("ab") as file:
        file.write(last)
    assert [line.step for line in read_metrics(run.metrics)] == [1, 2]


def test_no_file_has_no_lines(tmp_path: Path) -> None:
    assert read_metrics(tmp_path / "none.jsonl") == []


def test_what_is_no_number_is_none(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1, "loss": "2.5", "lr": true, "val_loss": NaN, "sample": 3}\n', encoding="utf-8")
    assert read_metrics(path) == [Line(step=1)]


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no device that is always full")
    with MetricsFile(new_run(tmp_path), 0) as metrics:
        whole, metrics._file = metrics._file, full.open("r+b")
        with pytest.raises(UserError, match=r"metrics\.jsonl cannot be") as error:
            metrics.take(update(1))
        with suppress(OSError):
            metrics._file.close()
        metrics._file = whole
    assert "\n" not in str(error.value)
