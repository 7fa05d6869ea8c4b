"""The tokens of a prompt, over the characters that they cover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clearhead.formats.load import Loaded
from clearhead.layers.encoder_heads import MaskedTokenHead
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text.library import LibraryTokenizer
from clearhead.text.marked import MarkedTokenizer
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokenizers import CharacterTokenizer
from clearhead.web.answer import Answer, as_json
from clearhead.web.session import Session
from clearhead.web.spans import Span, spans_of


def says_tokens(loaded: Loaded) -> bool:
    """Whether a model has logits over a vocabulary: an encoder has them only with a head that guesses masked tokens."""
    return not isinstance(loaded.model, Encoder) or isinstance(loaded.model.head, MaskedTokenHead)


def pieces_of(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """How tokens are written; a row of the vocabulary that no token has (some models fill theirs up) by its number.

    Args:
        tokenizer: of the model.
        ids: below the model's vocabulary, which may be larger than the tokenizer's.
    """
    return [tokenizer.pieces([id])[0] if id < tokenizer.size else f"<{id}>" for id in ids]


def answer(session: Session, query: Mapping[str, str]) -> Answer:
    """What was read, token by token.

    Args:
        session: the forward.
        query: not read.

    Returns:
        JSON: `{text, tokens, source}`; `source` is null, or what an encoder-decoder reads, while the rest is what it has written.
    """
    return as_json(told(session))


def told(session: Session) -> dict[str, Any]:
    """The same as plain data."""
    if not isinstance(session.loaded.model, EncoderDecoder):
        return {**_told(session.loaded, session.text, session.ids), "source": None}
    target = _told(session.loaded, session.target or "", session.ids)
    return {**target, "source": _told(session.loaded, session.text, session.source)}


def unknown_id_of(tokenizer: Tokenizer) -> int | None:
    """The id that stands for what a tokenizer does not know; None if it knows everything, or nobody can say."""
    match tokenizer:
        case MarkedTokenizer(inner=inner):
            return unknown_id_of(inner)
        case CharacterTokenizer():
            return 0
        case LibraryTokenizer():
            return tokenizer.unknown
    return None


def _told(loaded: Loaded, text: str, ids: Sequence[int]) -> dict[str, Any]:
    tokenizer = loaded.tokenizer
    own = tokenizer.encode(text)
    before = _place_of(own, ids)
    around = [Span(0, 0)] * before
    behind = [Span(len(text), len(text))] * (len(ids) - before - len(own))
    spans = [*around, *spans_of(tokenizer, text, own), *behind]
    unknown, marks = unknown_id_of(tokenizer), set(tokenizer.specials.values())
    tokens = [
        {
            "id": id,
            "piece": piece,
            "start": span.start,
            "end": span.end,
            "bytes": None if span.bytes is None else list(span.bytes),
            "special": id in marks,
            "unknown": id == unknown,
        }
        for id, piece, span in zip(ids, tokenizer.pieces(list(ids)), spans, strict=True)
    ]
    return {"text": text, "tokens": tokens}


def _place_of(own: Sequence[int], ids: Sequence[int]) -> int:
    """How many marks stand before the ids of the text. A special id is never among those of a text."""
    places = range(len(ids) - len(own) + 1)
    return next((place for place in places if tuple(ids[place : place + len(own)]) == tuple(own)), 0)
