"""BERT of transformers, small and with random weights, and ours read from its configuration and its tensors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.formats.assemble import assemble
from clearhead.formats.hugging_face.bert import head_of, with_head
from clearhead.formats.rows import Row
from clearhead.formats.tensors import HeldTensors
from clearhead.messages import UserError
from clearhead.models import choices as kinds
from clearhead.tracing import Recorder
from tests.formats.hugging_face.given import SOURCE, V, assert_near, opened, random_weights, read

hf = pytest.importorskip("transformers", reason="transformers is not installed")

B, T, D, H, FF, L, CONTEXT, SEGMENTS = 3, 9, 18, 6, 14, 3, 12, 3
FLOAT64, FLOAT32 = 1e-10, 1e-5
REAL = torch.arange(T) < torch.tensor([[T], [6], [2]])
SIZES: dict[str, Any] = {
    "vocab_size": V,
    "hidden_size": D,
    "intermediate_size": FF,
    "num_hidden_layers": L,
    "num_attention_heads": H,
    "max_position_embeddings": CONTEXT,
    "type_vocab_size": SEGMENTS,
    "layer_norm_eps": 1e-6,
}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "masked": ("BertForMaskedLM", {}),
    "masked, a head of its own": ("BertForMaskedLM", {"tie_word_embeddings": False}),
    "masked, gelu's approximation": ("BertForMaskedLM", {"hidden_act": "gelu_new", "num_attention_heads": 2}),
    "pre-training": ("BertForPreTraining", {"hidden_act": "relu"}),
    "pooled": ("BertModel", {"num_attention_heads": 1}),
}


def theirs_of(name: str = "masked") -> Any:
    kind, changes = VARIANTS[name]
    theirs = random_weights(getattr(hf, kind)(hf.BertConfig(**SIZES | changes)))
    if hasattr(theirs, "cls"):
        # One bias with two names. Without tied weights theirs may hold two, and reads the second.
        theirs.cls.predictions.bias = theirs.cls.predictions.decoder.bias
    return theirs


def ours_of(theirs: Any, dtype: torch.dtype, **faults: Any) -> Any:
    """Ours, from tensors named as in a file that holds more than the bare model."""
    found, bare = opened(theirs.to(dtype), **faults), type(theirs).__name__ == "BertModel"
    held = {f"bert.{name}" if bare else name: tensor for name, tensor in theirs.state_dict().items()}
    return assemble(replace(found, tensors=HeldTensors(SOURCE, held)), dtype, "cpu")[0]


@torch.no_grad()
def check(name: str, dtype: torch.dtype, within: float, *, real: Tensor | None, **faults: Any) -> None:
    """What enters the first block, what leaves each one, and what the head makes, at real tokens."""
    theirs = theirs_of(name)
    ours, recorder = ours_of(theirs, dtype, **faults), Recorder()
    source, segments = torch.randint(V, (B, T)), torch.randint(SEGMENTS, (B, T))
    mask = None if real is None else real.long()
    made = theirs(source, attention_mask=mask, token_type_ids=segments, output_hidden_states=True)
    found = ours(source, segments=segments, real=real, tap=recorder)
    places = torch.ones(B, T, dtype=torch.bool) if real is None else real
    names = ["input", *(f"blocks.{index}.output" for index in range(L))]
    for tap, expected in zip(names, made.hidden_states, strict=True):
        assert_near(recorder.tensors[tap][places], expected[places], within)
    if name == "pooled":
        assert_near(found, made.pooler_output, within)
    else:
        logits = made.prediction_logits if name == "pre-training" else made.logits
        assert_near(found[places], logits[places], within)


@pytest.mark.parametrize("real", [None, REAL], ids=["no padding", "padding"])
@pytest.mark.parametrize("name", VARIANTS)
def test_heads_and_blocks(name: str, real: Tensor | None) -> None:
    """Padding at the right alone: at the left, theirs counts it as positions."""
    check(name, torch.float64, FLOAT64, real=real)
    check(name, torch.float32, FLOAT32, real=real)


def swapped(row: Row) -> Row:
    """Keys in the place of queries."""
    if "qkv" not in row.ours:
        return row
    first, second, third = row.parts
    return replace(row, parts=(second, first, third))


def other_norm(row: Row) -> Row:
    """The norm of the other branch, in the last block; shapes fit."""
    index = f"layer.{L - 1}"
    names = {f"{index}.attention.output.LayerNorm": f"{index}.output.LayerNorm"}
    for there, other in names.items():
        if there in row.parts[0].name:
            return replace(row, parts=(replace(row.parts[0], name=row.parts[0].name.replace(there, other)),))
        if other in row.parts[0].name:
            return replace(row, parts=(replace(row.parts[0], name=row.parts[0].name.replace(other, there)),))
    return row


FAULTS: dict[str, dict[str, Any]] = {
    "epsilon": {"change": lambda config: replace(config, norm=kinds.LayerNorm(eps=1e-12))},
    "gelu's approximation": {"change": lambda config: replace(config, activation=kinds.GELUTanh())},
    "scores not scaled": {"change": lambda config: replace(config, attention_scale=1.0)},
    "queries and keys swapped": {"move": swapped},
    "norms crossed": {"move": other_norm},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_not_bert_is_caught(fault: str) -> None:
    with pytest.raises(AssertionError, match=r"^differs by"):
        check("masked", torch.float64, FLOAT64, real=None, **FAULTS[fault])


def test_a_second_copy_must_be_one() -> None:
    """The output's weight and bias lie in newer files under two names each."""
    theirs = theirs_of()
    assert {"cls.predictions.bias", "cls.predictions.decoder.bias"} <= theirs.state_dict().keys()
    held = {name: tensor.clone() for name, tensor in theirs.state_dict().items()}
    for name in ("cls.predictions.decoder.bias", "cls.predictions.decoder.weight"):
        _, report = assemble(replace(opened(theirs), tensors=HeldTensors(SOURCE, held)), torch.float32, "cpu")
        assert name in report.retied
        wrong = held | {name: held[name] + 1}
        with pytest.raises(UserError, match=name):
            assemble(replace(opened(theirs), tensors=HeldTensors(SOURCE, wrong)), torch.float32, "cpu")


@pytest.mark.parametrize("left", ["cls.predictions.bias", "cls.predictions.decoder.bias"])
@pytest.mark.parametrize("name", ["masked", "masked, a head of its own"])
def test_either_name_of_the_bias_will_do(name: str, left: str) -> None:
    theirs = theirs_of(name)
    held = {there: tensor for there, tensor in theirs.state_dict().items() if there != left}
    model, _ = assemble(replace(opened(theirs), tensors=HeldTensors(SOURCE, held)), torch.float32, "cpu")
    assert torch.equal(model.head.output.bias, theirs.cls.predictions.bias)


def test_what_else_was_trained_is_left_out_and_named() -> None:
    _, report = assemble(opened(theirs_of("pre-training")), torch.float32, "cpu")
    assert set(report.unused) == {
        "bert.pooler.dense.weight",
        "bert.pooler.dense.bias",
        "cls.seq_relationship.weight",
        "cls.seq_relationship.bias",
    }


# Heads of folders

MODULES = ["Transformer", "Pooling", "Normalize"]
MEAN = {"word_embedding_dimension": D, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}


def sentences(folder: Path, modules: list[str], pooling: dict[str, Any], path: str = "1_Pooling") -> Path:
    """A folder of sentence-transformers, as far as its head goes."""
    paths = {"Transformer": "", "Pooling": path}
    lines = [{"type": f"sentence_transformers.models.{kind}", "path": paths.get(kind, kind)} for kind in modules]
    (folder / "modules.json").write_text(json.dumps(lines))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def test_the_class_and_the_weights_say_which_head(tmp_path: Path) -> None:
    assert head_of(tmp_path, ["BertForMaskedLM"], ["bert.pooler.dense.weight"]) == kinds.MaskedToken()
    assert head_of(tmp_path, ["BertModel"], ["pooler.dense.weight"]) == kinds.Pooled(kinds.First(), dense=True)
    assert head_of(tmp_path, ["BertModel"], ["embeddings.LayerNorm.bias"]) == kinds.Features()


@pytest.mark.parametrize(
    ("field", "pooling"),
    [("cls_token", kinds.First()), ("mean_tokens", kinds.Mean()), ("max_tokens", kinds.Max())],
)
def test_folders_of_sentence_transformers(tmp_path: Path, field: str, pooling: kinds.Pooling) -> None:
    folder = sentences(tmp_path, MODULES, {f"pooling_mode_{field}": True, "include_prompt": True})
    assert head_of(folder, ["BertModel"], ["pooler.dense.weight"]) == kinds.Pooled(pooling, unit=True)
    config = read(SIZES | {"model_type": "bert", "architectures": ["BertModel"]})
    assert with_head(config, folder, ["BertModel"], []).head == kinds.Pooled(pooling, unit=True)
    lines = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(lines[:2]))
    assert head_of(folder, ["BertModel"], []) == kinds.Pooled(pooling)


@pytest.mark.parametrize(
    ("modules", "pooling", "path", "named"),
    [
        ([*MODULES[:2], "Dense"], MEAN, "1_Pooling", "Dense"),
        (["Pooling", "Transformer"], MEAN, "1_Pooling", "Pooling, Transformer"),
        (MODULES, MEAN, "../1_Pooling", "../1_Pooling"),
        (MODULES, MEAN, "", "''"),
        (MODULES, MEAN, "..", "'..'"),
        (MODULES, MEAN | {"pooling_mode_cls_token": True}, "1_Pooling", "First, Mean"),
        (MODULES, {}, "1_Pooling", "0"),
        (MODULES, {"pooling_mode_mean_sqrt_len_tokens": True}, "1_Pooling", "sqrt_len"),
        (MODULES, MEAN | {"pooling_mode_new": True}, "1_Pooling", "pooling_mode_new"),
    ],
)
def test_modules_that_no_head_is_are_refused(
    tmp_path: Path, modules: list[str], pooling: dict[str, Any], path: str, named: str
) -> None:
    with pytest.raises(UserError) as caught:
        head_of(sentences(tmp_path, modules, pooling, path), ["BertModel"], [])
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damaged", ["", "{", "[1]", '[{"type": "x"}]', "3", "[" * 100_000, "\xff"])
def test_a_damaged_list_of_modules(tmp_path: Path, damaged: str) -> None:
    (tmp_path / "modules.json").write_bytes(damaged.encode("latin-1"))
    with pytest.raises(UserError, match=r"modules\.json"):
        head_of(tmp_path, ["BertModel"], [])
