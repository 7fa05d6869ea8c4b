"""Special ids on purpose, and never by accident: templates spell them, and what a user wrote stays text.

`Tokenizer.encode` makes no special id. `encode_special` does, where a spelling stands in the text; so what a user wrote goes
through `guarded` before a template puts its own text around it. A guard is one character, U+FDD0, which Unicode promises to use
for nothing: it says that the character behind it belongs to no spelling, and is itself left out of what is encoded.

    encode_special(before + guarded(written) + behind) has the special ids that `before` and `behind` spell, and no others,
    and without them is the encoding of the texts between them, `written` as it was.

Guards change no token: they decide what is a spelling, and are gone when text is encoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from clearhead.text.library_json import HIDDEN
from clearhead.text.tokenizer import Tokenizer

__all__ = ["GUARD", "encode_special", "guarded"]

GUARD = HIDDEN
"""U+FDD0, a noncharacter: the character behind it is text."""


def encode_special(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of a text in which the spellings of `tokenizer.specials` count as those ids, and guards are obeyed.

    At each place the longest spelling counts. What stands between two of them is encoded by `tokenizer.encode` by itself, without
    its guards.
    """
    specials = tokenizer.specials
    ids: list[int] = []
    plain: list[str] = []
    for spelt, between in _parted(_finder(tuple(specials)), text):
        if spelt is None:
            plain.append(between)
        else:
            ids += tokenizer.encode("".join(plain)) if plain else []
            ids.append(specials[spelt])
            plain.clear()
    return ids + (tokenizer.encode("".join(plain)) if plain else [])


def guarded(tokenizer: Tokenizer, text: str) -> str:
    """A text as it may stand in a template: with a guard wherever it could be part of a special token's spelling.

    That is inside every spelling in it; before its end, if that begins one, and its beginning, if that ends one or the whole
    text is the middle of one, so that the template's own text beside it completes none; the same where a template takes away
    white space around it; and before a guard that the text holds itself. Most texts come back as they are.
    """
    # The guard before the last character breaks a spelling, of whatever length, and leaves its end no beginning.
    places = {place for place, character in enumerate(text) if character == GUARD}
    for spelling in tokenizer.specials:
        places.update(start + len(spelling) - 1 for start in _found(spelling, text))
    places.update(_open_edges(tokenizer.specials, text))
    return "".join(GUARD + character if place in places else character for place, character in enumerate(text))


@lru_cache(maxsize=16)
def _finder(spellings: tuple[str, ...]) -> re.Pattern[str]:
    """A guard with the character behind it, or a spelling, longer ones first."""
    longest_first = sorted(spellings, key=len, reverse=True)
    return re.compile("|".join([f"{GUARD}(?P<text>.?)", *map(re.escape, longest_first)]), re.DOTALL)


def _parted(finder: re.Pattern[str], text: str) -> Iterator[tuple[str | None, str]]:
    """The parts of a text in their order: (spelling, "") or (None, text)."""
    done = 0
    for found in finder.finditer(text):
        if done < found.start():
            yield None, text[done : found.start()]
        if found["text"] is None:
            yield found[0], ""
        elif found["text"]:
            yield None, found["text"]
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
    """The first and last characters that text beside them could make part of a spelling."""
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
            if ending or any(text[start:end] in spelling for end in ends):
                yield start
        for end in ends:
            if any(text.endswith(spelling[:size], 0, end) for size in parts):
                yield end - 1
