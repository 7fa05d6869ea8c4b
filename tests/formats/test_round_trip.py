"""A run directory gives back the model that it was given, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from clearhead.formats.load import load
from clearhead.formats.run import create_run, read_run
from clearhead.formats.weights import fill, own_tensors, read_tensors, save_tensors
from clearhead.models.build import build
from clearhead.models.choices import GELUTanh, LayerNorm, ReLU, Visible
from clearhead.models.config import DecoderConfig
from clearhead.text import ByteTokenizer, CharacterTokenizer, Tokenizer
from tests.formats.stored import CONFIG, stored
from tests.oracles.compare import assert_same

CONFIGS = {
    "tied": CONFIG,
    "untied": replace(CONFIG, tied=False, head_bias=True),
    "biases": replace(CONFIG, bias=True, qkv_bias=True, norm=LayerNorm(eps=1e-3, bias=False)),
    "choices": replace(CONFIG, kv_heads=2, head_width=6, feedforward_width=20, activation=ReLU(), kernel=Visible()),
    "tanh": replace(CONFIG, heads=2, activation=GELUTanh(), dropout=0.3),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_what_was_stored_is_loaded(tmp_path: Path, config: DecoderConfig) -> None:
    model = stored(tmp_path / "run", config)
    loaded = load(tmp_path / "run")
    assert loaded.config == config
    assert not loaded.model.training
    wanted, found = own_tensors(model), own_tensors(loaded.model)
    assert wanted.keys() == found.keys()
    for name, tensor in wanted.items():
        assert_same(found[name], tensor)
    ids = torch.randint(config.vocab, (2, 7))
    assert_same(loaded.model(ids).detach(), model.eval()(ids).detach())


def test_a_tied_head_is_stored_once_and_loaded_tied(tmp_path: Path) -> None:
    stored(tmp_path / "run", CONFIGS["tied"])
    loaded = load(tmp_path / "run")
    assert loaded.model.head.weight is loaded.model.embedding.weight
    assert "head.weight" not in read_tensors(loaded.source / "model.safetensors")


def test_an_untied_head_is_stored_by_itself(tmp_path: Path) -> None:
    model = stored(tmp_path / "run", CONFIGS["untied"])
    loaded = load(tmp_path / "run").model
    assert not torch.equal(model.head.weight, model.embedding.weight)
    assert_same(loaded.head.weight.detach(), model.head.weight.detach())


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_a_number_type_is_asked_for(tmp_path: Path, dtype: str) -> None:
    model = stored(tmp_path / "run")
    loaded = load(tmp_path / "run", dtype=dtype).model
    wanted = getattr(torch, dtype)
    assert_same(loaded.positions.table.detach(), model.positions.table.detach().to(wanted))


def test_a_checkpoint_folder_is_loaded_itself(tmp_path: Path) -> None:
    stored(tmp_path / "run", step=5, val_loss=1.0)
    last = stored(tmp_path / "run", step=9, val_loss=2.0, seed=8)
    assert load(tmp_path / "run").source.name == "000005"
    loaded = load(tmp_path / "run/checkpoints/000009")
    assert loaded.source.name == "000009"
    assert_same(loaded.model.positions.table.detach(), last.positions.table.detach())


def test_loading_draws_no_random_numbers(tmp_path: Path) -> None:
    stored(tmp_path / "run")
    before = torch.get_rng_state()
    load(tmp_path / "run")
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("tokenizer", [ByteTokenizer(), CharacterTokenizer.of("小猫\n a😀")], ids=["byte", "character"])
def test_a_description_comes_back_as_it_was(tmp_path: Path, tokenizer: Tokenizer) -> None:
    details = {"training": {"steps": 3}, "data": {"files": ["小猫.txt"]}}
    create_run(tmp_path / "run", CONFIG, tokenizer, details)
    run = read_run(tmp_path / "run")
    assert (run.model, run.tokenizer, run.details) == (CONFIG, tokenizer, details)


def test_every_tensor_of_a_model_is_replaced(tmp_path: Path) -> None:
    """Nothing stays as it was drawn: two models drawn apart are the same after being filled."""
    path = tmp_path / "model.safetensors"
    config = CONFIGS["biases"]
    first, second = build(config, seed=1), build(config, seed=2)
    save_tensors(own_tensors(first), path)
    fill(second, read_tensors(path), path)
    assert all(
        torch.equal(a, b) for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    )


def test_tensors_of_any_layout_and_type_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    tensors = {"turned": torch.randn(3, 5).T, "half": torch.ones(2).bfloat16(), "bytes": torch.arange(4).byte()}
    save_tensors(tensors, path)
    for name, tensor in read_tensors(path).items():
        assert_same(tensor, tensors[name])
