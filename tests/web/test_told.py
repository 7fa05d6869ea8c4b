"""What a page is told of a model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clearhead.formats.load import Loaded
from clearhead.models.cost import parameters
from clearhead.text import ByteTokenizer, CharacterTokenizer
from clearhead.web import told
from clearhead.web.opening import opened
from clearhead.web.told import EXAMPLES, languages, model_told, name_of
from tests.web.read_models import TEXT, decoder, encoder, pair


def of(loaded: Loaded, name: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(model_told(loaded, name).body)
    return found


def test_sizes_are_those_of_the_model() -> None:
    found = of(decoder("free head width"), "mine")
    assert (found["name"], found["kind"], found["origin"]) == ("mine", "decoder", "clearhead")
    sizes = [found[key] for key in ("layers", "heads", "kv_heads", "width", "head_width", "vocab", "context")]
    assert sizes == [2, 4, 1, 24, 10, 11, 16]
    assert found["parameters"] == sum(parameters(decoder("free head width").config).values())
    assert (found["tied"], found["encoder_layers"], found["source_context"]) == (True, None, None)
    session = opened(decoder(), TEXT)
    assert told.answer(session, {}).body == model_told(session.loaded).body


def test_kinds_of_models() -> None:
    assert of(encoder())["kind"] == "encoder"
    both = of(pair("T5"))
    assert (both["kind"], both["layers"], both["encoder_layers"], both["source_context"]) == (
        "encoder_decoder", 2, 3, 17,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("runs/x/checkpoints/000100", "x"),
        ("models/gpt2", "gpt2"),
        ("a/small.Q4.gguf", "small.Q4"),
        ("a/b/model.safetensors", "b"),
        ("a/minilm/model", "minilm"),
    ],
)
def test_the_name_is_that_of_the_run_folder_or_file(source: str, name: str) -> None:
    assert name_of(replace(decoder(), source=Path(source))) == name


def test_prompts_are_those_that_the_model_can_read() -> None:
    every = CharacterTokenizer.of("".join(text for texts in EXAMPLES.values() for text in texts))
    assert languages(every) == ["en", "zh"]
    found = of(replace(decoder(), tokenizer=every))
    assert [each["text"] for each in found["prompts"]] == [*EXAMPLES["en"], *EXAMPLES["zh"], *EXAMPLES["mixed"]]
    assert {each["target"] for each in found["prompts"]} == {None}
    assert {each["target"] for each in of(replace(pair(), tokenizer=every))["prompts"]} == {None}
    english = CharacterTokenizer.of("".join(EXAMPLES["en"]))
    assert languages(english) == ["en"]
    assert [each["text"] for each in of(replace(decoder(), tokenizer=english))["prompts"]] == [*EXAMPLES["en"]]
    assert languages(CharacterTokenizer.of("".join(EXAMPLES["zh"]))) == ["zh"]
    assert languages(ByteTokenizer()) == ["en"], "three bytes a character are no Chinese"
    assert of(decoder())["prompts"] == []
