"""The model that comes with clearhead: how large it is, how soon it is there, and that it writes both languages."""

import json
import re
import time

import pytest
import torch
from safetensors import safe_open

from clearhead.formats.load import Loaded, load
from clearhead.formats.packages import BUILT_IN, built_in
from clearhead.generation.generate import generate
from clearhead.text import corpus
from clearhead.text.corpus.grammar import STORY_END
from clearhead.web.files import builtin
from clearhead.web.told import model_told

MOST = 2_000_000
SENTENCES = {"en": r"[A-Z][a-z]+[a-z, ]*[a-z]+[.!?]", "zh": r"[\u4e00-\u9fff，]{4,}[。！？]"}


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return load(BUILT_IN)


def test_it_is_small(loaded: Loaded) -> None:
    files = [each for each in built_in().rglob("*") if each.is_file()]
    assert sum(each.stat().st_size for each in files) < MOST
    assert builtin() == built_in()
    with safe_open(loaded.source / "model.safetensors", "pt") as weights:
        assert {weights.get_tensor(name).dtype for name in weights.keys()} == {torch.bfloat16}  # noqa: SIM118


def test_it_is_there_at_once() -> None:
    # The first in this process pays for what is imported.
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        load(BUILT_IN)
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 1


@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_writes_whole_sentences_of_both_languages(loaded: Loaded, language: str) -> None:
    for prompt in json.loads((built_in() / "prompts.json").read_text("utf-8"))[language]:
        text = generate(loaded, prompt, max_tokens=60, temperature=0.0).text
        assert re.search(SENTENCES[language], text), text
        # What the grammar cannot write has no derivation: this finds the first character that it would not.
        story = (prompt + text).removesuffix(STORY_END)
        assert corpus.surprisals(story).shape == (len(story),)


def test_its_prompts_are_what_the_page_offers(loaded: Loaded) -> None:
    told = json.loads(model_told(loaded).body)
    own = json.loads((built_in() / "prompts.json").read_text("utf-8"))
    assert told["name"] == "built-in"
    assert told["language"] == "en zh"
    assert [each["text"] for each in told["prompts"]] == own["en"] + own["zh"]
