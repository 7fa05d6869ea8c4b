"""What `make demo` promises of its model, measured on a model trained by the very command."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from clearhead.cli.main import main
from clearhead.formats.load import load
from clearhead.generation.generate import generate
from tests.text.story_parser import is_sentence, sentences

SAMPLE = 2_000


@pytest.mark.slow
def test_four_of_five_sentences_of_the_demo_are_of_the_grammar(tmp_path: Path) -> None:
    """Trained for as many steps as the demo picks on two cores; the sample is drawn as `clearhead generate` draws it."""
    torch.set_num_threads(2)
    assert main(["train", "--out", str(tmp_path / "demo"), "--steps", "1700"]) == 0
    text = generate(load(tmp_path / "demo"), "\n", max_tokens=SAMPLE, temperature=0.8, seed=1).text
    found = sentences(text)
    right = sum(is_sentence(sentence) for sentence in found)
    assert len(found) > 20
    assert right >= 0.8 * len(found), f"{right} of {len(found)}"
