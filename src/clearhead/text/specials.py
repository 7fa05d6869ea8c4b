"""Special ids on purpose, and never by accident: templates spell them, and what a user wrote stays text.

`Tokenizer.encode` makes no special id. `encode_special` does, where a spelling stands in the text; so what a user wrote goes
through `guarded` before a template puts its own text around it:

    encode_special(before + guarded(written) + behind) has the special ids that `before` and `behind` spell, and no others,
    and without them is the encoding of the texts between them, `written` as it was.

`guarded` puts a guard, one character, inside what could be read as a spelling. Where that cannot be, since a spelling has one
character, or the text holds guards of its own, an escape stands before the character. Both are noncharacters, which Unicode
promises to use for nothing. They decide what is a spelling and are gone when text is encoded: they change no token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from clearhead.text.library import LibraryTokenizer
from clearhead.text.library_json import HIDDEN
from clearhead.text.marked import MarkedTokenizer
from clearhead.text.tokenizer import Tokenizer

__all__ = ["ESCAPE", "GUARD", "encode_special", "guarded", "never_made"]

GUARD = HIDDEN
"""U+FDD0: it stands inside no spelling, and for nothing."""
ESCAPE = "\ufdd1"
"""U+FDD1: the character behind it is text."""


def encode_special(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of a text in which the spellings of `tokenizer.specials` count as those ids.

    At each place the longest spelling counts. What stands between two of them is encoded by itself, without guards and escapes, and
    without the space that some tokenizers put before the first word of a whole text. White space that a tokenizer's file lets a special token swallow is text here.
    """
    specials = tokenizer.specials
    ids: list[int] = []
    plain: list[str] = []
    for spelt, between in _parted(_finder(tuple(specials)), text):
        if spelt is None:
            plain.append(between)
        else:
            ids += _encoded(tokenizer, "".join(plain), ids)
            ids.append(specials[spelt])
            plain.clear()
    return ids + _encoded(tokenizer, "".join(plain), ids)


def guarded(tokenizer: Tokenizer, text: str) -> str:
    """A text as it may stand in a template: guarded wherever it could be part of a special token's spelling.

    That is inside every spelling in it; at its end, if that begins one, and at its beginning, if that ends one or the whole text
    is the middle of one, so that the template's own text beside it completes none; and the same where a template takes away the
    white space around it. Most texts come back as they are.
    """
    escaped = {GUARD, ESCAPE}.union(spelling for spelling in tokenizer.specials if len(spelling) == 1)
    spellings = [spelling for spelling in tokenizer.specials if len(spelling) > 1]
    places = {start + 1 for spelling in spellings for start in _found(spelling, text)}
    places.update(_open_edges(spellings, text))
    if not places and escaped.isdisjoint(text):
        return text
    safe = [ESCAPE + character if character in escaped else character for character in text]
    for place in sorted(places, reverse=True):
        safe.insert(place, GUARD)
    return "".join(safe)


def never_made(tokenizer: Tokenizer) -> frozenset[int]:
    """The ids below `tokenizer.size` that `encode` makes of no text: the special ones, and those that have no token."""
    inner = tokenizer.inner if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    holes = inner.holes if isinstance(inner, LibraryTokenizer) else ()
    return frozenset({*tokenizer.specials.values(), *holes})


def _encoded(tokenizer: Tokenizer, text: str, before: list[int]) -> list[int]:
    """The ids of a text behind those `before`."""
    inner = tokenizer.inner if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    if not text:
        return []
    return inner.encode_further(text) if before and isinstance(inner, LibraryTokenizer) else tokenizer.encode(text)


@lru_cache(maxsize=16)
def _finder(spellings: tuple[str, ...]) -> re.Pattern[str]:
    """A guard, an escape with the character behind it, or a spelling, longer ones first."""
    longest_first = sorted(spellings, key=len, reverse=True)
    return re.compile("|".join([f"(?P<text>{GUARD}|{ESCAPE}.?)", *map(re.escape, longest_first)]), re.DOTALL)


def _parted(finder: re.Pattern[str], text: str) -> Iterator[tuple[str | None, str]]:
    """The parts of a text in their order: (spelling, "") or (None, text)."""
    done = 0
    for found in finder.finditer(text):
        if done < found.start():
            yield None, text[done : found.start()]
        if found["text"] is None:
            yield found[0], ""
        elif found["text"][1:]:
            yield None, found["text"][1:]
        done = found.end()
    if done < len(text):
        yield None, text[done:]


def _found(spelling: str, text: str) -> Iterator[int]:
    """Where a spelling begins in a text, overlapping ones too."""
    place = text.find(spelling)
    while place >= 0:
        yield place
        place = text.find(spelling, place + 1)


def _open_edges(spellings: Iterable[str], text: str) -> Iterator[int]:
    """The places before and behind which text of a template's could complete a spelling."""
    first, last = len(text) - len(text.lstrip()), len(text.rstrip())
    if first >= last:
        first, last = 0, len(text)
    for spelling in spellings:
        # Only a spelling with white space can reach into that around the text, of which a template may take any share.
        spaced = any(map(str.isspace, spelling))
        starts = range(first + 1) if spaced else [first]
        ends = range(last, len(text) + 1) if spaced else [last]
        parts = range(1, len(spelling))
        for start in starts:
            ending = any(text.startswith(spelling[-size:], start) for size in parts)
            if ending or any(start < end and text[start:end] in spelling[1:] for end in ends):
                yield start
        for end in ends:
            if any(text.endswith(spelling[:size], 0, end) for size in parts):
                yield end
