"""Scores of answers: every token of every target, its end mark included, whatever the batch."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from clearhead.formats.load import Loaded
from clearhead.generation.generate import generate
from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.ops.loss import IGNORED
from clearhead.text import CharacterTokenizer, MarkedTokenizer, Pair
from clearhead.training import scoring_pairs
from clearhead.training.fit import evaluate
from clearhead.training.losses import exact_match, target_token
from clearhead.training.pair_data import Place
from clearhead.training.pairs import IdPair, Marks, batch_of
from clearhead.training.scoring import losses_of, score
from clearhead.training.scoring_pairs import score_pairs

PAIRS = [Pair("abc", "cb"), Pair("b", "caabc"), Pair("ccabacc", "a"), Pair("ab", "cbc"), Pair("caba", "bb")]
TOKENIZER = MarkedTokenizer(CharacterTokenizer.of("abc"))
MARKS = Marks(TOKENIZER.begin, TOKENIZER.end)
EXACT = {"rel": 1e-12, "abs": 0.0}


def answering() -> Loaded:
    """A small encoder-decoder that has learnt nothing."""
    config = EncoderDecoderConfig(layers=2, heads=2, width=8, context=6, source_context=8, vocab=6, dropout=0.3)
    return Loaded(build(config, seed=4).double(), TOKENIZER, config, Path("nowhere"))


def one_by_one(loaded: Loaded) -> list[float]:
    """-ln p of every token of the targets, each by a forward of its own, without padding."""
    model, losses = loaded.model.eval(), []
    for source, target in PAIRS:
        read = torch.tensor([[*TOKENIZER.encode(source), MARKS.end]])
        ids = [MARKS.begin, *TOKENIZER.encode(target), MARKS.end]
        for place in range(1, len(ids)):
            with torch.no_grad():
                logits = model(read, torch.tensor([ids[:place]]))[0, -1]
            losses.append(-(logits - logits.exp().sum().log())[ids[place]].item())
    return losses


@pytest.mark.parametrize("batch", [1, 2, 3, 100, None])
def test_each_token_once_whatever_the_batch(batch: int | None) -> None:
    loaded = answering()
    losses = one_by_one(loaded)
    told: list[tuple[int, int]] = []
    found = score_pairs(loaded, PAIRS, batch=batch, progress=lambda *each: told.append(each))
    assert (found.tokens, found.pairs) == (len(losses), len(PAIRS))
    assert found.loss == pytest.approx(sum(losses) / len(losses), **EXACT)
    assert found.perplexity == pytest.approx(math.exp(found.loss), **EXACT)
    assert told[-1] == (found.tokens, found.tokens)


def test_it_is_the_validation_loss_of_a_training() -> None:
    loaded = answering()
    ids = [IdPair(*map(TOKENIZER.encode_array, pair)) for pair in PAIRS]
    found = score_pairs(loaded, PAIRS)
    assert found.loss == pytest.approx(evaluate(loaded.model, [batch_of(ids, MARKS)], target_token), **EXACT)
    assert found.exact_match == evaluate(loaded.model, [batch_of(ids, MARKS)], exact_match)


def test_right_answers_are_those_that_greedy_decoding_writes() -> None:
    loaded = answering()
    loaded.model.eval()
    answers = [generate(loaded, pair.source, max_tokens=6, temperature=0) for pair in PAIRS]
    # Two of the pairs become what the model says; of the others, nothing is known but that it says something else.
    pairs = [Pair(pair.source, answer.text) for pair, answer in zip(PAIRS, answers, strict=True)][:2] + PAIRS[2:]
    finished = [answer.finish_reason == "eos" for answer in answers[:2]]
    assert all(finished)
    assert score_pairs(loaded, pairs, batch=2).right == 2
    assert score_pairs(loaded, PAIRS).right == 0


@pytest.mark.parametrize("clamped", [True, False])
def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch, clamped: bool) -> None:
    """Padding as a target, or the end mark as none."""

    def fault(logits: Tensor, targets: Tensor) -> Tensor:
        return losses_of(
            logits, targets.clamp_min(0) if clamped else targets.masked_fill(targets == MARKS.end, IGNORED)
        )

    monkeypatch.setattr(scoring_pairs, "losses_of", fault)
    loaded = answering()
    losses = one_by_one(loaded)
    found = score_pairs(loaded, PAIRS)
    assert found.tokens != len(losses)
    assert abs(found.loss - sum(losses) / len(losses)) > 1e-6


def test_a_pair_that_is_too_long_is_named() -> None:
    long_source, long_target = Pair("abcabcab", "a"), Pair("a", "abcabc")
    with pytest.raises(UserError, match="the source of pair 6 needs 9 positions with its mark, and the model has 8"):
        score_pairs(answering(), [*PAIRS, long_source])
    places = [Place("some.tsv", line) for line in (1, 4)]
    with pytest.raises(UserError, match=r"the target of line 4 of some.tsv needs 7 positions .* has 6"):
        score_pairs(answering(), [PAIRS[0], long_target], places=places)


def test_what_is_not_of_the_kind_is_refused() -> None:
    config = DecoderConfig(layers=1, heads=2, width=8, context=6, vocab=6)
    decoder = Loaded(build(config, seed=0), TOKENIZER, config, Path("nowhere"))
    with pytest.raises(UserError, match="by an encoder-decoder, and this model is another kind, Decoder"):
        score_pairs(decoder, PAIRS)
    with pytest.raises(UserError, match="by a decoder, and this model is an EncoderDecoder"):
        score(answering(), "abc")
    with pytest.raises(UserError, match="no pair"):
        score_pairs(answering(), [])
    with pytest.raises(UserError, match="batch = 0"):
        score_pairs(answering(), PAIRS, batch=0)
