"""A user's mistake is one line that says how to mend it, and status 2; never a traceback."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from clearhead.cli import info, train
from tests.cli.runs import SIZES, Clearhead

NOWHERE = "no/such/place"


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("train --stepz 3", "--steps"),
        ("train --chekpoint-every 3", "--checkpoint-every"),
        ("train --eval_evry=3", "--eval-every"),
        ("train --model.widht 3", "--model.width"),
        ("train --model-layers 3", "--model.layers"),
        ("train --model.norm.epz 3", "--model.norm.eps"),
        ("generate x --top-q 0.9", "--top-p"),
        ("generate x --max-token 3", "--max-tokens"),
        ("info --model.layer 3", "--model.layers"),
        ("check x --jsn", "--json"),
        ("doctor --devise cpu", "--device"),
    ],
)
def test_an_unknown_flag_gets_the_nearest_real_one(clearhead: Clearhead, typed: str, near: str) -> None:
    line = clearhead(*typed.split()).mistake
    assert f"did you mean {near}?" in line
    assert typed.split()[-2 if " 3" in typed or "0.9" in typed or "cpu" in typed else -1].partition("=")[0] in line


@pytest.mark.parametrize(
    ("typed", "kind"),
    [
        ("train --model.encoder_layers 3", "EncoderDecoder"),
        ("train --model.source-context=3", "EncoderDecoder"),
        ("train --model Decoder --model.source_vocab 3", "EncoderDecoder"),
        ("train --model EncoderDecoder --model.window 3", "Decoder"),
        ("info --model Decoder --model.head Features", "Encoder"),
        ("info --model.segments 2", "Encoder"),
    ],
)
def test_a_field_of_another_kind_names_that_kind(clearhead: Clearhead, typed: str, kind: str) -> None:
    line = clearhead(*typed.split()).mistake
    assert re.match(rf"--model\.\w+ belongs to {kind}; add --model {kind} ", line)


def test_a_field_that_every_kind_has_names_none(clearhead: Clearhead) -> None:
    assert "belongs to" not in clearhead("info", "--model.norm", "RMSNorm", "--model.norm.bias", "true").mistake


@pytest.mark.parametrize(
    ("typed", "near"),
    [("trian", "train"), ("chekc", "check"), ("generat x", "generate"), ("Doctor", "doctor"), ("--nope", "--help")],
)
def test_an_unknown_verb_gets_the_nearest_real_one(clearhead: Clearhead, typed: str, near: str) -> None:
    assert f"did you mean {near}?" in clearhead(*typed.split()).mistake


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("--steps x", "int"),
        ("--steps 1.5", "int"),
        ("--steps 0", "steps = 0"),
        ("--steps -3", "steps = -3"),
        ("--steps", "--steps"),
        ("--batch 0", "batch = 0"),
        ("--lr x", "float"),
        ("--lr 0", "lr = 0"),
        ("--lr nan", "--lr"),
        ("--seed -1", "seed = -1"),
        ("--seed 99999999999999999999999", "seed"),
        ("--eval-every 0", "eval_every = 0"),
        ("--threads 0", "threads = 0"),
        ("--threads two", "int"),
        ("--device gpu", "no device gpu"),
        ("--device cpu:x", "no device cpu:x"),
        ("--dtype float64", "bfloat16"),
        ("--tokenizer word", "character"),
        ("--encoding klingon", "klingon"),
        ("--model Recurrent", "DecoderConfig"),
        ("--model.activation Swish", "GELUTanh"),
        ("--model.norm BatchNorm", "LayerNorm"),
        ("--model.width 10", "width = 10"),
        ("--model.heads 0", "heads = 0"),
        ("--model.kv_heads 3", "kv_heads = 3"),
        ("--model.dropout 1.5", "1.5"),
        ("--model.context 0", "context = 0"),
        ("--model.layers many", "int"),
        ("--model.norm.eps x", "float"),
        ("--resume=maybe", "--resume"),
        ("--config no.yaml", "no.yaml"),
    ],
)
def test_a_wrong_value_of_train(clearhead: Clearhead, text: Path, tmp_path: Path, typed: str, named: str) -> None:
    """The steps come first, so that one of the line counts more."""
    said = clearhead("train", text, "--out", tmp_path / "run", "--steps", 1, *typed.split())
    assert named in said.mistake
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("--max-tokens -1", "max_tokens = -1"),
        ("--max-tokens 1.5", "int"),
        ("--temperature -1", "temperature = -1"),
        ("--temperature x", "float"),
        ("--top-k -1", "top_k = -1"),
        ("--seed x", "int"),
        ("--dtype int8", "float16"),
        ("--device cuda:99", "no device cuda:99"),
        ("--threads -1", "threads = -1"),
        ("-p", "--prompt"),
        ("another", "another"),
    ],
)
def test_a_wrong_value_of_generate(clearhead: Clearhead, trained: Path, typed: str, named: str) -> None:
    assert named in clearhead("generate", trained, *typed.split()).mistake


def test_an_empty_prompt(clearhead: Clearhead, trained: Path) -> None:
    assert "empty" in clearhead("generate", trained, "-p", "").mistake
    assert "empty" in clearhead("generate", trained, "-p", "", "--json").mistake


@pytest.mark.parametrize("verb", ["generate", "check", "info"])
def test_a_model_that_is_not_there(clearhead: Clearhead, tmp_path: Path, verb: str) -> None:
    assert "no such model" in clearhead(verb, tmp_path / "nothing").mistake
    (tmp_path / "file").write_text("text")
    assert "no model file" in clearhead(verb, tmp_path / "file").mistake
    assert "neither a run directory" in clearhead(verb, tmp_path).mistake


@pytest.mark.parametrize(("verb", "wanted"), [("generate", "model"), ("check", "target")])
def test_a_model_is_needed(clearhead: Clearhead, verb: str, wanted: str) -> None:
    assert wanted in clearhead(verb).mistake


def test_a_batch_of_nothing_for_info(clearhead: Clearhead) -> None:
    assert "batch = 0" in clearhead("info", "--batch", 0).mistake


@pytest.mark.parametrize("content", [b"", b"short", b"\x00\x01\x02" * 500, b"caf\xe9 \x81\xff" * 300])
def test_a_text_that_cannot_be_used(clearhead: Clearhead, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    assert "bad.txt" in clearhead("train", path, "--out", tmp_path / "run", "--steps", 1).mistake
    assert not (tmp_path / "run").exists()


def test_a_text_that_is_not_there_or_a_folder(clearhead: Clearhead, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "run", "--steps", 1)
    assert "missing.txt" in clearhead("train", tmp_path / "missing.txt", *out).mistake
    assert "folder" in clearhead("train", tmp_path, *out).mistake


def test_out_is_needed_and_must_be_free(clearhead: Clearhead, text: Path, trained: Path, tmp_path: Path) -> None:
    assert "--out" in clearhead("train", text).mistake
    assert "--resume" in clearhead("train", text, "--out", trained, "--steps", 1).mistake
    assert "not empty" in clearhead("train", text, "--out", tmp_path, "--steps", 1).mistake
    assert "cannot be written" in clearhead("train", text, "--out", text / "run", "--steps", 1, *SIZES).mistake


def test_going_on_with_nothing_or_with_another_training(
    clearhead: Clearhead, text: Path, trained: Path, tmp_path: Path
) -> None:
    assert "no such model" in clearhead("train", "--out", tmp_path / "none", "--resume").mistake
    assert "lr: " in clearhead("train", "--out", trained, "--resume", "--lr", 0.5).mistake
    line = clearhead("train", "--out", trained, "--resume", "--model.layers", 3).mistake
    assert "model.layers: " in line
    assert len(line) < 150
    text.write_text("Another text. " * 100, encoding="utf-8")
    assert "sha256" in clearhead("train", text, "--out", trained, "--resume").mistake


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("steps: [1", "line 2"),
        ("steps: many", "--steps many"),
        ("stepz: 3", "--steps"),
        ("model:\n  class_path: Recurrent", "DecoderConfig"),
        ("model:\n  class_path: DecoderConfig\n  init_args:\n    layerz: 3", "--model.layers"),
        ("model:\n  class_path: DecoderConfig\n  init_args:\n    heads: 5", "heads = 5"),
        ("model:\n  encoder_layers: 5", "class_path: EncoderDecoderConfig"),
        ("model:\n  layers: 5", "class_path: DecoderConfig, init_args"),
        ("- a\n- list", "config"),
        ("just words", "config"),
    ],
)
def test_a_configuration_that_is_wrong(
    clearhead: Clearhead, text: Path, tmp_path: Path, written: str, named: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(written + "\n", encoding="utf-8")
    assert named in clearhead("train", text, "--config", path, "--out", tmp_path / "run").mistake


def wants_too_much(_: object) -> int:
    """More than any machine has, asked as PyTorch asks."""
    return len(torch.empty(2**50))


def error_of(error: type[Exception], said: str) -> Callable[[object], int]:
    def run(_: object) -> int:
        raise error(said)

    return run


MEMORY = {
    "PyTorch on a CPU": (wants_too_much, "4,194,304.00 GiB"),
    "on Windows": (
        error_of(RuntimeError, "DefaultCPUAllocator: not enough memory: you tried to allocate 536870912 bytes."),
        "0.50 GiB",
    ),
    "CUDA": (
        error_of(torch.OutOfMemoryError, "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has"),
        "20.00 MiB",
    ),
    "without a word": (error_of(torch.OutOfMemoryError, "at the limit\nand so on"), "(at the limit)"),
    "MPS": (error_of(RuntimeError, "MPS backend out of memory (max 18.13 GB). Tried to allocate 2.0 GB"), "2.0 GB"),
    "numpy": (error_of(MemoryError, "Unable to allocate 8.00 PiB for an array"), "8.00 PiB"),
    "Python": (error_of(MemoryError, ""), "(MemoryError)"),
}


@pytest.mark.parametrize("who", MEMORY)
def test_memory_that_is_not_there_is_one_line(clearhead: Clearhead, monkeypatch: pytest.MonkeyPatch, who: str) -> None:
    asks, named = MEMORY[who]
    monkeypatch.setattr(train, "run", asks)
    monkeypatch.setattr(info, "run", asks)
    line = clearhead("train").mistake
    assert all(part in line for part in (named, "--batch", "--model.context"))
    # Nothing else has a batch to make smaller.
    other = clearhead("info").mistake
    assert named in other
    assert "--batch" not in other


def test_a_fault_of_ours_is_not_taken_for_want_of_memory(clearhead: Clearhead, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "run", error_of(RuntimeError, "The size of tensor a (3) must match memory (4)"))
    with pytest.raises(RuntimeError, match="must match"):
        clearhead("train")


def test_a_run_that_is_damaged(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert clearhead("train", text, "--out", run, "--steps", 1, "--batch", 1, *SIZES).status == 0
    weights = run / "checkpoints/000001/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-5])
    for command in ("generate", "check"):
        assert "safetensors" in clearhead(command, run).mistake
    assert "safetensors" in clearhead("train", "--out", run, "--resume", "--steps", 2).mistake
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    (run / "config.json").write_text(json.dumps(config | {"format_version": 99}), encoding="utf-8")
    for command in ("generate", "check", "info"):
        assert "99" in clearhead(command, run).mistake
