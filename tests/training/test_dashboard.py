"""Dashboards: they are told everything, and none of them can stop a training."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.training.dashboard import REFUSALS, Dashboard, Dashboards, values_of
from clearhead.training.fit import Update
from clearhead.training.metrics import MetricsFile
from clearhead.training.run import Evaluated, Saved
from tests.training.toy import new_run, training


class Notebook:
    """A dashboard that keeps all it is told, and raises where it is asked to."""

    def __init__(self, fail: str = "", error: Exception | None = None) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._fail, self._error = fail, error

    def start(self, settings: Mapping[str, Any], step: int) -> None:
        self._note("start", dict(settings), step)

    def log(self, step: int, values: Mapping[str, float], texts: Mapping[str, str]) -> None:
        self._note("log", step, dict(values), dict(texts))

    def finish(self) -> None:
        self._note("finish")

    def _note(self, *call: Any) -> None:
        self.calls.append(call)
        if self._error is not None and call[0] == self._fail:
            raise self._error


def update(step: int) -> Update:
    return Update(step, loss=2.5, lr=0.25, grad_norm=1.5, terms=30, seconds=0.5)


def fed(*dashboards: Dashboard) -> list[str]:
    """What is said of dashboards that see two updates, an evaluation, a text and a checkpoint."""
    said: list[str] = []
    with Dashboards(dashboards, {"lr": 0.25}, 3, said.append) as told:
        for event in (update(4), update(5), Evaluated(5, 3.5, {"exact_match": 0.5}), Saved(5)):
            told.take(event)
        told.write(5, {"sample": "小猫"})
    return said


ALL = [
    ("start", {"lr": 0.25}, 3),
    ("log", 4, {"loss": 2.5, "lr": 0.25, "grad_norm": 1.5, "tokens": 30, "tokens_per_second": 60.0}, {}),
    ("log", 5, {"loss": 2.5, "lr": 0.25, "grad_norm": 1.5, "tokens": 30, "tokens_per_second": 60.0}, {}),
    ("log", 5, {"val_loss": 3.5, "exact_match": 0.5}, {}),
    ("log", 5, {}, {"sample": "小猫"}),
    ("finish",),
]


def test_all_events_arrive_in_their_order() -> None:
    first, second = Notebook(), Notebook()
    assert fed(first, second) == []
    assert first.calls == second.calls == ALL
    assert values_of(Saved(5)) == {}


@pytest.mark.parametrize("error", [OSError("no space"), ConnectionError("gone"), RuntimeError("a\nb"), ValueError()])
@pytest.mark.parametrize(("fail", "heard"), [("start", 1), ("log", 2), ("finish", 6)])
def test_one_that_raises_is_told_once_and_left_out(error: Exception, fail: str, heard: int) -> None:
    broken, sound = Notebook(fail, error), Notebook()
    (line,) = fed(broken, sound)
    assert "Notebook" in line
    assert (" ".join(str(error).split()) or "ValueError") in line
    assert "\n" not in line
    assert broken.calls == ALL[:heard], "it hears no more"
    assert sound.calls == ALL


def test_a_mistake_in_its_code_is_not_hidden() -> None:
    assert not issubclass(TypeError, REFUSALS)
    with pytest.raises(TypeError, match="mistake"):
        fed(Notebook("log", TypeError("mistake")))


def test_shares_and_memory_stand_beside_an_update() -> None:
    watching = Notebook()
    held = iter([None, 7])
    with Dashboards([watching], {}, 0, print, share=lambda each: each.loss / 10, memory=lambda: next(held)) as told:
        for event in (update(1), update(2), Evaluated(2, 3.5)):
            told.take(event)
    _, first, second, evaluated, _ = (call[-2] if call[0] == "log" else {} for call in watching.calls)
    assert first == values_of(update(1)) | {"ceiling_share": 0.25}
    assert second == values_of(update(2)) | {"ceiling_share": 0.25, "memory": 7}
    assert evaluated == {"val_loss": 3.5}


def test_the_names_are_those_of_the_metrics(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    with MetricsFile(run, 0) as metrics:
        metrics.take(update(1))
        metrics.take(Evaluated(1, 3.5, {"exact_match": 0.5}))
    written = json.loads(run.metrics.read_text(encoding="utf-8"))
    shown = values_of(update(1)) | values_of(Evaluated(1, 3.5, {"exact_match": 0.5}))
    assert written == {"step": 1} | shown


def test_it_is_finished_when_the_training_is_stopped() -> None:
    watching = Notebook()

    def follow() -> None:
        with Dashboards([watching], {}, 0, print) as told:
            told.take(update(1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        follow()
    assert watching.calls[-1] == ("finish",)


def test_a_training_does_not_notice_a_broken_dashboard(tmp_path: Path) -> None:
    said: list[str] = []
    watched = training(tmp_path / "watched")
    with Dashboards([Notebook("log", OSError("gone"))], {}, 0, said.append) as told:
        for event in watched.events():
            told.take(event)
    alone = training(tmp_path / "alone")
    for _ in alone.events():
        pass
    assert len(said) == 1
    pairs = zip(watched.model.parameters(), alone.model.parameters(), strict=True)
    assert all(torch.equal(mine, other) for mine, other in pairs)
