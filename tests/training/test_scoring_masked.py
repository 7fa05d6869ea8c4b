"""Scores of hidden tokens: the same ones at every call, whatever the batch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
from tokenizers import models, pre_tokenizers
from torch import Tensor

from clearhead.formats.load import Loaded
from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.choices import Features
from clearhead.models.config_encoders import EncoderConfig
from clearhead.ops.loss import IGNORED
from clearhead.text import CharacterTokenizer, LibraryTokenizer, MarkedTokenizer, Tokenizer
from clearhead.text.specials import never_made
from clearhead.training import masking, scoring_masked
from clearhead.training.masking import MaskedBatch, hiding_of, masked_whole
from clearhead.training.scoring import losses_of
from clearhead.training.scoring_masked import score_masked

CONTEXT = 9
TEXTS = ["abba cab dad bead abbacab.", "bad cab!", "dad", "", "ab"]
TOKENIZER = MarkedTokenizer(CharacterTokenizer.of("".join(TEXTS)), masked=True)
EXACT = {"rel": 1e-12, "abs": 0.0}


def guessing(tokenizer: Tokenizer = TOKENIZER, **choices: object) -> Loaded:
    """A small encoder that has learnt nothing."""
    config = EncoderConfig(layers=2, heads=2, width=8, context=CONTEXT, vocab=tokenizer.size, dropout=0.3, **choices)
    return Loaded(build(config, seed=2).double(), tokenizer, config, Path("nowhere"))


def one_by_one(loaded: Loaded, seed: int) -> list[tuple[float, bool]]:
    """-ln p of each hidden token, and whether it is guessed, by a forward for each window without padding."""
    documents = [TOKENIZER.encode_array(text) for text in TEXTS]
    marks = {"hiding": hiding_of(TOKENIZER), "begin": TOKENIZER.begin, "end": TOKENIZER.end}
    found = []
    for window in masked_whole(documents, CONTEXT, 1, seed, **marks):
        for inputs, targets, real in zip(*window, strict=True):
            with torch.no_grad():
                logs = loaded.model.eval()(inputs[real][None])[0].log_softmax(-1)
            for place, target in enumerate(targets[real].tolist()):
                if target != IGNORED:
                    found.append((-logs[place, target].item(), int(logs[place].argmax()) == target))
    return found


@pytest.mark.parametrize(("batch", "seed"), [(1, 0), (2, 0), (3, 5), (100, 0), (None, 5)])
def test_each_hidden_token_once_whatever_the_batch(batch: int | None, seed: int) -> None:
    loaded = guessing()
    wanted = one_by_one(loaded, seed)
    losses = [loss for loss, _ in wanted]
    told: list[tuple[int, int]] = []
    found = score_masked(loaded, TEXTS, batch=batch, seed=seed, progress=lambda *each: told.append(each))
    assert (found.tokens, found.seed, found.context) == (len(losses), seed, CONTEXT)
    assert found.loss == pytest.approx(sum(losses) / len(losses), **EXACT)
    assert found.perplexity == pytest.approx(math.exp(found.loss), **EXACT)
    assert found.right == sum(right for _, right in wanted)
    # Windows of nothing but marks are not read, so that the last is not quite all.
    assert told[0] == (sum(map(len, TEXTS)), 0)
    assert 0 <= told[-1][1] - told[-1][0] <= 2


def test_other_seeds_hide_other_tokens() -> None:
    loaded = guessing()
    assert score_masked(loaded, TEXTS) == score_masked(loaded, TEXTS)
    assert score_masked(loaded, TEXTS, seed=1).loss != score_masked(loaded, TEXTS).loss


def test_no_special_id_of_the_tokenizer_stands_for_a_hidden_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with a special token inside and a hole behind it: neither is among the inputs; the planted fault draws both."""
    vocab = {"[UNK]": 0, "abba": 1, "cab": 2, "<|im_end|>": 3, "dad": 6}
    library = tokenizers.Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    library.pre_tokenizer = pre_tokenizers.Whitespace()
    library.add_special_tokens(["<|im_end|>"])
    inner = LibraryTokenizer(library.to_str())
    assert never_made(inner) == {3, 4, 5}
    tokenizer = MarkedTokenizer(inner, masked=True)
    assert never_made(tokenizer) == {3, 4, 5, 7, 8, 9}
    monkeypatch.setattr(masking, "MASKED", 0.0)
    monkeypatch.setattr(masking, "RANDOM", 1.0)
    seen: set[int] = set()

    def watched(*given: Any, **more: Any) -> Iterator[MaskedBatch]:
        for batch in masked_whole(*given, **more):
            seen.update(batch.inputs[batch.targets != IGNORED].tolist())
            yield batch

    monkeypatch.setattr(scoring_masked, "masked_whole", watched)
    score_masked(guessing(tokenizer), ["abba cab dad x " * 20] * 9)
    assert seen == {0, 1, 2, 6}
    monkeypatch.setattr(masking, "never_made", lambda _: frozenset())
    score_masked(guessing(tokenizer), ["abba cab dad x " * 20] * 9)
    assert seen == {0, 1, 2, 3, 4, 5, 6}


def test_what_is_not_hidden_is_no_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: every place counts."""

    def fault(logits: Tensor, targets: Tensor) -> Tensor:
        return losses_of(logits, targets.clamp_min(0))

    loaded = guessing()
    wanted = one_by_one(loaded, 0)
    monkeypatch.setattr(scoring_masked, "losses_of", fault)
    found = score_masked(loaded, TEXTS)
    assert found.tokens != len(wanted)
    assert abs(found.loss - sum(loss for loss, _ in wanted) / len(wanted)) > 1e-6


def test_no_more_is_read_than_the_limit() -> None:
    loaded = guessing()
    found = score_masked(loaded, TEXTS, limit=9)
    assert found == score_masked(loaded, TEXTS[0][:9])
    assert found.tokens < score_masked(loaded, TEXTS).tokens


def test_what_cannot_guess_is_refused() -> None:
    with pytest.raises(UserError, match="head MaskedToken, and this model is Encoder, head Features"):
        score_masked(guessing(head=Features()), TEXTS)
    with pytest.raises(UserError, match="no mark that hides"):
        score_masked(guessing(MarkedTokenizer(TOKENIZER.inner)), TEXTS)
    with pytest.raises(UserError, match="batch = 0"):
        score_masked(guessing(), TEXTS, batch=0)
    with pytest.raises(UserError, match="limit = 0"):
        score_masked(guessing(), TEXTS, limit=0)
    with pytest.raises(UserError, match="1"):
        score_masked(guessing(), [""])
