"""Files that are damaged or do not belong together: one line each, and never a model that is partly random."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.formats.load import load
from clearhead.formats.run import create_run
from clearhead.formats.weights import read_tensors, save_tensors
from clearhead.messages import UserError
from clearhead.text import CharacterTokenizer
from tests.formats.stored import CONFIG, edited, refusal, stored

Tensors = dict[str, Tensor]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that loads."""
    stored(tmp_path / "run")
    load(tmp_path / "run")
    return tmp_path / "run"


def weights(run: Path) -> Path:
    return run / "checkpoints/000003/model.safetensors"


def rename(tensors: Tensors, old: str, new: str) -> Tensors:
    return {new if name == old else name: tensor for name, tensor in tensors.items()}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda t: {n: x for n, x in t.items() if n != "positions.table"}, "positions.table"),
        (lambda t: {n: x for n, x in t.items() if "blocks.1" not in n}, "blocks.1"),
        (lambda t: t | {"blocks.7.attention.qkv.weight": torch.ones(2)}, "blocks.7.attention.qkv.weight"),
        (lambda t: rename(t, "norm.weight", "norm.gain"), "norm.weight"),
        (lambda t: t | {"norm.weight": torch.ones(13)}, "(13,)"),
        (lambda t: t | {"norm.weight": torch.ones(1)}, "(1,)"),
        (lambda t: t | {"positions.table": t["positions.table"].T}, "(12, 10)"),
        (lambda t: t | {"positions.table": t["positions.table"].flatten()}, "(120,)"),
        (lambda _: {}, "lacks 20 "),
    ],
    ids=["missing", "block missing", "too many", "renamed", "longer", "would broadcast", "turned", "flat", "none"],
)
def test_tensors_of_another_model(run: Path, change: Callable[[Tensors], Tensors], named: str) -> None:
    """Also those that PyTorch would copy by broadcasting."""
    save_tensors(change(read_tensors(weights(run))), weights(run))
    line = refusal(run)
    assert named in line
    assert "model.safetensors" in line


def test_the_count_of_what_is_missing_is_told(run: Path) -> None:
    tensors = read_tensors(weights(run))
    lost = [name for name in tensors if "blocks.1" in name]
    save_tensors({name: tensor for name, tensor in tensors.items() if name not in lost}, weights(run))
    assert f"lacks {len(lost)} " in refusal(run)


@pytest.mark.parametrize("kept", [0, 1, 7, 8, 9, 100, 0.5, 0.99, -1])
def test_weights_cut_short(run: Path, kept: float) -> None:
    whole = weights(run).read_bytes()
    weights(run).write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    assert "cut short, damaged or not safetensors" in refusal(run)


@pytest.mark.parametrize("content", [b"\xff" * 64, b"PK\x03\x04" + b"\0" * 60, b"not weights at all " * 9])
def test_weights_that_are_none(run: Path, content: bytes) -> None:
    weights(run).write_bytes(content)
    assert "damaged or not safetensors" in refusal(run)


def test_bytes_after_the_weights_are_refused(run: Path) -> None:
    with weights(run).open("ab") as file:
        file.write(b"more")
    assert "damaged or not safetensors" in refusal(run)


def test_no_weights(run: Path) -> None:
    weights(run).unlink()
    assert "model.safetensors" in refusal(run)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "checkpoints/000003/state.json"])
@pytest.mark.parametrize("content", ["", "{", '{"a": 1', "[1, 2]", "null", "7", "not json", '{"a": 1}}'])
def test_json_that_is_broken_or_no_object(run: Path, name: str, content: str) -> None:
    (run / name).write_text(content, encoding="utf-8")
    assert Path(name).name in refusal(run)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "checkpoints/000003/state.json"])
def test_json_in_another_encoding(run: Path, name: str) -> None:
    (run / name).write_bytes('{"文字": 1}'.encode("gb18030"))
    assert Path(name).name in refusal(run)


@pytest.mark.parametrize("name", ["tokenizer.json", "checkpoints/000003/state.json"])
def test_json_that_is_gone(run: Path, name: str) -> None:
    (run / name).unlink()
    assert Path(name).name in refusal(run)


@pytest.mark.parametrize("version", [0, 2, "1", None, 1.5])
def test_a_format_of_another_time(run: Path, version: object) -> None:
    line = refusal(edited(run, "config.json", lambda config: config.update(format_version=version)))
    assert str(version) in line
    assert "format_version" in line


def test_no_format_version(run: Path) -> None:
    assert "format_version" in refusal(edited(run, "config.json", lambda config: config.pop("format_version")))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda c: c.pop("model"), "ModelConfig"),
        (lambda c: c.update(model="DecoderConfig"), "ModelConfig"),
        (lambda c: c["model"].update(class_path="Recurrent"), "Recurrent"),
        (lambda c: c["model"]["init_args"].update(depth=3), "depth"),
        (lambda c: c["model"]["init_args"].update(layers="two"), "two"),
        (lambda c: c["model"]["init_args"].update(layers=True), "layers"),
        (lambda c: c["model"]["init_args"].update(heads=5), "heads"),
        (lambda c: c["model"]["init_args"]["norm"].update(class_path="BatchNorm"), "BatchNorm"),
        (lambda c: c["model"].update(init_args=[1]), "init_args"),
    ],
    ids=["none", "a word", "unknown", "unknown field", "wrong type", "a truth", "does not divide", "choice", "a list"],
)
def test_a_model_that_is_not_one(run: Path, change: Callable[[dict[str, Any]], object], named: str) -> None:
    assert named in refusal(edited(run, "config.json", change))


def test_a_tokenizer_of_another_model(run: Path) -> None:
    tokenizer = CharacterTokenizer.of("abc")
    create_run(run, CONFIG, tokenizer, {})
    line = refusal(run)
    assert f"{tokenizer.size} ids" in line
    assert "256" in line


def test_no_model_at_all(tmp_path: Path) -> None:
    assert "no such model" in refusal(tmp_path / "nothing")
    (tmp_path / "a.txt").write_text("text")
    assert "no model file" in refusal(tmp_path / "a.txt")
    assert "neither a run directory" in refusal(tmp_path)


def test_a_run_without_a_checkpoint_says_how_to_go_on(tmp_path: Path) -> None:
    create_run(tmp_path / "run", CONFIG, CharacterTokenizer.of("abc"), {})
    assert "--resume" in refusal(
        edited(tmp_path / "run", "config.json", lambda c: c["model"]["init_args"].update(vocab=4))
    )


@pytest.mark.parametrize(("dtype", "device"), [("float8", "cpu"), ("float32", "gpu"), ("float32", "cpu:x")])
def test_no_such_device_or_type(run: Path, dtype: str, device: str) -> None:
    with pytest.raises(UserError, match="there is no"):
        load(run, dtype=dtype, device=device)
