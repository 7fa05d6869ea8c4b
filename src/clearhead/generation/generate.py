"""Generating text with a loaded model: a decoder continues a prompt, an encoder-decoder answers it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch

from clearhead.formats.load import Loaded
from clearhead.generation.loop import Step, decode
from clearhead.generation.sampling import SamplingSettings
from clearhead.messages import UserError, say
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text import MarkedTokenizer


@dataclass(frozen=True)
class Generation:
    """What was generated, without the prompt."""

    text: str
    ids: list[int]
    logprobs: list[float]
    """Log of the probability that the settings gave each token (nats)."""


@dataclass(frozen=True)
class Piece:
    """One step of a stream: a token, and the text that became whole with it (often one character, maybe none)."""

    text: str
    step: Step | None
    """None for the last piece, which holds what was still unfinished."""


def generate(
    loaded: Loaded,
    prompt: str | Sequence[int],
    *,
    max_tokens: int = 200,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
) -> Generation:
    """Continue `prompt` by `max_tokens` tokens; or, with an encoder-decoder, answer it by at most so many.

    An answer ends with the end mark, which is among its ids and not in its text, or when the model's context is full.

    Args:
        loaded: what `load` gave.
        prompt: text or token ids, at least one token; for an encoder-decoder the source, without marks.
        max_tokens: how many tokens to generate at most, at least 0.
        temperature: 1 draws from the model's own distribution, below is bolder, 0 takes the best token.
        top_k: draw among the k best tokens only.
        seed: the same seed gives the same text on the same machine.

    Raises:
        UserError: if the prompt is empty, holds an id outside the vocabulary or is too long to be read as a source, or
            a setting is out of range.
    """
    return gathered(stream(loaded, prompt, max_tokens=max_tokens, temperature=temperature, top_k=top_k, seed=seed))


def gathered(pieces: Iterable[Piece]) -> Generation:
    """All pieces of a stream as one generation."""
    known = list(pieces)
    steps = [piece.step for piece in known if piece.step is not None]
    return Generation(
        "".join(piece.text for piece in known), [step.id for step in steps], [step.logprob for step in steps]
    )


def stream(
    loaded: Loaded,
    prompt: str | Sequence[int],
    *,
    max_tokens: int = 200,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
) -> Iterator[Piece]:
    """The same as `generate`, piece by piece as it is written; only whole characters, and joined they are the text."""
    settings = SamplingSettings(temperature=temperature, top_k=top_k)
    ids = loaded.tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt)
    if not ids:
        raise UserError(say("generation.empty_prompt"))
    config = loaded.config
    vocab = config.encoder.vocab if isinstance(config, EncoderDecoderConfig) else config.vocab
    if wrong := [id for id in ids if not 0 <= id < vocab]:
        raise UserError(say("models.id_outside", id=wrong[0], vocab=vocab))
    if max_tokens < 0:
        raise UserError(say("generation.max_tokens", value=max_tokens))
    return _pieces(loaded, islice(_steps(loaded, ids, settings, seed), max_tokens))


def _pieces(loaded: Loaded, steps: Iterable[Step]) -> Iterator[Piece]:
    text = loaded.tokenizer.stream()
    for step in steps:
        yield Piece(text.push(step.id), step)
    yield Piece(text.finish(), None)


def _steps(loaded: Loaded, ids: Sequence[int], settings: SamplingSettings, seed: int) -> Iterator[Step]:
    if isinstance(loaded.model, EncoderDecoder):
        assert isinstance(loaded.tokenizer, MarkedTokenizer), "an answer needs marks that begin and end it"
        return _answer(loaded.model, loaded.tokenizer, ids, settings, seed)
    return decode(loaded.model, ids, settings, seed=seed)


def _answer(
    model: EncoderDecoder, tokenizer: MarkedTokenizer, ids: Sequence[int], settings: SamplingSettings, seed: int
) -> Iterator[Step]:
    """Read the source once, then write from the begin mark to the end mark, or until the context is full."""
    source = torch.tensor([[*ids, tokenizer.end]], device=next(model.parameters()).device)
    with torch.inference_mode():
        memory = model.remember(source)
    steps = decode(model.decoder, [tokenizer.begin], settings, seed=seed, around=memory.beside)
    for step in islice(steps, model.decoder.context):
        yield step
        if step.id == tokenizer.end:
            return
