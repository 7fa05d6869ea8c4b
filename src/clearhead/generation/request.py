"""What a user asks for: a prompt, how to choose, where to end."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from operator import index

from clearhead.formats.load import Loaded, writer_of
from clearhead.generation.sampling import SamplingSettings
from clearhead.messages import UserError, say
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.encoder_decoder import EncoderDecoder


@dataclass(frozen=True)
class Request:
    """One text to be written.

    Args:
        prompt: text or token ids; for an encoder-decoder the source, without marks. Empty where the tokenizer has a mark that
            begins a text.
        max_tokens: how many tokens to write at most.
        sampling: how to choose.
        seed: of the draws; the same seed writes the same text, whatever is written beside it.
        stop: strings that end the text, which does not contain them.
        eos: ids that end the text; those of the model, or else of its tokenizer, if None.
        alternatives: how many of the best tokens each step names.

    Raises:
        UserError: if a value is out of range.
    """

    prompt: str | Sequence[int]
    max_tokens: int = 200
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    seed: int = 0
    stop: Sequence[str] = ()
    eos: Collection[int] | None = None
    alternatives: int = 0

    def __post_init__(self) -> None:
        if self.max_tokens < 0:
            raise UserError(say("generation.max_tokens", value=self.max_tokens))
        if self.alternatives < 0:
            raise UserError(say("generation.setting", name="alternatives", value=self.alternatives, wanted="≥ 0"))
        if isinstance(self.stop, str):
            raise UserError(say("generation.stop_list", value=self.stop))
        if "" in self.stop:
            raise UserError(say("generation.stop_empty"))


def ids_of(loaded: Loaded, request: Request) -> tuple[list[int], tuple[int, ...]]:
    """The ids that the decoder begins with, and the source that the encoder reads (empty for a decoder alone).

    Raises:
        UserError: if the model is an encoder, the prompt is empty and nothing can stand for it, a source is too long, or an id is outside the vocabulary.
        TypeError: if an id is no whole number.
    """
    model, tokenizer, prompt = writer_of(loaded), loaded.tokenizer, request.prompt
    # What is no whole number is refused: a tensor would cut it off without a word.
    ids = loaded.read(prompt) if isinstance(prompt, str) else [index(id) for id in prompt]
    config = loaded.config
    vocab = config.encoder.vocab if isinstance(config, EncoderDecoderConfig) else config.vocab
    for id in ids:
        within(id, vocab)
    # What the settings name is looked at here, before anything is written.
    for id in (*(request.eos or ()), *request.sampling.logit_bias, *(request.sampling.allowed or ())):
        within(id, config.vocab)
    if isinstance(model, EncoderDecoder):
        assert tokenizer.begin is not None, "an answer needs marks that begin and end it"
        assert tokenizer.end is not None
        if not ids:
            raise UserError(say("generation.empty_source"))
        room = model.encoder.context
        if len(ids) >= room:
            raise UserError(say("models.source_too_long", length=len(ids) + 1, context=room))
        return [tokenizer.begin], (*ids, tokenizer.end)
    if not ids and tokenizer.begin is not None:
        ids = [tokenizer.begin]
    if not ids:
        raise UserError(say("generation.empty_prompt"))
    return ids, ()


def ends_of(loaded: Loaded, request: Request) -> frozenset[int]:
    """The ids that end the text.

    Raises:
        TypeError: if one is no whole number.
    """
    if request.eos is not None:
        return frozenset(index(id) for id in request.eos)
    end = loaded.tokenizer.end
    return frozenset(loaded.ends) or (frozenset() if end is None else frozenset([end]))


def within(id: int, vocab: int) -> None:
    """Raise a UserError unless the vocabulary has such an id."""
    if not 0 <= index(id) < vocab:
        raise UserError(say("models.id_outside", id=id, vocab=vocab))
