"""Which characters of a text each token covers, and which bytes of a character that several tokens share."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple
from unicodedata import combining

import numpy as np
from numpy.typing import NDArray

from clearhead.text.alignment import token_bytes, utf8_lengths
from clearhead.text.library import LibraryTokenizer
from clearhead.text.marked import MarkedTokenizer
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokenizers import CharacterTokenizer

COMPARED = 4000
"""Up to how many characters are compared one by one where a tokenizer does not give its text back."""


class Span(NamedTuple):
    """What a token covers."""

    start: int
    """The first character."""
    end: int
    """The character after the last; `start` if it covers none."""
    bytes: tuple[int, int] | None = None
    """The first and the last byte of UTF-8, counted from the first byte of the character `start`, where they are not whole characters."""


def spans_of(tokenizer: Tokenizer, text: str, ids: Sequence[int]) -> list[Span]:
    """What each token of a text covers, in their order; together they cover the text, each character at least once.

    Where the tokens spell the text byte for byte, it is the bytes that say it. Else the tokenizers library is asked, which knows what it
    made of which character; white space that belongs to no token goes to the token behind it. What another tokenizer writes for the ids
    is compared with the text.

    Args:
        tokenizer: that made the ids.
        text: what was encoded.
        ids: of the text, no marks among them.
    """
    inner = tokenizer.inner if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    if not ids:
        return []
    if isinstance(inner, CharacterTokenizer):
        return [Span(place, place + 1) for place in range(len(text))]
    spelt = token_bytes(inner, text, ids)
    if spelt is not None:
        return _by_bytes(text, [len(each) for each in spelt])
    if isinstance(inner, LibraryTokenizer):
        return _shared(text, _joined(text, inner.covered(text)), inner.pieces(ids))
    return _joined(text, _compared(inner, text, ids))


def _by_bytes(text: str, sizes: Sequence[int]) -> list[Span]:
    """The spans of tokens that are so many bytes of the text each."""
    lengths = utf8_lengths(text)
    ends: NDArray[np.int64] = np.cumsum(lengths)
    begins = ends - lengths
    after: NDArray[np.int64] = np.cumsum(np.array(sizes, dtype=np.int64))
    spans = []
    for first, last in zip((after - sizes).tolist(), after.tolist(), strict=True):
        start = int(np.searchsorted(ends, first, side="right"))
        if first == last:
            spans.append(Span(start, start))
            continue
        end = int(np.searchsorted(ends, last - 1, side="right")) + 1
        whole = begins[start] == first and ends[end - 1] == last
        offset = int(begins[start])
        spans.append(Span(start, end, None if whole else (first - offset, last - 1 - offset)))
    return spans


def _joined(text: str, places: Sequence[tuple[int, int]]) -> list[Span]:
    """Spans without gaps: what no token covers goes to the one behind it, accents to the one before, and what is left to the last."""
    spans: list[Span] = []
    reached = 0
    for start, end in places:
        while spans and reached < start and combining(text[reached]):
            reached += 1
            spans[-1] = Span(spans[-1].start, reached)
        first = min(start, reached)
        spans.append(Span(first, max(first, end)))
        reached = max(reached, end)
    if spans and reached < len(text):
        spans[-1] = Span(spans[-1].start, len(text))
    return spans


def _shared(text: str, spans: Sequence[Span], pieces: Sequence[str]) -> list[Span]:
    """The same, where tokens that stand for a byte each share a character: which of its bytes each is."""
    found, place = list(spans), 0
    while place < len(found):
        own, stop = spans[place], place + 1
        while stop < len(spans) and spans[stop] == own:
            stop += 1
        size = len(text[own.start : own.end].encode("utf-8", "replace"))
        if stop - place == size > 1 and own.end - own.start == 1 and all("<0x" in each for each in pieces[place:stop]):
            found[place:stop] = [Span(own.start, own.end, (byte, byte)) for byte in range(size)]
        place = stop
    return found


def _compared(tokenizer: Tokenizer, text: str, ids: Sequence[int]) -> list[tuple[int, int]]:
    """The characters that each id stands for, as far as what a stream of the ids writes can be found in the text."""
    stream = tokenizer.stream()
    parts = [stream.push(id) for id in ids]
    written = "".join(parts) + stream.finish()
    places = np.cumsum([0, *map(len, parts)])
    marks = [(0, 0), (len(written), len(text))]
    if max(len(written), len(text)) <= COMPARED:
        blocks = SequenceMatcher(None, written.casefold(), text.casefold(), autojunk=False).get_matching_blocks()
        marks[1:1] = [pair for a, b, size in blocks if size for pair in ((a, b), (a + size, b + size))]
    in_written, in_text = zip(*sorted(set(marks)), strict=True)
    ends = np.rint(np.interp(places, in_written, in_text)).astype(int).tolist()
    return list(pairwise(ends))
