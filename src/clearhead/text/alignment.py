"""Which characters of a text each of its tokens stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from clearhead.text.code_points import code_points
from clearhead.text.marked import MarkedTokenizer
from clearhead.text.tokenizer import Tokenizer, without_surrogates
from clearhead.text.tokenizers import ByteTokenizer, CharacterTokenizer

__all__ = ["Completion", "completion", "token_bytes", "utf8_lengths"]

Completion: TypeAlias = Callable[[str, NDArray[np.int64]], "NDArray[np.int64] | None"]
"""(a text, its ids) -> how many characters of the text each token completes; None if the tokens do not spell the text."""


# A byte that is only part of a character; ASCII is never written so.
_BYTE = re.compile("<0x([89A-F][0-9A-F])>")


def completion(tokenizer: Tokenizer) -> Completion:
    """How many characters each token of a text completes: a byte in the middle of a character none, " the" four.

    Tokens in their order, the sums of these numbers are the places in the text where tokens end. None stands for a text
    that does not come out as it went in: a tokenizer that folds capitals, say, does not tell what it made of which character.
    """
    inner = tokenizer.inner if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    match inner:
        case CharacterTokenizer():
            return lambda text, ids: np.ones(len(text), dtype=np.int64)
        case ByteTokenizer():
            return _of_bytes
    return _of_any(inner)


def utf8_lengths(text: str) -> NDArray[np.int64]:
    """How many bytes of UTF-8 each character takes; a surrogate as many as U+FFFD, which stands for it."""
    limits = np.array([0x80, 0x800, 0x10000], dtype=np.uint32)
    return np.searchsorted(limits, code_points(text), side="right") + 1


def token_bytes(tokenizer: Tokenizer, text: str, ids: Sequence[int]) -> list[bytes] | None:
    """The bytes of the text that each of its tokens stands for; None if together they do not spell the text.

    Args:
        tokenizer: that made the ids, without marks.
        text: what was encoded.
        ids: of the text.
    """
    tokens, data = [*map(_as_bytes, tokenizer.pieces(ids))], without_surrogates(text).encode("utf-8")
    if b"".join(tokens) == data:
        return tokens
    # The first token of a text may be without the space that it brings to others.
    tokens = [tokenizer.decode(ids[:1]).encode(), *tokens[1:]]
    return tokens if b"".join(tokens) == data else None


def _of_bytes(text: str, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    counts = np.zeros(ids.shape, dtype=np.int64)
    counts[np.cumsum(utf8_lengths(text)) - 1] = 1
    return counts


def _of_any(tokenizer: Tokenizer) -> Completion:
    known: dict[int, bytes] = {}

    def bytes_of(ids: NDArray[np.int64]) -> list[bytes]:
        """The bytes of each token as it is shown by itself: those it adds wherever it stands, to most texts."""
        new = [id for id in np.unique(ids).tolist() if id not in known]
        known.update(zip(new, map(_as_bytes, tokenizer.pieces(new)), strict=True))
        return [known[id] for id in ids.tolist()]

    def counts(text: str, ids: NDArray[np.int64]) -> NDArray[np.int64] | None:
        tokens, data = bytes_of(ids), text.encode("utf-8", "surrogatepass")
        if b"".join(tokens) != data:
            # The first token of a text may be without the space that it brings to others.
            tokens[:1] = [tokenizer.decode(ids[:1]).encode()]
        if b"".join(tokens) != data:
            return _in_a_stream(tokenizer, text, ids)
        ends = np.cumsum(np.array([*map(len, tokens)], dtype=np.int64))
        return np.diff(np.searchsorted(np.cumsum(utf8_lengths(text)), ends, side="right"), prepend=0)

    return counts


def _as_bytes(piece: str) -> bytes:
    """What `<0xE4>` stands for in a piece, and the UTF-8 of the rest."""
    return _BYTE.sub(lambda found: chr(0xDC00 + int(found[1], 16)), piece).encode("utf-8", "surrogateescape")


def _in_a_stream(tokenizer: Tokenizer, text: str, ids: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Slow, and right where what a token adds depends on the one before it."""
    stream = tokenizer.stream()
    coming = [stream.push(id) for id in ids.tolist()]
    return np.array([*map(len, coming)], dtype=np.int64) if "".join(coming) == text else None
