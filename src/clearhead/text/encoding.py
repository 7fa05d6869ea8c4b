"""Documents -> token ids, many at a time and in bounded memory, equal to encoding each document whole.

Small documents go to `Tokenizer.encode_many` together; long ones are cut, and their pieces go the same way. Where characters
or bytes are the tokens, any place will do. Elsewhere a tokenizer looks around: a cut is made where words end, and each one is
proved twice. Before it is made, the text near it must encode to the same ids together and apart. After both pieces are encoded,
the token on either side must be the one of that proof: a merge across the cut would have had to change one of them. Where
one differs, both pieces are encoded again as one, and are kept apart only if that changes nothing. (That holds for pieces far
longer than a token, as they are.)
"""

from __future__ import annotations

import sys
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from clearhead.text.documents import Documents
from clearhead.text.marked import MarkedTokenizer
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokenizers import ByteTokenizer, CharacterTokenizer

__all__ = ["SIZES", "Encoded", "Sizes", "encoded"]

TRIES = 4
"""How many places of a kind are tried before the next kind is."""

THREADS = 2
"""Batches in work at once: while one is encoded, without Python's lock, the ids of another become arrays."""


@dataclass(frozen=True)
class Sizes:
    """How much text is handled at a time, in characters; the ids do not depend on it, memory and speed do.

    Args:
        piece: about how long the pieces of a long document are.
        window: how much text on each side of a cut proves it.
        batch: how much text is encoded together.
        texts: how many texts at most are encoded together.
        longest: how long a search for a cut goes on; a document without one in so much text is encoded as it is.
    """

    piece: int = 1 << 16
    window: int = 128
    batch: int = 1 << 20
    texts: int = 1 << 14
    longest: int = 1 << 26


SIZES = Sizes()
"""What is used unless told otherwise: some tens of MB in all."""


class Encoded(NamedTuple):
    """A document's ids, or the next of them if it is long."""

    ids: NDArray[np.int64]
    """In their order; none if the document is empty."""
    characters: int
    """How many the ids were made from."""
    ends: bool
    """Whether the document ends behind them."""


class _Seam(NamedTuple):
    """The tokens on both sides of a cut, as its proof saw them."""

    before: int
    behind: int


class _Piece(NamedTuple):
    """A document, or a piece of one."""

    text: str
    ends: bool
    seam: _Seam | None
    """The seam to the piece before; None at the beginning of a document, and where any cut will do."""


_Found: TypeAlias = "tuple[int, _Seam | None]"
_Cuts: TypeAlias = "Callable[[str, int, int, int], _Found | None]"
"""(text, begin, low, high) -> the best place in (low, high] to cut the text that begins at `begin`; None if none is good."""


def encoded(
    tokenizer: Tokenizer,
    documents: Documents,
    progress: Callable[[int], None] | None = None,
    *,
    sizes: Sizes = SIZES,
) -> Iterator[Encoded]:
    """The ids of every document, in order; joined up to each `ends` they are `tokenizer.encode` of the whole document.

    Documents are read as they are wanted. A tokenizer's marks are not put around them.

    Args:
        tokenizer: what encodes.
        documents: what is encoded, once.
        progress: is told how many characters have been encoded so far, after each batch.
        sizes: how much text is handled at a time.

    Raises:
        UserError: whatever reading the documents raises; what came before has been given out, or is lost.
    """
    cuts: _Cuts = _anywhere if _is_free(tokenizer) else _Proved(tokenizer, sizes.window)
    held: list[_Worked] = []
    for worked in _in_turn(tokenizer, _batches(documents, cuts, sizes), progress):
        held.append(worked)
        _settle(held, tokenizer)
        # The last two wait: should the last be joined to what comes next, the seam before it is looked at again.
        settled = len(held) if worked.piece.ends else max(0, len(held) - 2)
        yield from (Encoded(ids, len(piece.text), piece.ends) for piece, ids in held[:settled])
        del held[:settled]


class _Worked(NamedTuple):
    """A piece with its ids."""

    piece: _Piece
    ids: NDArray[np.int64]


def _settle(held: list[_Worked], tokenizer: Tokenizer) -> None:
    """Join the last pieces of a document until the tokens beside every cut are those with which it was proved."""
    while len(held) > 1 and not _fits(*held[-2:]):
        first, second = held[-2:]
        text = first.piece.text + second.piece.text
        ids = tokenizer.encode_array(text)
        if first.ids.size and second.ids.size and np.array_equal(ids, np.concatenate([first.ids, second.ids])):
            seam = _Seam(int(first.ids[-1]), int(second.ids[0]))
            held[-1] = second._replace(piece=second.piece._replace(seam=seam))
            return
        held[-2:] = [_Worked(_Piece(text, second.piece.ends, first.piece.seam), ids)]


def _fits(first: _Worked, second: _Worked) -> bool:
    seam = second.piece.seam
    return seam is None or bool(first.ids.size and second.ids.size and (first.ids[-1], second.ids[0]) == seam)


def _in_turn(
    tokenizer: Tokenizer, batches: Iterable[list[_Piece]], progress: Callable[[int], None] | None
) -> Iterator[_Worked]:
    """Every piece with its ids, in order; while some are encoded the next are read."""
    done = 0
    coming: deque[tuple[list[_Piece], Future[list[NDArray[np.int64]]]]] = deque()

    def finished() -> Iterator[_Worked]:
        nonlocal done
        batch, ids = coming.popleft()
        yield from map(_Worked, batch, ids.result())
        done += sum(len(piece.text) for piece in batch)
        if progress is not None:
            progress(done)

    pool = ThreadPoolExecutor(THREADS)
    try:
        for batch in batches:
            coming.append((batch, pool.submit(tokenizer.encode_many, [piece.text for piece in batch])))
            if len(coming) > THREADS:
                yield from finished()
        while coming:
            yield from finished()
    finally:
        pool.shutdown(cancel_futures=True)


def _batches(documents: Documents, cuts: _Cuts, sizes: Sizes) -> Iterator[list[_Piece]]:
    batch: list[_Piece] = []
    characters = 0
    for document in documents():
        for piece in _pieces(document.parts, cuts, sizes):
            batch.append(piece)
            characters += len(piece.text)
            if characters >= sizes.batch or len(batch) >= sizes.texts:
                yield batch
                batch, characters = [], 0
    if batch:
        yield batch


def _pieces(parts: Iterable[str], cuts: _Cuts, sizes: Sizes) -> Iterator[_Piece]:
    """A document in pieces, each cut where `cuts` says; one piece if it is short."""
    waiting: list[str] = []
    length, tried, wanted = 0, sizes.piece // 2, sizes.piece
    seam = None
    for part in parts:
        waiting.append(part)
        length += len(part)
        if length < wanted + sizes.window:
            continue
        text, begin = "".join(waiting), 0
        while len(text) - begin >= wanted + sizes.window:
            found = cuts(text, begin, begin + tried, begin + wanted)
            if found is None:
                tried, wanted = wanted, (2 * wanted if 2 * wanted <= sizes.longest else sys.maxsize - sizes.window)
                continue
            yield _Piece(text[begin : found[0]], False, seam)
            begin, seam = found
            tried, wanted = sizes.piece // 2, sizes.piece
        waiting, length = [text[begin:]], len(text) - begin
    yield _Piece("".join(waiting), True, seam)


def _is_free(tokenizer: Tokenizer) -> bool:
    """Whether every character is encoded by itself, so that a text may be cut anywhere."""
    inner = tokenizer.inner if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    return isinstance(inner, CharacterTokenizer | ByteTokenizer)


def _anywhere(text: str, begin: int, low: int, high: int) -> _Found:
    return high, None


class _Proved:
    """Cuts that a tokenizer's own ids prove; the kind of place that was good last is tried first."""

    def __init__(self, tokenizer: Tokenizer, window: int) -> None:
        self._encode, self._window = tokenizer.encode, window
        self._kinds = [_line_ends, _word_ends, _letter_ends]

    def __call__(self, text: str, begin: int, low: int, high: int) -> _Found | None:
        for kind in self._kinds:
            for place in islice(kind(text, low, high), TRIES):
                seam = self._seam(text[max(begin, place - self._window) : place], text[place : place + self._window])
                if seam is not None:
                    self._kinds = [kind, *(other for other in self._kinds if other is not kind)]
                    return place, seam
        return None

    def _seam(self, before: str, behind: str) -> _Seam | None:
        left, right = self._encode(before), self._encode(behind)
        if left and right and self._encode(before + behind) == left + right:
            return _Seam(left[-1], right[0])
        return None


def _line_ends(text: str, low: int, high: int) -> Iterator[int]:
    """The places in (low, high] between a letter or digit and a line break, from the last to the first."""
    return _ends_before("\n", text, low, high)


def _word_ends(text: str, low: int, high: int) -> Iterator[int]:
    """The same before a space."""
    return _ends_before(" ", text, low, high)


def _ends_before(character: str, text: str, low: int, high: int) -> Iterator[int]:
    place = text.rfind(character, low + 1, high + 1)
    while place > 0:
        if text[place - 1].isalnum():
            yield place
        place = text.rfind(character, low + 1, place)


def _letter_ends(text: str, low: int, high: int) -> Iterator[int]:
    """The same before anything else that is no letter, digit or accent: Chinese puts its marks there, and no space."""
    for place in range(min(high, len(text) - 1), low, -1):
        character = text[place]
        if not character.isalnum() and text[place - 1].isalnum() and not unicodedata.combining(character):
            yield place
