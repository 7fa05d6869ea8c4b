"""Generating text with a loaded model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from clearhead.formats.load import Loaded
from clearhead.generation.loop import Step, decode
from clearhead.generation.sampling import SamplingSettings
from clearhead.messages import UserError, say


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
    """Continue `prompt` by `max_tokens` tokens.

    Args:
        loaded: what `load` gave.
        prompt: text or token ids, at least one token.
        max_tokens: how many tokens to generate, at least 0.
        temperature: 1 draws from the model's own distribution, below is bolder, 0 takes the best token.
        top_k: draw among the k best tokens only.
        seed: the same seed gives the same text on the same machine.

    Raises:
        UserError: if the prompt is empty or holds an id outside the vocabulary, or a setting is out of range.
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
    if wrong := [id for id in ids if not 0 <= id < loaded.config.vocab]:
        raise UserError(say("models.id_outside", id=wrong[0], vocab=loaded.config.vocab))
    if max_tokens < 0:
        raise UserError(say("generation.max_tokens", value=max_tokens))
    return _pieces(loaded, ids, settings, max_tokens, seed)


def _pieces(
    loaded: Loaded, ids: Sequence[int], settings: SamplingSettings, max_tokens: int, seed: int
) -> Iterator[Piece]:
    text = loaded.tokenizer.stream()
    for step in islice(decode(loaded.model, ids, settings, seed=seed), max_tokens):
        yield Piece(text.push(step.id), step)
    yield Piece(text.finish(), None)
