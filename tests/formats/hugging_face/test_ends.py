"""Models that several ids end: `generate` stops where that of `transformers` does, and none is lost on any way."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel

from clearhead.formats.hugging_face.export import export
from clearhead.formats.imported import import_model
from clearhead.formats.load import Loaded, load
from clearhead.generation.generate import generate
from clearhead.generation.request import Request, ends_of
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig
from clearhead.training.plan import new_plan
from tests.formats.hugging_face.given import random_weights
from tests.formats.hugging_face.test_words import END, START, TEXT, V, bert, folder_of, llama3, older, read

PROMPT, LONG = [5, 17, 3], 12


def written(model: Any) -> list[int]:
    """What `transformers` writes behind the prompt."""
    ids: list[int] = model.generate(torch.tensor([PROMPT]), max_new_tokens=LONG, do_sample=False)[0].tolist()
    return ids[len(PROMPT) :]


def ours(loaded: Loaded) -> list[int]:
    return generate(loaded, PROMPT, max_tokens=LONG, temperature=0).ids


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model that writes on, and that the second of two ids ends after a few tokens; it has no tokenizer."""
    config = GPT2Config(
        vocab_size=41, n_embd=12, n_head=3, n_layer=2, n_positions=20, eos_token_id=None, tie_word_embeddings=False
    )
    model = random_weights(GPT2LMHeadModel(config)).double()
    with torch.no_grad():
        # Positions count, so that no token is written again and again.
        model.transformer.wpe.weight.mul_(20)
    model.generation_config = GenerationConfig()
    without = written(model)
    assert len(without) == LONG
    last = next(id for place, id in enumerate(without[2:], start=2) if id not in without[:place])
    first = next(id for id in range(41) if id not in without)
    model.generation_config = GenerationConfig(eos_token_id=[first, last], pad_token_id=0)
    model.save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


def test_each_of_several_ids_ends_a_text(folder: Path) -> None:
    loaded, expected = load(folder, dtype="float64", device="cpu"), written(GPT2LMHeadModel.from_pretrained(folder))
    assert loaded.tokenizer.end == loaded.ends[0] != expected[-1] == loaded.ends[1]
    assert ours(loaded) == expected
    assert generate(loaded, PROMPT, max_tokens=LONG, temperature=0).finish_reason == "eos"
    # The planted fault: the tokenizer's end alone.
    assert len(ours(replace(loaded, ends=()))) > len(expected)
    assert ends_of(loaded, Request(PROMPT, eos=[3])) == {3}


def test_none_is_lost_in_a_run_a_training_or_an_export(folder: Path, tmp_path: Path) -> None:
    loaded = load(folder, dtype="float64", device="cpu")
    import_model(loaded, tmp_path / "run")
    assert load(tmp_path / "run", device="cpu").ends == loaded.ends
    export(load(tmp_path / "run", dtype="float64", device="cpu"), tmp_path / "again")
    for name in ("config.json", "generation_config.json"):
        assert json.loads((tmp_path / "again" / name).read_text("utf-8"))["eos_token_id"] == [*loaded.ends]
    assert written(GPT2LMHeadModel.from_pretrained(tmp_path / "again")) == ours(loaded)
    assert load(tmp_path / "again", device="cpu").ends == loaded.ends
    (tmp_path / "text.txt").write_text("5 17 3 4 9 " * 200, encoding="utf-8")
    given = {"steps": 1, "batch": 2}
    plan = new_plan(tmp_path / "new", [str(tmp_path / "text.txt")], given, init=str(folder), device=torch.device("cpu"))
    assert plan.run.ends == loaded.ends


def test_one_end_is_the_tokenizers(folder: Path) -> None:
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 7}), encoding="utf-8")
    loaded = load(folder, device="cpu")
    assert (loaded.ends, loaded.tokenizer.end, ends_of(loaded, Request(PROMPT))) == ((), 7, {7})


def test_as_gemma_3_and_as_llama_3_are_published(tmp_path: Path) -> None:
    """The tokenizer ends texts, the configuration turns, too; or the other way round."""
    (tmp_path / "gemma").mkdir()
    declared = {"added_tokens_decoder": {str(V + 1): {"content": END, "special": True}}, "eos_token": TEXT}
    gemma = folder_of(tmp_path / "gemma", lambda folder: older(folder, **declared), "qwen2")
    (gemma / "generation_config.json").write_text(json.dumps({"eos_token_id": [V - 1, V + 1]}), encoding="utf-8")
    words = read(gemma, DecoderConfig(vocab=V + 2))
    end = words.tokenizer.specials[TEXT]
    assert (words.tokenizer.end, words.ends) == (end, tuple(dict.fromkeys([end, V - 1, V + 1])))
    (tmp_path / "llama").mkdir()
    llama = folder_of(tmp_path / "llama", llama3, "llama", eos_token_id=[9, 11, V + 1, V + 2])
    words = read(llama, DecoderConfig(vocab=V + 2))
    mark = words.tokenizer.specials[END]
    # An id that the model does not have ends nothing.
    assert (words.tokenizer.end, words.ends) == (mark, tuple(dict.fromkeys([mark, 9, 11, V + 1])))
    assert START in words.tokenizer.specials


def test_an_encoder_writes_nothing(tmp_path: Path) -> None:
    assert read(folder_of(tmp_path, bert, "bert", eos_token_id=[4, 5]), EncoderConfig(vocab=64)).ends == ()
