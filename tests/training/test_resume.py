"""N updates are k updates, a stop, and N - k updates: bit for bit, with dropout and across an epoch's border."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from clearhead.formats.run import read_run
from clearhead.training.batches import Windows
from clearhead.training.run import Evaluated, Saved
from tests.training.toy import SETTINGS, TRAIN, differing, finish, state, training

EVENTS = 14 + 4 + 6
"""Updates; evaluations after 4, 8, 12 and 14; checkpoints after 3, 6, 9, 12, 14 and the best (4, 8) but for 12."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    """The state of a training that nobody stopped."""
    return state(finish(tmp_path_factory.mktemp("whole") / "run"))


def test_the_setting_is_worth_testing() -> None:
    """The training crosses the border of an epoch and drops something."""
    windows = Windows(TRAIN, 6, SETTINGS.batch, SETTINGS.seed)
    assert 0 < windows.an_epoch / SETTINGS.batch < SETTINGS.steps - 2


@pytest.mark.parametrize("stop", range(1, 22))
def test_a_stop_after_any_event_changes_no_bit(tmp_path: Path, whole: dict[str, torch.Tensor], stop: int) -> None:
    assert differing(state(finish(tmp_path / "run", stop)), whole) == []


def test_stops_in_a_row_change_no_bit(tmp_path: Path, whole: dict[str, torch.Tensor]) -> None:
    assert differing(state(finish(tmp_path / "run", 1, 7, 3, 2)), whole) == []


def test_forgotten_random_numbers_are_found(
    tmp_path: Path, whole: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "set_rng_state", lambda _: None)
    assert differing(state(finish(tmp_path / "run", 7)), whole)


def test_a_forgotten_optimiser_is_found(
    tmp_path: Path, whole: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.optim.AdamW, "load_state_dict", lambda _self, _state: None)
    assert differing(state(finish(tmp_path / "run", 7)), whole)


def test_a_place_in_the_data_that_is_counted_is_found(
    tmp_path: Path, whole: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Windows.__call__

    def counting(windows: Windows, _step: int) -> object:
        windows.calls = getattr(windows, "calls", -1) + 1
        return right(windows, windows.calls)

    monkeypatch.setattr(Windows, "__call__", counting)
    assert differing(state(finish(tmp_path / "run")), whole) == []
    assert differing(state(finish(tmp_path / "other", 7)), whole)


def test_another_seed_is_another_training(tmp_path: Path, whole: dict[str, torch.Tensor]) -> None:
    assert differing(state(finish(tmp_path / "run", settings=replace(SETTINGS, seed=1))), whole)


def test_a_stop_between_evaluation_and_checkpoint_keeps_the_loss(tmp_path: Path) -> None:
    stopped = training(tmp_path / "run")
    for event in stopped.events():
        if isinstance(event, Evaluated):
            break
    stopped.save_if_new()
    assert read_run(tmp_path / "run").best().val_loss == event.val_loss
    assert training(tmp_path / "run").best == event.val_loss


def test_stopping_again_without_an_update_writes_nothing(tmp_path: Path) -> None:
    finish(tmp_path / "run")
    last = training(tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    last.save_if_new()
    assert list(last.events()) == []
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}


def test_more_steps_go_on_after_the_end(tmp_path: Path) -> None:
    finish(tmp_path / "run")
    longer = training(tmp_path / "run", replace(SETTINGS, steps=17))
    events = list(longer.events())
    assert [event.step for event in events if isinstance(event, Saved)][-1] == longer.step == 17
    assert len(events) >= 3


def test_bfloat16_trains_and_keeps_weights_in_float32(tmp_path: Path) -> None:
    settings = replace(SETTINGS, steps=3, dtype="bfloat16")
    trained = finish(tmp_path / "run", settings=settings)
    assert {parameter.dtype for parameter in trained.model.parameters()} == {torch.float32}
    exact = finish(tmp_path / "exact", settings=replace(settings, dtype="float32"))
    assert differing(state(trained), state(exact))
    assert trained.val_loss == pytest.approx(exact.val_loss, rel=1e-2)
