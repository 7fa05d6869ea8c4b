"""Continuing from another model's weights, whole or at low rank: what begins, what stays, what is kept, and that a stop changes no bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from clearhead.formats.load import Loaded, load, weights_of
from clearhead.formats.run import create_run, read_run
from clearhead.messages import UserError
from clearhead.models.low_rank import LowRank
from clearhead.text import ByteTokenizer
from clearhead.training.adapting import begun_with
from clearhead.training.metrics import MetricsFile
from clearhead.training.run import Saved, Training
from tests.oracles.compare import assert_same
from tests.training.toy import CPU, SETTINGS, differing, finish, objective, state
from tests.training.toy_adapting import CONFIG, KINDS, LOW_RANK, after, begin, go_on, logits, own, trained


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """A model that somebody has trained."""
    return trained(tmp_path_factory.mktemp("source") / "run")


# --- where it begins


@pytest.mark.parametrize("lora", KINDS.values(), ids=KINDS)
def test_the_first_checkpoint_is_the_model_that_it_began_with(
    tmp_path: Path, source: Loaded, lora: LowRank | None
) -> None:
    training = begin(tmp_path / "run", source, lora)
    assert training.saved_step is None
    assert next(training.events()) == Saved(0)
    run = read_run(tmp_path / "run")
    assert [(each.step, each.val_loss) for each in run.checkpoints()] == [(0, None)]
    loaded = load(tmp_path / "run")
    assert differing(own(loaded.model), own(source.model)) == []
    assert_same(logits(loaded.model), logits(source.model))


def test_fresh_weights_would_be_found(tmp_path: Path, source: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: the weights to begin with are not filled in."""
    monkeypatch.setattr("clearhead.training.adapting.fill", lambda *_: None)
    next(begin(tmp_path / "run", source, None).events())
    assert differing(own(load(tmp_path / "run").model), own(source.model))


@pytest.mark.parametrize("lora", KINDS.values(), ids=KINDS)
def test_step_0_makes_room_for_what_comes_after(tmp_path: Path, source: Loaded, lora: LowRank | None) -> None:
    training = after(begin(tmp_path / "run", source, lora))
    assert training.step == SETTINGS.steps
    run = read_run(tmp_path / "run")
    steps = [each.step for each in run.checkpoints()]
    assert 0 not in steps
    assert steps[-1] == run.latest().step
    assert run.best().step in steps
    assert len(steps) <= SETTINGS.keep + 1
    assert sum(1 for _ in (tmp_path / "run/checkpoints").iterdir()) == len(steps)


def test_a_run_with_fresh_weights_has_no_step_0(tmp_path: Path) -> None:
    finish(tmp_path / "run", settings=replace(SETTINGS, steps=1))
    run = read_run(tmp_path / "run")
    assert [each.step for each in run.checkpoints()] == [1]
    assert not run.base.exists()
    assert (run.lora, run.begins_with) == (None, None)


@pytest.mark.parametrize("lora", KINDS.values(), ids=KINDS)
def test_a_run_that_never_began_does_not_go_on_with_fresh_weights(
    tmp_path: Path, source: Loaded, lora: LowRank | None
) -> None:
    """Killed between its description and its first checkpoint, also where the base is written already."""
    training = begin(tmp_path / "run", source, lora)
    with pytest.raises(UserError, match="was to begin with the weights of source") as error:
        go_on(tmp_path / "run")
    assert "\n" not in str(error.value)
    training.save()
    for file in (tmp_path / "run/checkpoints").rglob("*.*"):
        file.unlink()
    (tmp_path / "run/checkpoints/000000").rmdir()
    with pytest.raises(UserError, match="was to begin with"):
        go_on(tmp_path / "run")


def test_low_rank_needs_weights_to_begin_with(tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", CONFIG, ByteTokenizer(), {"lora": LOW_RANK.to_plain()})
    with pytest.raises(UserError, match="was to begin with"):
        Training(run, SETTINGS, objective(), CPU)


def test_other_weights_than_those_recorded_are_refused(tmp_path: Path, source: Loaded) -> None:
    run = create_run(tmp_path / "run", CONFIG, ByteTokenizer(), {"init": begun_with("source", source)})
    weights = weights_of(source)
    weights["norm.weight"][3] += 1e-6
    with pytest.raises(UserError, match="source holds other weights now") as error:
        Training(run, SETTINGS, objective(), CPU, init=weights)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("lora", KINDS.values(), ids=KINDS)
def test_a_file_of_updates_takes_the_first_checkpoint(tmp_path: Path, source: Loaded, lora: LowRank | None) -> None:
    training = begin(tmp_path / "run", source, lora)
    with MetricsFile(training.run, training.step) as file:
        for event in training.events():
            file.take(event)
    assert len(training.run.metrics.read_text(encoding="utf-8").splitlines()) == SETTINGS.steps


# --- a stop changes no bit, and needs nobody else's files


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, source: Loaded) -> Mapping[str, dict[str, Tensor]]:
    """The states of trainings that nobody stopped."""
    path = tmp_path_factory.mktemp("whole")
    return {name: state(after(begin(path / name, source, lora))) for name, lora in KINDS.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stop", [1, 2, 5, 8, 17, 20])
def test_a_stop_after_any_event_changes_no_bit(
    tmp_path: Path, source: Loaded, whole: Mapping[str, dict[str, Tensor]], kind: str, stop: int
) -> None:
    after(begin(tmp_path / "run", source, KINDS[kind]), stop)
    torch.manual_seed(stop)
    again = after(go_on(tmp_path / "run"), stop)
    torch.manual_seed(stop + 1)
    last = after(go_on(tmp_path / "run")) if again.step < SETTINGS.steps else again
    assert differing(state(last), whole[kind]) == []


def test_the_whole_and_the_low_rank_training_are_worth_comparing(
    whole: Mapping[str, dict[str, Tensor]], source: Loaded
) -> None:
    assert len([name for name in whole["low rank"] if "lora_" in name]) == 2 * 8
    weights = weights_of(source)
    assert all(not torch.equal(whole["whole"][name], tensor) for name, tensor in weights.items() if tensor.dim() > 1)
    assert whole["low rank"].keys() > {name for name in weights if "blocks" not in name}


def test_forgotten_random_numbers_are_found(
    tmp_path: Path, source: Loaded, whole: Mapping[str, dict[str, Tensor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    after(begin(tmp_path / "run", source, LOW_RANK), 6)
    monkeypatch.setattr(torch, "set_rng_state", lambda _: None)
    assert differing(state(after(go_on(tmp_path / "run"))), whole["low rank"])
