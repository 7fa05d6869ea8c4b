"""Which characters of a text each of its tokens stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from clearhead.text.code_points import code_points
from clearhead.text.marked import MarkedTokenizer
from clearhead.text.tokenizer import UNKNOWN, Tokenizer
from clearhead.text.tokenizers import ByteTokenizer, CharacterTokenizer

__all__ = ["Completion", "completion", "utf8_lengths"]

Completion: TypeAlias = Callable[[str, NDArray[np.int64]], "NDArray[np.int64] | None"]
"""(a text, its ids) -> how many characters of the text each token completes; None if the tokens do not spell the text."""


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


def _of_bytes(text: str, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    counts = np.zeros(ids.shape, dtype=np.int64)
    counts[np.cumsum(utf8_lengths(text)) - 1] = 1
    return counts


def _of_any(tokenizer: Tokenizer) -> Completion:
    @cache
    def alone(id: int) -> str | None:
        """The text of a token that needs no other; None if it is, or may be, part of a character."""
        stream = tokenizer.stream()
        text = stream.push(id)
        return None if stream.finish() or UNKNOWN in text else text

    def in_pieces(ids: Sequence[int]) -> list[str]:
        """What each token adds, where those that need no other are the same everywhere: much faster, and mostly true."""
        coming: list[str] = []
        for whole, run in groupby(ids, lambda id: alone(id) is not None):
            tokens = [*run]
            coming += [alone(id) or "" for id in tokens] if whole else _in_a_stream(tokenizer, tokens)
        return coming

    def counts(text: str, ids: NDArray[np.int64]) -> NDArray[np.int64] | None:
        row = ids.tolist()
        for way in (in_pieces, lambda ids: _in_a_stream(tokenizer, ids)):
            coming = way(row)
            if "".join(coming) == text:
                return np.array([*map(len, coming)], dtype=np.int64)
        return None

    return counts


def _in_a_stream(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """What each token adds to the text that came before."""
    stream = tokenizer.stream()
    return [stream.push(id) for id in ids]
