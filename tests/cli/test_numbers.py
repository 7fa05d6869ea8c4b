"""Models without a tokenizer: what they read and write is said, and numbers stay apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.formats.hugging_face.export import export
from clearhead.formats.load import Loaded
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.text.numbers import NumberTokenizer
from tests.cli.runs import Clearhead

ALONE = "{} has no tokenizer: its texts are ids, written as numbers with spaces between (5 17 3); whatever else is written is left out."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A Hugging Face folder without a tokenizer."""
    config = DecoderConfig(layers=1, heads=2, width=8, context=9, vocab=23)
    export(Loaded(build(config, seed=1).eval(), NumberTokenizer(23, begin=0), config, Path()), tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("prompt", ["5 6", "5 6 ", "7\n"])
def test_the_answer_does_not_touch_the_prompt(clearhead: Clearhead, folder: Path, prompt: str) -> None:
    said = clearhead("generate", folder, "-p", prompt, "--max-tokens", 3)
    assert said.err.splitlines()[0] == ALONE.format(folder)
    begin = prompt if prompt[-1].isspace() else prompt + " "
    assert said.out.startswith(begin)
    # The planted fault ran 6 and 17 together.
    assert len(said.out.split()) == len(prompt.split()) + 3
    many = clearhead("generate", folder, "-p", prompt, "--max-tokens", 3, "--n", 2)
    assert many.out.splitlines()[1] == said.out.splitlines()[0]


def test_words_are_not_left_out_in_silence(clearhead: Clearhead, folder: Path) -> None:
    said = clearhead("generate", folder, "-p", "Once", "--max-tokens", 2)
    assert said.out.startswith("Once ")
    assert ALONE.format(folder) in said.err.splitlines()


def test_a_model_with_words_says_nothing_of_numbers(clearhead: Clearhead, trained: Path) -> None:
    said = clearhead("generate", trained, "-p", "On day 5", "--max-tokens", 3)
    assert "no tokenizer" not in said.err
    assert said.out.startswith("On day 5")


def test_training_on_words_names_the_reason(clearhead: Clearhead, folder: Path, text: Path, tmp_path: Path) -> None:
    words, numbers = tmp_path / "words.txt", tmp_path / "numbers.txt"
    words.write_text("the cat saw a bird " * 100, encoding="utf-8")
    numbers.write_text("5 17 3 4 " * 300, encoding="utf-8")
    line = clearhead("train", words, "--init", folder, "--out", tmp_path / "run", "--steps", 1).mistake
    assert line.startswith(
        "the model has no tokenizer, so that its texts are ids, numbers with spaces between (5 17 3)"
    )
    assert not (tmp_path / "run").exists()
    said = clearhead("train", numbers, "--init", folder, "--out", tmp_path / "run", "--steps", 1, "--batch", 2)
    assert said.status == 0
    assert ALONE.format(folder) in said.err.splitlines()
