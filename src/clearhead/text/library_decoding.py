"""The ids of a `tokenizer.json` as bytes of UTF-8, one id at a time, so that a stream and a whole text are one thing.

Most decoders are byte-level: a token is some bytes, whatever stands before it. The others (Metaspace, WordPiece, a suffix at
word ends, ...) treat the first token of a text differently, or look at the one before. What a token adds is therefore asked
of the library's own decoder, once for each pair of neighbours:

    added(token | before) = decoded(before, token) without its beginning decoded(before)

Tokens such as `<0xE4>`, which stand for a byte where the decoder says so, are that byte. The library gives up a whole run
of them if one does not fit; here only those that do not fit become U+FFFD, or nothing could be shown before a run is over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import tokenizers

from clearhead.text.library_json import PANIC, Refusals

__all__ = ["Added", "added_bytes", "readable"]

Added: TypeAlias = Callable[[str | None, str], bytes]
"""(the token before, None at the beginning; the token) -> the bytes that it adds to the text."""

REMEMBERED = 1 << 16
"""The pairs of neighbours whose bytes are kept at hand."""

_BYTE_TOKEN = re.compile("<0x([0-9A-F]{2})>")
_ESCAPED = re.compile("[\udc80-\udcff]")


def _byte_of_letter() -> dict[int, int]:
    """The byte that each letter of the library's byte alphabet stands for.

    Printable letters of Latin-1 are their own byte; the other bytes, in their order, are the letters from U+0100 on.
    """
    alphabet = {ord(letter) for letter in tokenizers.pre_tokenizers.ByteLevel.alphabet()}
    others = (byte for byte in range(256) if byte not in alphabet)
    return {letter: letter if letter < 256 else next(others) for letter in sorted(alphabet)}


_BYTE_OF_LETTER = _byte_of_letter()


def added_bytes(decoder: tokenizers.decoders.Decoder | None, settings: dict[str, Any] | None) -> Added:
    """What tokens add to a text.

    Args:
        decoder: the library's decoder; None joins tokens with a space, as the library does.
        settings: how the `tokenizer.json` describes it.
    """
    steps = [] if settings is None else settings.get("decoders", [settings])
    kinds = [step.get("type") for step in steps]
    if kinds == ["ByteLevel"]:
        return lambda before, token: _letters_as_bytes(token)
    return _by_neighbours(" ".join if decoder is None else decoder.decode, "ByteFallback" in kinds)


def readable(added: Added, token: str) -> str:
    """A token by itself, as it follows another: its characters, and `<0xE4>` for each byte that is only part of one."""
    shown = added(token, token).decode("utf-8", errors="surrogateescape")
    return _ESCAPED.sub(lambda found: f"<0x{ord(found[0]) - 0xDC00:02X}>", shown)


@lru_cache(maxsize=REMEMBERED)
def _letters_as_bytes(token: str) -> bytes:
    points = [*map(ord, token)]
    if all(point in _BYTE_OF_LETTER for point in points):
        return bytes(_BYTE_OF_LETTER[point] for point in points)
    # An added token may hold what is no letter of the alphabet, such as a space: it then stands for itself.
    return token.encode("utf-8")


def _by_neighbours(decode: Callable[[Sequence[str]], str], falls_back: bool) -> Added:
    @lru_cache(maxsize=REMEMBERED)
    def added(before: str | None, token: str) -> bytes:
        byte = _BYTE_TOKEN.fullmatch(token) if falls_back else None
        if byte is not None:
            return bytes([int(byte[1], 16)])
        with Refusals(PANIC):
            if before is None:
                return decode([token]).encode("utf-8")
            start, both = decode([before]), decode([before, token])
            return (both[len(start) :] if both.startswith(start) else decode([token])).encode("utf-8")

    return added
