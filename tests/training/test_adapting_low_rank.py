"""Training at low rank: the changes alone are kept, what is frozen stays to the last bit, and what is loaded is what was trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.formats.load import Loaded, load, weights_of
from clearhead.formats.run import read_run
from clearhead.formats.weights import digest, read_tensors, save_tensors
from clearhead.generation.generate import generate
from clearhead.layers.lora import LowRankLinear
from clearhead.messages import UserError
from clearhead.models.adapt import frozen_tensors
from clearhead.models.low_rank import LowRank
from clearhead.training import run as training_run
from clearhead.training.adapting import frozen_digest, unchanged
from clearhead.training.objective import Objective
from clearhead.training.recipe import Recipe, recipe
from clearhead.training.run import measured_speed
from clearhead.training.settings import TrainingSettings
from tests.oracles.compare import assert_same, assert_within
from tests.training.toy import CPU, differing, objective, state
from tests.training.toy_adapting import CONFIG, LOW_RANK, after, begin, go_on, logits, own, trained


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """A model that somebody has trained."""
    return trained(tmp_path_factory.mktemp("source") / "run")


# --- low rank: what is kept


def test_checkpoints_hold_the_changes_alone_and_the_base_is_written_once(tmp_path: Path, source: Loaded) -> None:
    training = begin(tmp_path / "run", source, LOW_RANK)
    next(training.events())
    base = tmp_path / "run/base.safetensors"
    written, stamp = base.read_bytes(), base.stat().st_mtime_ns
    training = after(training)
    assert (base.read_bytes(), base.stat().st_mtime_ns) == (written, stamp)
    assert differing(read_tensors(base), weights_of(source)) == []
    trained = {name for name, each in training.model.named_parameters() if each.requires_grad}
    assert all(name.endswith(("lora_a", "lora_b")) for name in trained)
    for checkpoint in training.run.checkpoints():
        assert read_tensors(checkpoint.path / "model.safetensors").keys() == trained
        means = {name for name in read_tensors(checkpoint.path / "training.safetensors") if ":" in name}
        assert {name.partition(":")[2] for name in means} == trained
    assert not list((tmp_path / "run").glob(".partial*"))


def test_a_kill_inside_the_base_leaves_no_half_of_it(
    tmp_path: Path, source: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
        path.write_bytes(b"half of it")
        raise KeyboardInterrupt

    training = begin(tmp_path / "run", source, LOW_RANK)
    monkeypatch.setattr("clearhead.formats.weights.save_tensors", half)
    with pytest.raises(KeyboardInterrupt):
        training.save()
    assert not list((tmp_path / "run").glob("*base*"))
    monkeypatch.undo()
    assert differing(state(after(training)), state(after(begin(tmp_path / "other", source, LOW_RANK)))) == []


def test_what_is_loaded_is_what_was_trained(tmp_path: Path, source: Loaded) -> None:
    training = after(begin(tmp_path / "run", source, LOW_RANK))
    run = training.run
    loaded = load(run.latest().path)
    assert not any(isinstance(module, LowRankLinear) for module in loaded.model.modules())
    assert [str(each) for each in loaded.model.modules()] == [str(each) for each in source.model.modules()]
    assert_within(logits(loaded.model), logits(training.model), 1e-6)
    with pytest.raises(AssertionError):
        assert_within(logits(loaded.model), logits(source.model), 1e-3)
    assert load(tmp_path / "run").source == run.best().path
    live = Loaded(training.model, run.tokenizer, CONFIG, run.path)  # type: ignore[arg-type]
    texts = [generate(each, "ab", max_tokens=9, temperature=0).text for each in (live, loaded)]
    assert texts[0] == texts[1]


def test_a_checkpoint_beside_the_best_loads_by_itself(tmp_path: Path, source: Loaded) -> None:
    after(begin(tmp_path / "run", source, LOW_RANK), 1)
    assert_same(logits(load(tmp_path / "run/checkpoints/000000").model), logits(source.model))


def test_a_model_trained_at_low_rank_is_begun_with_like_any_other(tmp_path: Path, source: Loaded) -> None:
    after(begin(tmp_path / "first", source, LOW_RANK))
    first = load(tmp_path / "first")
    after(begin(tmp_path / "second", first, LowRank(2, targets=("*qkv",))), 1)
    assert_same(logits(load(tmp_path / "second").model), logits(first.model))
    assert (
        read_run(tmp_path / "second").begins_with
        == digest(own(first.model))
        != read_run(tmp_path / "first").begins_with
    )


# --- what is frozen stays


def test_frozen_weights_are_proved_unchanged(tmp_path: Path, source: Loaded) -> None:
    training = begin(tmp_path / "run", source, LOW_RANK)
    assert training.frozen == training.run.begins_with == digest(weights_of(source))
    after(training)
    assert unchanged(training.model, training.frozen)
    assert differing(frozen_tensors(training.model), weights_of(source)) == []
    resumed = go_on(tmp_path / "run")
    assert resumed.frozen == training.frozen


@pytest.mark.parametrize("name", ["blocks.1.attention.qkv.base.weight", "norm.bias", "embedding.weight"])
def test_a_frozen_weight_that_moves_is_found(tmp_path: Path, source: Loaded, name: str) -> None:
    """The planted fault, by one bit of one number."""
    training = begin(tmp_path / "run", source, LOW_RANK)
    parameter = training.model.get_parameter(name).detach().view(-1)
    parameter[-1] = torch.nextafter(parameter[-1], torch.tensor(9.0))
    assert not unchanged(training.model, training.frozen)


def test_an_optimiser_that_moves_all_weights_is_found(
    tmp_path: Path, source: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def thawed(model: torch.nn.Module, settings: TrainingSettings, objective: Objective[Any]) -> Recipe:
        frozen = [parameter for parameter in model.parameters() if not parameter.requires_grad]
        for parameter in frozen:
            parameter.requires_grad_()
        made = recipe(model, settings, objective)
        for parameter in frozen:
            parameter.requires_grad_(False)
            parameter.grad = torch.ones_like(parameter)
        return made

    monkeypatch.setattr(training_run, "recipe", thawed)
    monkeypatch.setattr(torch.optim.AdamW, "zero_grad", lambda *_, **__: None)
    training = begin(tmp_path / "run", source, LOW_RANK)
    for _, _event in zip(range(2), training.events(), strict=False):
        pass
    assert not unchanged(training.model, training.frozen)


def test_a_model_that_trains_all_has_nothing_to_prove(source: Loaded) -> None:
    assert frozen_digest(source.model) is None
    assert unchanged(source.model, None)


def test_the_best_measured_is_of_the_low_rank_training(source: Loaded) -> None:
    """A speed is measured with what will be trained, and draws nothing from the process."""
    before = torch.get_rng_state()
    assert measured_speed(CONFIG, objective(), CPU, lora=LOW_RANK, updates=2) > 0
    assert torch.equal(torch.get_rng_state(), before)


def test_a_base_that_is_another_one_is_not_gone_on_with(tmp_path: Path, source: Loaded) -> None:
    base = after(begin(tmp_path / "run", source, LOW_RANK), 3).run.base
    tensors = read_tensors(base)
    tensors["norm.weight"][3] += 1e-6
    save_tensors(tensors, base)
    with pytest.raises(UserError, match="holds other weights") as error:
        go_on(tmp_path / "run")
    assert "\n" not in str(error.value)
