"""Checkpoints: which are kept, which is used, and what a killed or refused write leaves behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from clearhead.formats import atomic
from clearhead.formats.atomic import new_folder, write_json
from clearhead.formats.load import load
from clearhead.formats.run import Checkpoint, Run, create_run, read_run
from clearhead.formats.weights import read_tensors, save_tensors
from clearhead.messages import UserError
from clearhead.training import checkpoint
from clearhead.training.run import Evaluated, Training
from tests.training.toy import SETTINGS, TINY, finish, new_run, training

NAN = float("nan")


@pytest.mark.parametrize(
    ("keep", "left"),
    [(1, [3, 14]), (2, [3, 12, 14]), (3, [3, 9, 12, 14]), (9, [3, 6, 9, 12, 14]), (0, [3, 14]), (-1, [3, 14])],
)
def test_so_many_of_the_latest_are_kept_beside_the_best(tmp_path: Path, keep: int, left: list[int]) -> None:
    run = new_run(tmp_path / "run")
    for step, loss in ((3, 1.0), (6, 3.0), (9, None), (12, 2.0), (14, None)):
        with new_folder(run.new_checkpoint(step)) as folder:
            write_json(folder / "state.json", {"step": step, "val_loss": loss})
    run.prune(keep)
    assert steps_kept(run) == left


def scripted(monkeypatch: pytest.MonkeyPatch, *losses: float) -> None:
    """Evaluations that find these losses, one after the other."""
    each = iter(losses)
    monkeypatch.setattr(Training, "evaluate", lambda training: Evaluated(training.step, next(each)))


def steps_kept(run: Run) -> list[int]:
    return [each.step for each in run.checkpoints()]


@pytest.mark.parametrize(
    ("losses", "best", "kept"),
    [
        ((5.0, 4.0, 3.0, 2.0), 14, [12, 14]),
        ((5.0, 2.0, 3.0, 4.0), 8, [8, 12, 14]),
        ((2.0, 3.0, 4.0, 5.0), 4, [4, 12, 14]),
        ((5.0, 2.0, 2.0, 4.0), 8, [8, 12, 14]),
    ],
)
def test_the_latest_two_and_the_best_are_kept_and_the_best_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, losses: tuple[float, ...], best: int, kept: list[int]
) -> None:
    scripted(monkeypatch, *losses)
    finish(tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert steps_kept(run) == kept
    assert (run.best().step, run.best().val_loss) == (best, min(losses))
    assert run.latest().step == 14
    assert load(tmp_path / "run").source == run.best().path


@pytest.mark.parametrize("losses", [(NAN, 2.0, 3.0, NAN), (2.0, NAN, NAN, NAN), (NAN, NAN, NAN, 2.0)])
def test_a_loss_that_is_no_number_is_never_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, losses: tuple[float, ...]
) -> None:
    scripted(monkeypatch, *losses)
    assert finish(tmp_path / "run", 19).best == 2.0
    assert read_run(tmp_path / "run").best().val_loss == 2.0


def test_without_a_number_the_latest_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, NAN, NAN, NAN, NAN)
    finish(tmp_path / "run")
    assert read_run(tmp_path / "run").best().step == 14


def test_the_best_is_remembered_over_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later loss that is worse than one before the stop does not take its place."""
    scripted(monkeypatch, 2.0, 3.0, 4.0, 5.0)
    finish(tmp_path / "run", 10)
    assert steps_kept(read_run(tmp_path / "run")) == [4, 12, 14]


def test_the_stored_weights_are_those_of_the_training(tmp_path: Path) -> None:
    trained = finish(tmp_path / "run")
    stored = read_tensors(read_run(tmp_path / "run").latest().path / "model.safetensors")
    assert stored.keys() == dict(trained.model.named_parameters()).keys()
    assert all(torch.equal(stored[name], tensor) for name, tensor in trained.model.named_parameters())


def saved(path: Path) -> Training:
    """A training stopped and saved after 5 events (4 updates)."""
    stopped = training(path)
    for number, _ in enumerate(stopped.events(), start=1):
        if number == 5:
            break
    stopped.save_if_new()
    return stopped


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def half_then_killed(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    path.write_bytes(b"half of it")
    raise KeyboardInterrupt


@pytest.mark.parametrize(("name", "fault"), [("save_tensors", half_then_killed), ("write_json", killed)])
def test_a_stop_inside_a_checkpoint_leaves_the_last_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, fault: Callable[..., None]
) -> None:
    stopped = saved(tmp_path / "run")
    before = steps_kept(stopped.run)
    monkeypatch.setattr(checkpoint, name, fault)
    with pytest.raises(KeyboardInterrupt):
        for _ in stopped.events():
            pass
    assert steps_kept(stopped.run) == before == [3, 4]
    assert sorted(path.name for path in (tmp_path / "run/checkpoints").iterdir()) == ["000003", "000004"]
    monkeypatch.undo()
    assert load(tmp_path / "run").source.name == "000004"
    assert finish(tmp_path / "run").step == SETTINGS.steps


def test_what_a_killed_process_left_unfinished_is_not_taken_for_a_checkpoint(tmp_path: Path) -> None:
    run = saved(tmp_path / "run").run
    leftover = tmp_path / "run/checkpoints/.partial-99-000010"
    leftover.mkdir()
    (leftover / "model.safetensors").write_bytes(b"half")
    assert steps_kept(run) == [3, 4]
    assert load(tmp_path / "run").source.name == "000004"
    create_run(run.path, run.model, run.tokenizer, run.details)
    assert not leftover.exists()


class KilledError(BaseException):
    """Stands for a kill: nothing after it runs."""


def test_a_kill_at_any_system_call_leaves_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renaming is the only moment at which the new checkpoint appears; before it nothing else may be gone."""
    run = saved(tmp_path / "run").run

    def die(*_: object) -> None:
        raise KilledError

    monkeypatch.setattr(atomic.Path, "rename", die)
    with pytest.raises(KilledError):
        finish(tmp_path / "run")
    assert steps_kept(run) == [3, 4]


def half_deleted(folder: Path, ignore_errors: bool = False) -> None:
    if (folder / "state.json").exists():
        (folder / "state.json").unlink()
        raise KilledError


def test_a_kill_while_an_old_checkpoint_is_deleted_leaves_no_half_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = saved(tmp_path / "run").run
    scripted(monkeypatch, 1.0, 0.5, 0.2, 0.1)
    monkeypatch.setattr(shutil, "rmtree", half_deleted)
    with pytest.raises(KilledError):
        finish(tmp_path / "run")
    monkeypatch.undo()
    assert steps_kept(run)[-1] > 4
    assert load(tmp_path / "run").source == run.best().path
    finish(tmp_path / "run")
    assert not list((tmp_path / "run/checkpoints").glob(".partial-*"))


def test_deleting_before_writing_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: prune first, write after."""
    run = saved(tmp_path / "run").run

    def backwards(run: Run, *_: object, step: int, val_loss: float | None, keep: int = 2) -> None:
        for each in run.checkpoints():
            (each.path / "state.json").unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr("clearhead.training.run.save_checkpoint", backwards)
    with pytest.raises(KeyboardInterrupt):
        finish(tmp_path / "run")
    with pytest.raises(UserError):
        steps_kept(run)


def refused(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("call", ["mkdir", "rename"])
def test_a_disk_that_refuses_is_one_line_and_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    stopped = saved(tmp_path / "run")
    monkeypatch.setattr(atomic.Path, call, refused)
    with pytest.raises(UserError, match=r"cannot be written: No space left on device") as error:
        finish(tmp_path / "run")
    assert "\n" not in str(error.value)
    monkeypatch.undo()
    assert steps_kept(stopped.run) == [3, 4]


def test_safetensors_own_refusal_is_one_line_too(tmp_path: Path) -> None:
    """It raises an error of its own where Python raises an OSError."""
    with pytest.raises(UserError, match="cannot be written") as error, new_folder(tmp_path / "new"):
        save_tensors({"a": torch.ones(3)}, tmp_path / "nowhere/model.safetensors")
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_json_file_is_old_or_new_and_never_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"小猫": 1})
    assert path.read_text(encoding="utf-8") == '{\n  "小猫": 1\n}\n'
    monkeypatch.setattr(atomic.Path, "replace", refused)
    with pytest.raises(UserError, match="No space left"):
        write_json(path, {"小猫": 2})
    assert '"小猫": 1' in path.read_text(encoding="utf-8")


def test_a_new_folder_takes_the_place_of_the_old(tmp_path: Path) -> None:
    for text in ("old", "new"):
        with new_folder(tmp_path / "it") as folder:
            (folder / text).write_text(text)
    assert [path.name for path in (tmp_path / "it").iterdir()] == ["new"]
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "it") as folder:
        (folder / "third").write_text(str(1 / 0))
    assert [path.name for path in (tmp_path / "it").iterdir()] == ["new"]


def test_steps_are_ordered_as_numbers(tmp_path: Path) -> None:
    """Beyond six digits the order of names is another one."""
    run = new_run(tmp_path / "run")
    for step in (900_000, 1_000_000):
        with new_folder(run.new_checkpoint(step)) as folder:
            write_json(folder / "state.json", {"step": step, "val_loss": None})
    assert run.latest() == Checkpoint(tmp_path / "run/checkpoints/1000000", 1_000_000, None)


@pytest.mark.parametrize("damage", ["missing", "cut", "other model"])
def test_a_damaged_training_state_is_one_line(tmp_path: Path, damage: str) -> None:
    folder = saved(tmp_path / "run").run.latest().path
    path = folder / "training.safetensors"
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:100])
    else:
        other = new_run(tmp_path / "other", replace(TINY, width=12))
        (tmp_path / "other/checkpoints").rmdir()
        (tmp_path / "run/checkpoints").rename(other.path / "checkpoints")
    with pytest.raises(UserError) as error:
        training(tmp_path / ("other" if damage == "other model" else "run"))
    assert "\n" not in str(error.value)


def test_a_training_state_without_random_numbers_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "run").run.latest().path / "training.safetensors"
    tensors = read_tensors(path)
    save_tensors({name: tensor for name, tensor in tensors.items() if name != "random.cpu"}, path)
    with pytest.raises(UserError, match=r"random\.cpu"):
        training(tmp_path / "run")
