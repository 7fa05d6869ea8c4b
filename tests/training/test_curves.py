"""Curves: the numbers of metrics.jsonl, whole or half written, and what is computed from them."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from clearhead.formats.run import create_run
from clearhead.messages import UserError
from clearhead.training.curves import Point, read_curves, running_mean
from clearhead.training.fit import Update
from clearhead.training.metrics import MetricsFile
from clearhead.training.run import Evaluated
from tests.training.curves_files import LOSSES, VALIDATION, lines, recorded


def test_the_numbers_are_those_of_the_file(tmp_path: Path) -> None:
    (run,) = read_curves([recorded(tmp_path / "x").path])
    assert run.steps == tuple(range(1, 11))
    assert run.columns["loss"].tolist() == list(LOSSES)
    assert run.columns["lr"].tolist() == [line["lr"] for line in lines()]
    validation = run.columns["val_loss"]
    assert {run.steps[place]: validation[place] for place in np.flatnonzero(np.isfinite(validation))} == VALIDATION
    assert set(run.columns) == {"loss", "lr", "grad_norm", "tokens_per_second", "tokens", "val_loss"}
    assert (run.name, run.broken) == ("x", 0)
    assert run.best() == Point(6, 3.25)
    assert run.last("loss") == Point(10, 2.0)
    assert run.last("nothing") is None


def test_what_a_training_writes_can_be_read_while_it_runs(tmp_path: Path) -> None:
    run = recorded(tmp_path / "x", [])
    with MetricsFile(run, 0) as metrics:
        for step in (1, 2, 3):
            metrics.take(Update(step, loss=4.0 - step, lr=0.5, grad_norm=1.0, terms=30, seconds=0.5))
        metrics.take(Evaluated(3, 2.5))
        (read,) = read_curves([run.path])
    assert read.columns["loss"].tolist() == [3.0, 2.0, 1.0]
    assert read.best() == Point(3, 2.5)


@pytest.mark.parametrize("cut", range(0, 120, 7))
def test_a_line_that_is_still_being_written_is_no_fault(tmp_path: Path, cut: int) -> None:
    run = recorded(tmp_path / "x")
    content = run.metrics.read_bytes()
    run.metrics.write_bytes(content[: len(content) - cut])
    (read,) = read_curves([run.path])
    assert read.broken == 0
    assert len(read.steps) in (8, 9, 10)
    assert read.columns["loss"].tolist() == list(LOSSES[: len(read.steps)])


@pytest.mark.parametrize(
    "broken",
    [
        "{",
        '{"step": 4, "loss": 1',
        "[1]",
        "null",
        '{"loss": 1}',
        '{"step": "4"}',
        '{"step": true}',
        "\xff\xfe",
        '{"step": 1e3}',
        f'{{"step": {10**400}}}',
    ],
)
def test_a_broken_line_in_between_is_counted(tmp_path: Path, broken: str) -> None:
    run = recorded(tmp_path / "x")
    kept = run.metrics.read_text(encoding="utf-8").splitlines()
    kept[3] = broken
    run.metrics.write_bytes("\n".join([*kept, ""]).encode("latin-1"))
    (read,) = read_curves([run.path])
    assert read.broken == 1
    assert read.steps == (1, 2, 3, 5, 6, 7, 8, 9, 10)


def test_what_is_done_again_counts_as_it_was_done_last(tmp_path: Path) -> None:
    again = [line | {"loss": 9.0} for line in lines()[4:7]]
    (read,) = read_curves([recorded(tmp_path / "x", [*lines(), *again]).path])
    assert read.columns["loss"].tolist() == [*LOSSES[:4], 9.0, 9.0, 9.0]


def test_what_is_not_finite_is_a_gap(tmp_path: Path) -> None:
    content = lines([1.0, None, 3.0], {})
    content[2] |= {"grad_norm": 10**400, "lr": None, "sample": "words"}
    (read,) = read_curves([recorded(tmp_path / "x", content).path])
    assert np.isnan(read.columns["loss"]).tolist() == [False, True, False]
    assert math.isnan(read.columns["grad_norm"][2])
    assert "sample" not in read.columns
    assert read.best() is None


def test_axes_are_sums(tmp_path: Path) -> None:
    (run,) = read_curves([recorded(tmp_path / "x").path])
    tokens = [30 + step for step in run.steps]
    assert run.along("step").tolist() == list(run.steps)
    assert run.along("tokens").tolist() == list(np.cumsum(tokens))
    seconds = [count / (100.0 * step) for step, count in enumerate(tokens, 1)]
    np.testing.assert_allclose(run.along("seconds"), np.cumsum(seconds), rtol=1e-12)
    without = [{key: value for key, value in line.items() if key != "tokens"} for line in lines()]
    (older,) = read_curves([recorded(tmp_path / "y", without).path])
    with pytest.raises(UserError, match="--x step"):
        older.along("seconds")


def test_the_running_mean_by_hand() -> None:
    values = np.array([4.0, 2.0, np.nan, 6.0, 10.0])
    assert running_mean(values, 2).tolist() == [4.0, 3.0, 2.0, 6.0, 8.0]
    assert running_mean(values, 1).tolist()[3:] == [6.0, 10.0]
    assert math.isnan(running_mean(values, 1)[2])
    assert running_mean(values, 99).tolist() == [4.0, 3.0, 3.0, 4.0, 5.5]


def test_names_tell_runs_apart_and_a_run_is_read_once(tmp_path: Path) -> None:
    paths = [recorded(tmp_path / "a" / "x" / "same").path, recorded(tmp_path / "a" / "y" / "same").path]
    paths += [recorded(tmp_path / "b" / "other").path]
    runs = read_curves([*paths, paths[0] / ".." / "same"])
    assert [run.name for run in runs] == ["x/same", "y/same", "other"]


def test_levels_are_ln_v_and_what_the_run_recorded(tmp_path: Path) -> None:
    run = recorded(tmp_path / "x")
    (plain,) = read_curves([run.path])
    assert plain.levels == {"uniform": math.log(run.model.vocab)}  # type: ignore[attr-defined]
    create_run(run.path, run.model, run.tokenizer, {"levels": {"bigram": 2.5, "entropy": None, "unigram": "?"}})
    (with_levels,) = read_curves([run.path])
    assert with_levels.levels == plain.levels | {"bigram": 2.5}


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such model"):
        read_curves([tmp_path / "nowhere"])
    run = recorded(tmp_path / "x", [])
    for content in (b"", b'{"step": 1', b"\n\n"):
        run.metrics.write_bytes(content)
        with pytest.raises(UserError, match="look again") as error:
            read_curves([run.path])
        assert "\n" not in str(error.value)
    run.metrics.unlink()
    with pytest.raises(UserError, match="look again"):
        read_curves([run.path])
    run.metrics.mkdir()
    with pytest.raises(UserError, match="cannot be read"):
        read_curves([run.path])


def test_reading_needs_no_torch(tmp_path: Path) -> None:
    run = recorded(tmp_path / "x")
    code = (
        "import json, sys; from pathlib import Path; from clearhead.training.curves import read_curves; "
        f"print(json.dumps([len(read_curves([Path({str(run.path)!r})])[0].steps), 'torch' in sys.modules]))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert json.loads(said.stdout) == [10, False]
