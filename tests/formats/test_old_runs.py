"""A run of an older format: it loads, writes text and goes on as the code that made it would have gone on (runs/README.md)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from clearhead.formats.load import load
from clearhead.formats.run import read_run
from clearhead.formats.weights import digest, own_tensors, read_tensors
from clearhead.generation.generate import generate
from clearhead.messages import UserError
from clearhead.training.environment import recorded_environment
from clearhead.training.metrics import MetricsFile
from clearhead.training.plan import resumed_plan
from clearhead.training.replay import replay
from clearhead.training.run import Training

RUNS = Path(__file__).parent / "runs"
WEIGHTS = "474db678e7d3d1978eff7e61a31062c0af68a2d7d89c8c8daaac6db3e0647ed3"
LOGPROBS = [-0.9734910726547241, -0.8462005257606506, -0.8447499871253967, -0.8365742564201355, -0.8295801281929016]
# What the old code did next: losses, gradient norms, learning rates, and the digests of what it saved after them.
LOSSES = [
    2.217895984649658,
    2.2593398094177246,
    2.2460567951202393,
    2.038559913635254,
    1.9412364959716797,
    1.82247865200,
]
NORMS = [
    0.9363892674446106,
    1.1206556558609009,
    0.8890995979309082,
    0.731721043586731,
    0.7692523002624512,
    0.87149775028,
]
RATES = [0.004336920283, 0.003933204393, 0.003599767122, 0.003338473186, 0.003150783846, 0.003037748738]
NEXT_WEIGHTS = "519893b7899b4d9f3c4d9a8475b86bf27ca76a22dc27f3d4acedca5d381b0b5a"
NEXT_STATE = "b507878e3fb8787a334265941a0c2f783d9860572d3842b90f927e29334a025b"
MADE_WITH = ("2.13.0+cpu", "x86_64 AVX512")
"""Where the digests were taken; elsewhere the numbers are the same within rounding."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy that may be written into."""
    return Path(shutil.copytree(RUNS / "format-1", tmp_path / "run"))


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As it was trained."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def gone_on(old: Path) -> Training:
    """The old run, trained to step 46."""
    plan = resumed_plan(old, [str(RUNS / "text.txt")], {"steps": 46})
    objective = plan.data.objective(plan.run.model, batch=plan.settings.batch, seed=plan.settings.seed)
    training = Training(plan.run, plan.settings, objective, torch.device("cpu"))
    with MetricsFile(plan.run, training.step) as metrics:
        for event in training.events():
            metrics.take(event)
    return training


def last_lines(run: Path) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["step"] for line in lines] == list(range(1, 47))
    return lines[40:]


def test_every_tensor_is_loaded_as_it_was_stored() -> None:
    loaded = load(RUNS / "format-1", device="cpu")
    assert digest(own_tensors(loaded.model)) == WEIGHTS
    changed = {name: tensor + 1e-6 for name, tensor in own_tensors(loaded.model).items()}
    assert digest(changed) != WEIGHTS


def test_it_writes_what_it_wrote() -> None:
    written = generate(load(RUNS / "format-1", device="cpu"), "Day", temperature=0.0, max_tokens=5)
    assert written.ids == [2] * 5
    assert written.logprobs == pytest.approx(LOGPROBS, abs=1e-4)


def test_it_goes_on_as_the_code_that_made_it(old: Path) -> None:
    training = gone_on(old)
    lines = last_lines(old)
    assert [line["loss"] for line in lines] == pytest.approx(LOSSES, abs=1e-4)
    assert [line["grad_norm"] for line in lines] == pytest.approx(NORMS, abs=1e-4)
    assert [line["lr"] for line in lines] == pytest.approx(RATES, rel=1e-9)
    recorded = recorded_environment(training.run)
    saved = training.run.latest().path
    if (recorded["torch"], recorded["machine"]) == MADE_WITH:
        assert digest(read_tensors(saved / "model.safetensors")) == NEXT_WEIGHTS
        assert digest(read_tensors(saved / "training.safetensors")) == NEXT_STATE


@pytest.mark.parametrize("forgotten", ["random numbers", "optimiser"])
def test_a_part_that_is_not_taken_over_is_found(old: Path, monkeypatch: pytest.MonkeyPatch, forgotten: str) -> None:
    if forgotten == "optimiser":
        monkeypatch.setattr(torch.optim.AdamW, "load_state_dict", lambda _self, _state: None)
    else:
        monkeypatch.setattr(torch, "set_rng_state", lambda _: None)
    gone_on(old)
    assert [line["loss"] for line in last_lines(old)] != pytest.approx(LOSSES, abs=1e-4)


def test_it_says_where_it_was_trained_and_can_be_replayed_once_it_has_gone_on(old: Path) -> None:
    run = read_run(old)
    assert recorded_environment(run) == run.details["versions"]
    text, cpu = [str(RUNS / "text.txt")], torch.device("cpu")
    with pytest.raises(UserError, match=r"holds 1 checkpoint.*--resume"):
        replay(old, text, device=cpu)
    gone_on(old)
    found = replay(old, text, device=cpu)
    assert (found.equal, found.first, found.last) == (True, 40, 46)
