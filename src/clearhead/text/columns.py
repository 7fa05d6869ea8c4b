"""Text as a terminal shows it: how wide it is, and signs for what nobody would see."""

from __future__ import annotations

import unicodedata

__all__ = ["columns_of", "shown"]

_SIGNS = str.maketrans(
    {chr(code): chr(0x2400 + code) for code in range(32)}
    | {" ": "␣", "\n": "↵", "\t": "⇥", "\x7f": "␡"}
    # The other control codes, and those that turn the direction of what follows them.
    | {chr(code): "·" for code in (*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
)


def shown(token: str) -> str:
    """A token as a label: spaces, line breaks and control codes can be seen."""
    return token.translate(_SIGNS) or "∅"


def columns_of(text: str) -> int:
    """Columns of a terminal: Chinese signs take two, marks and joiners that go onto another sign none."""
    return sum(map(_columns, text))


def _columns(sign: str) -> int:
    if unicodedata.category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1
