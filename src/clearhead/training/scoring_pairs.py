"""How well an encoder-decoder answers sources: loss for each token of the targets, and answers wholly right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from clearhead.formats.load import Loaded
from clearhead.messages import UserError, say
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.loss import IGNORED
from clearhead.text import Pair
from clearhead.training.fit import evaluating
from clearhead.training.pair_data import EVALUATION_PAIRS, EVALUATION_SCORES, Place
from clearhead.training.pairs import IdPair, Marks, all_pairs
from clearhead.training.scoring import Progress, checked, losses_of, perplexity, sum_of, unseen


@dataclass(frozen=True)
class PairScore:
    """How well an encoder-decoder answers."""

    loss: float
    """Mean of -ln p over all tokens of the targets, end marks among them (nats per token)."""
    tokens: int
    """How many they are."""
    right: int
    """How many answers greedy decoding gets wholly right, end mark included."""
    pairs: int
    """How many there are."""

    @property
    def perplexity(self) -> float:
        """exp(loss); infinite where no float is so large."""
        return perplexity(self.loss)

    @property
    def exact_match(self) -> float:
        """right / pairs."""
        return self.right / self.pairs


def score_pairs(
    loaded: Loaded,
    pairs: Sequence[Pair],
    *,
    places: Sequence[Place] = (),
    batch: int | None = None,
    progress: Progress = unseen,
) -> PairScore:
    """Score every pair once: each token of its target, the source and the right beginning read.

    Args:
        loaded: what `load` gave.
        pairs: at least one.
        places: where each was read, to name one that is too long.
        batch: pairs that go through the model together; bounded by their number and their scores if None.
        progress: is told the tokens done and all of them, after each batch.

    Raises:
        UserError: if the model is no encoder-decoder, a pair is longer than its contexts, or `batch` is below 1.
    """
    model, tokenizer = loaded.model, loaded.tokenizer
    begin, end = tokenizer.begin, tokenizer.end
    if not isinstance(model, EncoderDecoder) or begin is None or end is None:
        raise UserError(say("scoring.wants_pairs", name=type(model).__name__))
    if not pairs:
        raise UserError(say("scoring.no_pairs"))
    most = EVALUATION_PAIRS if batch is None else checked("batch", batch)
    ids = [IdPair(tokenizer.encode_array(pair.source), tokenizer.encode_array(pair.target)) for pair in pairs]
    _must_fit(ids, model, places)
    marks = Marks(begin, end)
    device = next(model.parameters()).device
    tokens = sum(len(pair.target) + 1 for pair in ids)
    total, done, right = 0.0, 0, 0
    with evaluating(model):
        for each in all_pairs(ids, marks, most, scores=EVALUATION_SCORES):
            some = each.to(device)
            logits = model(some.source, some.inputs, source_real=some.source_real)
            losses = losses_of(logits, some.targets)
            total, done = total + sum_of(losses), done + len(losses)
            # Greedy decoding writes the target if and only if each of its tokens is the best one behind the ones before it.
            answered = ((logits.argmax(-1) == some.targets) | (some.targets == IGNORED)).all(-1)
            right += int(torch.count_nonzero(answered))
            progress(done, tokens)
    return PairScore(total / done, done, right, len(ids))


def _must_fit(ids: Sequence[IdPair], model: EncoderDecoder, places: Sequence[Place]) -> None:
    """Raise a UserError for the first pair that the model cannot read whole."""
    for number, pair in enumerate(ids):
        source, target = len(pair.source) + 1, len(pair.target) + 1
        if source > model.encoder.context:
            place, context = _where(number, places), model.encoder.context
            raise UserError(say("scoring.source_too_long", place=place, length=source, context=context))
        if target > model.decoder.context:
            place, context = _where(number, places), model.decoder.context
            raise UserError(say("scoring.target_too_long", place=place, length=target, context=context))


def _where(number: int, places: Sequence[Place]) -> str:
    if places:
        return say("scoring.line", path=places[number].path, line=places[number].line)
    return say("scoring.pair", number=number + 1)
