"""A run's last interval again: equal where all is well, and what is wrong by its name where it is not."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.formats.run import read_run
from clearhead.formats.weights import read_tensors, save_tensors
from clearhead.messages import UserError
from clearhead.models.config import DecoderConfig
from clearhead.models.low_rank import LowRank
from clearhead.training.batches import Windows
from clearhead.training.environment import differences, environment, resume_warning
from clearhead.training.metrics import MetricsFile
from clearhead.training.plan import Plan, new_plan, resumed_plan
from clearhead.training.replay import Replay, replay
from clearhead.training.run import Training

CPU = torch.device("cpu")
TEXT = "".join(f"On day {n} the cat saw {n % 7} birds.\n" for n in range(60))
SIZES = DecoderConfig(layers=1, heads=2, width=8, context=12, dropout=0.2)
SETTINGS = {"steps": 11, "batch": 3, "eval_every": 3, "checkpoint_every": 4, "lr": 0.01}


def train(plan: Plan) -> Training:
    settings = plan.settings
    objective = plan.data.objective(plan.run.model, batch=settings.batch, seed=settings.seed)
    training = Training(plan.run, settings, objective, CPU, init=plan.init)
    with MetricsFile(plan.run, training.step) as metrics:
        for event in training.events():
            metrics.take(event)
    return training


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with checkpoints of steps 9 and 11 (and perhaps the best); nobody may write into it."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    train(new_plan(folder / "run", [str(folder / "text.txt")], SETTINGS, model=SIZES, device=CPU))
    return folder / "run"


@pytest.fixture
def run(kept: Path, tmp_path: Path) -> Path:
    """A copy that may be written into."""
    return Path(shutil.copytree(kept, tmp_path / "run"))


def contents(folder: Path) -> dict[str, str]:
    """Every file by name, with a hash of what is in it and when it was written."""
    return {
        str(path.relative_to(folder)): f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mtime_ns}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def replayed(run: Path) -> Replay:
    return replay(run, device=CPU)


def unequal(found: Replay) -> list[str]:
    return [each.part for each in found.parts if not each.equal]


def test_the_last_interval_is_equal_bit_for_bit_and_the_run_stays_as_it_is(kept: Path) -> None:
    before, random = contents(kept), torch.get_rng_state()
    steps: list[int] = []
    found = replay(kept, device=CPU, progress=steps.append)
    assert (found.equal, found.fault, found.explanation, found.environment) == (True, None, None, ())
    assert [each.part for each in found.parts] == ["weights", "optimizer", "random", "metrics"]
    assert all(each.recorded == each.replayed and len(each.recorded) == 64 for each in found.parts)
    assert steps == list(range(found.first + 1, found.last + 1))
    assert found.last == 11
    assert found.parts[-1].count == len(steps)
    assert contents(kept) == before
    assert not torch.equal(random, torch.get_rng_state())  # it trains in this process, and says so nowhere else


def test_a_run_of_low_rank_is_replayed_on_its_base(kept: Path, tmp_path: Path) -> None:
    text = str(kept.with_name("text.txt"))
    plan = new_plan(tmp_path / "run", [text], SETTINGS, init=str(kept), lora=LowRank(2, dropout=0.1), device=CPU)
    train(plan)
    assert replayed(tmp_path / "run").equal
    (tmp_path / "run/base.safetensors").unlink()
    with pytest.raises(UserError, match="base"):
        replayed(tmp_path / "run")


def test_a_run_that_was_made_longer_afterwards_is_replayed_as_it_was(run: Path) -> None:
    """The schedule falls until the last step: the settings of the checkpoint count, not those that the run has now."""
    resumed_plan(run, [], {"steps": 40})
    assert read_run(run).details["training"]["steps"] == 40
    assert replayed(run).equal
    state = run / "checkpoints/000011/state.json"
    said = json.loads(state.read_text(encoding="utf-8"))
    del said["training"]
    state.write_text(json.dumps(said), encoding="utf-8")
    assert not replayed(run).equal  # as an older run, which does not say so


def forgotten_random(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(torch, "set_rng_state", lambda _: None)


def forgotten_optimizer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(torch.optim.AdamW, "load_state_dict", lambda _self, _state: None)


def counted_data(patch: pytest.MonkeyPatch) -> None:
    """The place in the data is counted from the start of the process."""
    right = Windows.__call__

    def counting(windows: Windows, _step: int) -> object:
        windows.calls = getattr(windows, "calls", -1) + 1
        return right(windows, windows.calls)

    patch.setattr(Windows, "__call__", counting)


FAULTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "resume.rng": forgotten_random,
    "resume.data": counted_data,
    "resume.optimizer": forgotten_optimizer,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(kept: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    FAULTS[fault](monkeypatch)
    found = replayed(kept)
    assert not found.equal
    assert found.fault == fault
    assert found.explanation is not None
    assert f"[{fault}]" in found.explanation
    assert {"weights", "optimizer"} <= set(unequal(found))
    assert ("random" in unequal(found)) == (fault == "resume.rng")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_training_that_resumed_wrongly_is_named(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """The other way about: the recorded interval is the wrong one. It began where a process was started again."""
    text = str(kept.with_name("text.txt"))
    train(new_plan(tmp_path / "run", [text], SETTINGS | {"steps": 4}, model=SIZES, device=CPU))
    with monkeypatch.context() as patch:
        FAULTS[fault](patch)
        train(resumed_plan(tmp_path / "run", [], {"steps": 6, "eval_every": 90, "checkpoint_every": 90}))
    found = replayed(tmp_path / "run")
    assert (found.first, found.last, found.fault) == (4, 6, fault)


def test_the_first_tensor_that_differs_is_named_with_its_largest_difference(run: Path) -> None:
    path = run / "checkpoints/000011/model.safetensors"
    tensors = read_tensors(path)
    name = sorted(tensors)[2]
    tensors[name].view(-1)[1] += 0.25
    save_tensors(tensors, path, {"format": "pt"})
    found = replayed(run)
    assert unequal(found) == ["weights"]
    assert f"{name}, by at most 0.25" in str(found.parts[0].difference)
    assert found.fault == "resume.optimizer"


def test_one_digit_of_a_recorded_loss_is_seen(run: Path) -> None:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    last = json.loads(lines[-1])
    lines[-1] = json.dumps(last | {"loss": last["loss"] * (1 + 1e-15)})
    (run / "metrics.jsonl").write_text("\n".join(lines), encoding="utf-8")
    found = replayed(run)
    assert unequal(found) == ["metrics"]
    assert "step 11, loss" in str(found.parts[-1].difference)


@pytest.mark.parametrize("damage", ["no file", "no line of the interval", "half a line", "no text"])
def test_lines_that_are_not_there_are_not_compared(run: Path, damage: str) -> None:
    path = run / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    whole = {"no line of the interval": "\n".join(lines[:3]), "half a line": "\n".join([*lines[:-1], lines[-1][:20]])}
    if damage == "no file":
        path.unlink()
    else:
        path.write_bytes(whole.get(damage, "\udcff").encode("utf-8", "surrogateescape"))
    found = replayed(run)
    assert found.equal
    assert (found.parts[-1].count > 0) == (damage == "half a line")


def rewritten(run: Path, **changed: Any) -> None:
    """Let the last checkpoint say that it was trained elsewhere."""
    path = run / "checkpoints/000011/state.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(said | {"versions": said["versions"] | changed}), encoding="utf-8")


def test_another_machine_is_told_and_rounding_is_no_fault(run: Path) -> None:
    rewritten(run, torch="2.9.0", threads=64)
    assert [each.split()[0] for each in replayed(run).environment] == ["torch", "threads"]
    path = run / "checkpoints/000011/model.safetensors"
    save_tensors({name: each * (1 + 1e-6) for name, each in read_tensors(path).items()}, path)
    found = replayed(run)
    assert (found.equal, found.fault) == (False, None)
    assert "rounding" in str(found.explanation)
    save_tensors({name: each * 1.1 for name, each in read_tensors(path).items()}, path)
    assert replayed(run).fault == "resume.optimizer"


def test_one_checkpoint_is_too_few_and_the_line_says_how_to_get_two(run: Path) -> None:
    for each in read_run(run).checkpoints()[:-1]:
        shutil.rmtree(each.path)
    with pytest.raises(UserError, match=r"holds 1 checkpoint.*--resume.*--steps") as error:
        replayed(run)
    assert "\n" not in str(error.value)


def test_changed_data_is_no_proof(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text(TEXT.replace("cat", "cow", 1), encoding="utf-8")
    with pytest.raises(UserError, match="sha256"):
        replay(run, [str(other)], device=CPU)


def test_what_decides_over_bits_is_compared_and_nothing_else() -> None:
    now = environment(CPU)
    assert differences(now, now) == []
    assert resume_warning(now, now) is None
    assert differences({}, now) == []
    assert differences(now | {"python": "3.99", "platform": "other", "clearhead": "9"}, now) == []
    changed = {"torch": "2.0.0", "threads": 99, "device": "cuda (H200)", "machine": "arm64 DEFAULT"}
    found = differences(now | changed, now)
    assert found == [f"{name} {value} -> {now[name]}" for name, value in changed.items()]
    said = resume_warning(now | changed, now)
    assert said is not None
    assert "\n" not in said
    assert all(each in said for each in found)
