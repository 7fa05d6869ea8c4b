"""Runs that train at low rank: a base that is missing, damaged or another one is one line, never a model that is partly right."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.formats.atomic import new_folder, write_json
from clearhead.formats.load import load, weights_of
from clearhead.formats.run import create_run, read_run
from clearhead.formats.weights import changing_tensors, digest, own_tensors, read_tensors, save_tensors, write_tensors
from clearhead.messages import UserError
from clearhead.models.adapt import adapt
from clearhead.models.build import build
from clearhead.models.low_rank import LowRank
from clearhead.text import ByteTokenizer
from tests.formats.stored import CONFIG, edited, refusal
from tests.oracles.compare import assert_same, assert_within

LOW_RANK = LowRank(3, 6.0)


def stored(path: Path) -> nn.Module:
    """Write a run with changes of low rank; the model with them beside its weights."""
    model = build(CONFIG, seed=7)
    details = {"init": {"model": "x", "sha256": digest(own_tensors(model))}, "lora": LOW_RANK.to_plain()}
    run = create_run(path, CONFIG, ByteTokenizer(), details)
    write_tensors(own_tensors(model), run.base)
    adapt(model, LOW_RANK, seed=0)
    torch.manual_seed(1)
    for name, parameter in model.named_parameters():
        if name.endswith("lora_b"):
            nn.init.normal_(parameter, std=0.2)
    with new_folder(run.new_checkpoint(3)) as folder:
        save_tensors(changing_tensors(model), folder / "model.safetensors")
        write_json(folder / "state.json", {"step": 3, "val_loss": 2.5})
    return model


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that loads."""
    stored(tmp_path / "run")
    load(tmp_path / "run")
    return tmp_path / "run"


def test_what_was_stored_is_loaded_folded(tmp_path: Path) -> None:
    model, ids = stored(tmp_path / "run").eval(), torch.randint(256, (2, 7))
    loaded = load(tmp_path / "run", dtype="float64").model
    assert list(loaded.state_dict()) == list(build(CONFIG).state_dict())
    # Folded in float32, so equal to float32's rounding only.
    assert_within(loaded(ids).detach(), model.double()(ids).detach(), 1e-6)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_a_number_type_is_that_of_the_sum(tmp_path: Path, dtype: str) -> None:
    """The changes are added in float32 and rounded once."""
    stored(tmp_path / "run")
    summed, asked = load(tmp_path / "run").model, load(tmp_path / "run", dtype=dtype).model
    name = "blocks.1.attention.qkv.weight"
    assert_same(asked.get_parameter(name).detach(), summed.get_parameter(name).detach().to(getattr(torch, dtype)))


def test_loading_draws_no_random_numbers(run: Path) -> None:
    before = torch.get_rng_state()
    load(run)
    assert torch.equal(torch.get_rng_state(), before)


def test_no_base(run: Path) -> None:
    (run / "base.safetensors").unlink()
    line = refusal(run)
    assert "base.safetensors cannot be read (No such file" in line
    assert "train anew" in line


@pytest.mark.parametrize("kept", [0, 7, 0.5, 0.99])
def test_a_base_cut_short(run: Path, kept: float) -> None:
    base = run / "base.safetensors"
    whole = base.read_bytes()
    base.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    assert "base.safetensors cannot be read" in refusal(run)


def moved(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    tensors["norm.weight"][5] = torch.nextafter(tensors["norm.weight"][5], torch.tensor(9.0))
    return tensors


@pytest.mark.parametrize(
    "change",
    [
        moved,
        lambda tensors: {name: tensor for name, tensor in tensors.items() if name != "norm.bias"},
        lambda tensors: tensors | {"more": torch.ones(2)},
        lambda tensors: {name: tensor.double() for name, tensor in tensors.items()},
        lambda tensors: tensors | {"norm.weight": tensors["norm.bias"], "norm.bias": tensors["norm.weight"]},
        lambda tensors: tensors | {"norm.weight": tensors["norm.weight"].view(3, 4)},
    ],
    ids=["one bit", "missing", "more", "another type", "exchanged", "another shape"],
)
def test_another_base(run: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
    base = run / "base.safetensors"
    save_tensors(change(read_tensors(base)), base)
    line = refusal(run)
    assert "holds other weights" in line
    assert str(read_run(run).begins_with)[:12] in line


def test_a_base_that_is_not_looked_at_would_be_found(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: whatever the file holds is taken for what was recorded."""
    base, recorded = run / "base.safetensors", read_run(run).begins_with
    save_tensors(moved(read_tensors(base)), base)
    monkeypatch.setattr("clearhead.formats.weights.digest", lambda _: recorded)
    load(run)


def test_the_order_of_tensors_is_no_part_of_their_digest() -> None:
    tensors = {"a": torch.arange(6.0), "b": torch.ones(2, 3).bfloat16(), "c": torch.tensor(3), "d": torch.ones(0, 2)}
    turned = dict(reversed(tensors.items()))
    assert digest(tensors) == digest(turned) != digest(tensors | {"a": torch.arange(6.0).view(2, 3)})
    assert digest({"a": torch.ones(5, 3).T}) == digest({"a": torch.ones(3, 5)})
    # Written out, so that a digest recorded today is understood tomorrow.
    written = b"a torch.int64 (1,)\n" + bytes([3, 0, 0, 0, 0, 0, 0, 0]) + b"b torch.uint8 (2,)\n" + bytes([7, 8])
    found = digest({"b": torch.tensor([7, 8]).byte(), "a": torch.tensor([3])})
    assert found == hashlib.sha256(written).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        lambda config: config.pop("init"),
        lambda config: config["init"].pop("sha256"),
        lambda config: config.update(init="x"),
    ],
)
def test_a_base_without_a_record(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    assert "holds other weights" in refusal(edited(run, "config.json", change))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda config: config.update(lora=True), "lora = True"),
        (lambda config: config["lora"].pop("rank"), "lora = "),
        (lambda config: config["lora"].update(rank="three"), "LowRank.rank = 'three'"),
        (lambda config: config["lora"].update(rank=0), "lora.rank = 0"),
        (lambda config: config["lora"].update(rank=4), "has shape (3, "),
        (lambda config: config["lora"].update(targets=["*.query"]), "no linear layer is called *.query"),
        (lambda config: config["lora"].update(targets=["*qkv"]), "holds 12 tensors that the model has no place for"),
        (lambda config: config.pop("lora"), "lacks "),
    ],
)
def test_a_description_that_does_not_fit(run: Path, change: Callable[[dict[str, Any]], object], named: str) -> None:
    assert named in refusal(edited(run, "config.json", change))


def test_changes_that_do_not_fit(run: Path) -> None:
    file = run / "checkpoints/000003/model.safetensors"
    tensors = read_tensors(file)
    lost = "blocks.0.attention.qkv.lora_b"
    save_tensors({name: tensor for name, tensor in tensors.items() if name != lost}, file)
    assert lost in refusal(run)


def test_a_disk_that_refuses_is_one_line_and_harms_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "base.safetensors"
    write_tensors({"a": torch.ones(3)}, path)

    def refused(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(UserError, match="cannot be written: No space left on device"):
        write_tensors({"a": torch.zeros(3)}, path)
    monkeypatch.undo()
    assert [each.name for each in tmp_path.iterdir()] == ["base.safetensors"]
    assert read_tensors(path)["a"].tolist() == [1, 1, 1]


def test_weights_to_begin_with_are_copies_in_float32(run: Path) -> None:
    loaded = load(run, dtype="float64")
    weights = weights_of(loaded)
    assert weights.keys() == own_tensors(loaded.model).keys()
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
    assert digest(weights) == digest(weights_of(load(run)))
    narrow = weights_of(load(run))
    narrow["norm.weight"].zero_()
    assert digest(weights_of(load(run))) == digest(weights)


def test_a_run_says_what_it_is(run: Path) -> None:
    described = read_run(run)
    assert described.lora == LOW_RANK
    assert described.begins_with == json.loads((run / "config.json").read_text(encoding="utf-8"))["init"]["sha256"]
