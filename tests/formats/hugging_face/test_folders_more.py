"""Whole folders of Gemma 3, BERT and T5: as transformers saves them, loaded; and written again, as transformers loads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from clearhead.formats.hugging_face.export import export
from clearhead.formats.load import load
from clearhead.formats.rows import Change, Row
from clearhead.formats.weights import own_tensors
from clearhead.generation.generate import generate
from clearhead.messages import UserError
from clearhead.models import choices as kinds
from clearhead.models.build import build
from tests.formats.hugging_face import gemmas, test_bert, test_t5
from tests.formats.hugging_face.given import V, assert_near, opened, random_weights
from tests.oracles.compare import assert_same

hf = pytest.importorskip("transformers", reason="transformers is not installed")
FLOAT32 = 1e-5
IDS = torch.arange(12).reshape(2, 6) * 5 % V


def bare_bert(*, pooler: bool) -> Any:
    return random_weights(hf.BertModel(hf.BertConfig(**test_bert.SIZES), add_pooling_layer=pooler))


def t5(name: str) -> Any:
    """A model that can end a text."""
    theirs = test_t5.theirs_of(name)
    theirs.config.eos_token_id = theirs.generation_config.eos_token_id = 1
    return theirs


MODELS: dict[str, Callable[[], Any]] = {
    "Gemma 3": gemmas.theirs_of,
    "Gemma 3, a head of its own": lambda: gemmas.theirs_of("biases, a head of its own"),
    "BERT, masked": test_bert.theirs_of,
    "BERT, pooled": lambda: bare_bert(pooler=True),
    "BERT, features": lambda: bare_bert(pooler=False),
    "T5 1.0": lambda: t5("1.0"),
    "T5 1.1": lambda: t5("1.1"),
}


@torch.no_grad()
def made_by(theirs: Any) -> Tensor:
    """Logits, pooled vectors or features, of theirs."""
    name = type(theirs).__name__
    made = theirs(IDS, decoder_input_ids=IDS.flip(-1)) if name.startswith("T5") else theirs(IDS)
    if name != "BertModel":
        return made.logits
    return made.last_hidden_state if made.pooler_output is None else made.pooler_output


@torch.no_grad()
def made_by_ours(model: Any) -> Tensor:
    found: Tensor = model(IDS, IDS.flip(-1)) if hasattr(model, "decoder") else model(IDS)
    return found


@pytest.mark.parametrize("name", MODELS)
def test_saved_by_transformers_and_written_again(name: str, tmp_path: Path) -> None:
    theirs, again = MODELS[name](), tmp_path / "again"
    theirs.save_pretrained(tmp_path / "saved")
    loaded = load(tmp_path / "saved", device="cpu")
    assert_near(made_by_ours(loaded.model), made_by(theirs), FLOAT32)
    export(loaded, again)
    options = {"add_pooling_layer": False} if name == "BERT, features" else {}
    read = type(theirs).from_pretrained(again, **options).eval()
    assert_near(made_by(read), made_by(theirs), FLOAT32)
    back = load(again, device="cpu")
    assert back.config == loaded.config
    for tensor, expected in zip(back.model.parameters(), loaded.model.parameters(), strict=True):
        assert_same(tensor.detach(), expected.detach())


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_answers_of_t5(version: str, tmp_path: Path) -> None:
    """The source is closed and the answer begun by the ids that the folder names; in float64, where nothing is nearly a tie."""
    theirs = t5(version).double()
    with torch.no_grad():
        for tensor in theirs.parameters():
            tensor.mul_(1 if tensor.dim() == 1 else 2)
    theirs.save_pretrained(tmp_path)
    loaded, lengths = load(tmp_path, dtype="float64", device="cpu"), set()
    for seed in range(3):
        source = torch.randint(2, V, (5,), generator=torch.Generator().manual_seed(seed)).tolist()
        expected = theirs.generate(torch.tensor([[*source, 1]]), max_new_tokens=8, do_sample=False)[0, 1:].tolist()
        assert generate(loaded, source, max_tokens=8, temperature=0).ids == expected
        lengths.add(tuple(expected))
    assert len(lengths) > 1


def one_head(folder: Path) -> Any:
    """A 1.1 whose head is the embedding, as transformers saves it."""
    theirs = t5("1.1")
    theirs.lm_head.weight = theirs.shared.weight
    theirs.save_pretrained(folder)
    assert "lm_head.weight" not in load_file(folder / "model.safetensors")
    return type(theirs).from_pretrained(folder).eval()


def is_one(model: Any) -> bool:
    """Whether the head of a model of ours or theirs is its embedding."""
    if hasattr(model, "lm_head"):
        return model.lm_head.weight is model.shared.weight
    return model.decoder.head.weight is model.encoder.embedding.weight


@pytest.mark.parametrize("copied", [False, True], ids=["left out", "a copy"])
def test_the_head_of_a_t5_is_tied_where_theirs_is(tmp_path: Path, copied: bool) -> None:
    theirs, file, again = one_head(tmp_path), tmp_path / "model.safetensors", tmp_path / "again"
    held = load_file(file)
    if copied:
        save_file(held | {"lm_head.weight": held["shared.weight"].clone()}, file, {"format": "pt"})
        theirs = type(theirs).from_pretrained(tmp_path).eval()
    loaded = load(tmp_path, device="cpu")
    assert is_one(theirs)
    assert is_one(loaded.model)
    assert (loaded.config.tied, loaded.config.scale_head) == (True, False)
    assert_near(made_by_ours(loaded.model), made_by(theirs), FLOAT32)
    export(loaded, again)
    # Releases before 5 ask for it.
    assert_same(load_file(again / "model.safetensors")["lm_head.weight"], held["shared.weight"])
    assert not json.loads((again / "config.json").read_text())["tie_word_embeddings"]
    back, read = load(again, device="cpu"), type(theirs).from_pretrained(again).eval()
    assert back.config == loaded.config
    assert is_one(back.model)
    assert is_one(read)
    assert_near(made_by(read), made_by(theirs), FLOAT32)


def test_the_head_of_a_t5_is_its_own_where_theirs_is(tmp_path: Path) -> None:
    """By a single number."""
    theirs, file = one_head(tmp_path), tmp_path / "model.safetensors"
    held = load_file(file)
    other = held["shared.weight"].clone()
    other[-1, -1] += 1
    save_file(held | {"lm_head.weight": other}, file, {"format": "pt"})
    theirs = type(theirs).from_pretrained(tmp_path).eval()
    assert not is_one(theirs)
    loaded = load(tmp_path, device="cpu")
    assert not is_one(loaded.model)
    assert_near(made_by_ours(loaded.model), made_by(theirs), FLOAT32)


def test_the_names_of_the_first_releases(tmp_path: Path) -> None:
    """As bert-base-uncased: gamma and beta; what else was trained; no second copy of the embedding."""
    theirs = test_bert.theirs_of("pre-training")
    theirs.save_pretrained(tmp_path)
    held = load_file(tmp_path / "model.safetensors")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in held.items()
    }
    assert old.keys() != held.keys()
    save_file(old, tmp_path / "model.safetensors")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": ["BertForMaskedLM"]}))
    with torch.no_grad():
        expected = theirs(IDS).prediction_logits
    assert_near(made_by_ours(load(tmp_path, device="cpu").model), expected, FLOAT32)


def test_a_folder_of_sentence_transformers(tmp_path: Path) -> None:
    theirs = bare_bert(pooler=True)
    theirs.save_pretrained(tmp_path)
    test_bert.sentences(tmp_path, test_bert.MODULES, test_bert.MEAN)
    loaded = load(tmp_path, device="cpu")
    assert loaded.config.head == kinds.Pooled(kinds.Mean(), unit=True)
    assert loaded.report is not None
    assert any("pooler" in name for name in loaded.report.unused)
    with torch.no_grad():
        mean = theirs(IDS).last_hidden_state.mean(1)
    assert_near(made_by_ours(loaded.model), mean / mean.norm(dim=-1, keepdim=True), FLOAT32)


def test_a_gemma_that_sees_pictures_is_refused(tmp_path: Path) -> None:
    """By its name, with that of the model of texts."""
    text = {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3"}
    (tmp_path / "config.json").write_text(json.dumps(text))
    with pytest.raises(UserError, match="gemma3_text") as caught:
        load(tmp_path, device="cpu")
    assert "\n" not in str(caught.value)


# Tables


def check_table(rows: Sequence[Row], config: Any) -> None:
    """Each tensor of ours has one row, and what a row takes apart it puts together."""
    ours = build(config, device="meta")
    own, state = own_tensors(ours), ours.state_dict()
    names = [row.ours for row in rows]
    assert len(set(names)) == len(names)
    assert own.keys() <= set(names) <= state.keys()
    for row in rows:
        drawn = torch.randn(state[row.ours].shape)
        parts = row.split(drawn)
        assert_same(row.join([parts[part.name] for part in row.parts]), drawn)
    theirs = [part.name for row in rows for part in row.parts]
    assert len(set(theirs)) == len(theirs)


TABLES = [name for name in MODELS if name != "BERT, features"]


@pytest.mark.parametrize("name", TABLES)
def test_tables_read_backwards(name: str) -> None:
    found = opened(MODELS[name]())
    check_table(found.rows, found.config)


def test_a_table_that_does_not_is_caught() -> None:
    found = opened(test_t5.theirs_of())
    turned = replace(found.rows[0], parts=(replace(found.rows[0].parts[0], change=Change(Tensor.t, torch.clone)),))
    for rows in (found.rows[1:], (*found.rows, found.rows[0]), (turned, *found.rows[1:])):
        with pytest.raises(AssertionError):
            check_table(rows, found.config)
