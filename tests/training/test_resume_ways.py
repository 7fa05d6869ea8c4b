"""N updates are k updates, a stop, and N - k updates, bit for bit, in every way of training: one line of the table each."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from clearhead.formats.load import Loaded
from clearhead.formats.run import create_run, read_run
from clearhead.formats.weights import read_tensors
from clearhead.models.low_rank import LowRank
from clearhead.text import ByteTokenizer
from clearhead.training.checkpoint import restore_checkpoint
from clearhead.training.run import Training
from clearhead.training.settings import TrainingSettings
from tests.training.toy import CPU, SETTINGS, TINY, new_run, objective
from tests.training.toy_adapting import LOW_RANK, begin, trained

# The compiler's own, of parts of PyTorch.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*script_method:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Online softmax:UserWarning"),
]


@dataclass(frozen=True)
class Way:
    """A way of training."""

    settings: TrainingSettings = SETTINGS
    lora: LowRank | None = None
    slow: bool = False


# All cross the border of an epoch and draw random numbers for dropout.
WAYS: dict[str, Way] = {
    "float32": Way(),
    "bfloat16": Way(replace(SETTINGS, dtype="bfloat16")),
    "low rank": Way(lora=LOW_RANK),
    "low rank in bfloat16": Way(replace(SETTINGS, dtype="bfloat16"), lora=LOW_RANK),
    "in parts": Way(replace(SETTINGS, micro_batch=1)),
    "low rank in parts": Way(replace(SETTINGS, micro_batch=1), lora=LOW_RANK),
    "muon, wsd": Way(replace(SETTINGS, optimizer="muon", schedule="wsd")),
    "16-bit weights in parts": Way(replace(SETTINGS, dtype="bfloat16-weights", micro_batch=1, optimizer="muon")),
    "scaled": Way(replace(SETTINGS, dtype="float16")),
    "with less memory": Way(replace(SETTINGS, recompute=True, logits_at_once=5, label_smoothing=0.1)),
    "compiled": Way(replace(SETTINGS, compile=True), slow=True),
}
STOPS = {"once": (9,), "three times in a row": (1, 8, 4)}
"""After how many events each training is stopped, counted from its beginning."""


@cache
def source() -> Loaded:
    """What the runs of low rank begin with."""
    with tempfile.TemporaryDirectory() as folder:
        return trained(Path(folder) / "source")


def started(path: Path, way: Way) -> Training:
    """The training in `path`, where it was left; a new one if there is none."""
    if (path / "config.json").exists():
        return Training(read_run(path), way.settings, objective(way.settings), CPU)
    if way.lora is None:
        return Training(new_run(path), way.settings, objective(way.settings), CPU)
    return begin(path, source(), way.lora, way.settings)


def finished(path: Path, way: Way, *stops: int) -> dict[str, Tensor]:
    """All that the last checkpoint holds, after a training that was stopped so."""
    for stop in stops:
        stopped = started(path, way)
        for number, _ in enumerate(stopped.events(), start=1):
            if number == stop:
                break
        stopped.save_if_new()
        torch.manual_seed(stop)  # somebody else draws random numbers
    last = started(path, way)
    for _ in last.events():
        pass
    folder = last.run.latest().path
    assert last.step == way.settings.steps == int(folder.name)
    return read_tensors(folder / "model.safetensors") | read_tensors(folder / "training.safetensors")


def differing(first: dict[str, Tensor], second: dict[str, Tensor]) -> list[str]:
    assert first.keys() == second.keys()
    return [name for name in first if not torch.equal(first[name], second[name])]


@pytest.fixture(
    scope="module", params=[pytest.param(each, id=each, marks=[pytest.mark.slow] * WAYS[each].slow) for each in WAYS]
)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Way, dict[str, Tensor]]:
    """A way, and what comes of it if nobody stops it."""
    way = WAYS[request.param]
    return way, finished(tmp_path_factory.mktemp("whole") / "run", way)


@pytest.mark.parametrize("stops", STOPS.values(), ids=STOPS)
def test_stops_change_no_bit(tmp_path: Path, whole: tuple[Way, dict[str, Tensor]], stops: tuple[int, ...]) -> None:
    way, expected = whole
    assert differing(finished(tmp_path / "run", way, *stops), expected) == []


@pytest.mark.parametrize("forgotten", ["random numbers", "optimiser"])
def test_what_is_forgotten_is_found_in_every_way(
    tmp_path: Path, whole: tuple[Way, dict[str, Tensor]], monkeypatch: pytest.MonkeyPatch, forgotten: str
) -> None:
    way, expected = whole

    def forgetful(checkpoint: object, model: torch.nn.Module, moving: object) -> None:
        means = [(each, each.state_dict()) for each in getattr(moving, "optimizers", [moving])]
        random = torch.get_rng_state()
        restore_checkpoint(checkpoint, model, moving)  # type: ignore[arg-type]
        for optimizer, state in means if forgotten == "optimiser" else []:
            optimizer.load_state_dict(state)
        if forgotten == "random numbers":
            torch.set_rng_state(random)

    monkeypatch.setattr("clearhead.training.run.restore_checkpoint", forgetful)
    assert differing(finished(tmp_path / "run", way, 9), expected)


def test_more_updates_than_planned_go_on_from_the_end(tmp_path: Path) -> None:
    """In a run of two stretches each is itself the same, stopped or not."""
    longer = Way(replace(SETTINGS, steps=19))
    for name in ("whole", "stopped"):
        create_run(tmp_path / name, TINY, ByteTokenizer(), {})
        finished(tmp_path / name, Way())
    assert differing(finished(tmp_path / "whole", longer), finished(tmp_path / "stopped", longer, 2)) == []
