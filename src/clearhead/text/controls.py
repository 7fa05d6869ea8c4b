"""Control codes, which writing has few of: counted, and the place of the one that a file is refused for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from clearhead.messages import UserError, say

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ControlCodes"]

# Control codes other than white space, the end mark of DOS and ESC (coloured logs are text).
_CONTROL = bytes([*range(0x09), *range(0x0E, 0x1A), *range(0x1C, 0x20), 0x7F])
_FIRST = re.compile(f"[{re.escape(_CONTROL.decode())}]")

MOST = 0.01
"""The share of characters that may be control codes."""


class _Place(NamedTuple):
    """Where a control code stands."""

    code: int
    line: int
    """From 1."""
    offset: int
    """How many characters stand before it."""


class ControlCodes:
    """What is known of the control codes of a text that comes in parts."""

    def __init__(self) -> None:
        self._count = self._total = self._feeds = self._returns = 0
        self._first: _Place | None = None
        self._nul: _Place | None = None

    def take(self, part: str) -> None:
        """Look at the next part."""
        written = part.encode("utf-8", "surrogatepass")
        # In UTF-8 such a byte is such a character.
        found = len(written) - len(written.translate(None, _CONTROL))
        if found:
            self._count += found
            if self._first is None and (match := _FIRST.search(part)):
                self._first = self._place(part, match.start())
            if self._nul is None and "\0" in part:
                self._nul = self._place(part, part.index("\0"))
        self._total += len(part)
        self._feeds += part.count("\n")
        self._returns += part.count("\r")

    def require_text(self, path: Path) -> None:
        """Refuse what is no writing.

        Args:
            path: the file.

        Raises:
            UserError: there was a NUL, or more than 1% were control codes. The message names the first NUL, without one the first
                control code, by its line and the number of characters before it.
        """
        place = self._nul or (self._first if self._count > MOST * self._total else None)
        if place is not None:
            code, line, offset = place
            raise UserError(
                say("text.binary", path=path, count=self._count, total=self._total, code=code, line=line, offset=offset)
            )

    def _place(self, part: str, at: int) -> _Place:
        # CR ends lines where no LF does; where both stand, they stand together.
        ends = self._feeds + part.count("\n", 0, at) or self._returns + part.count("\r", 0, at)
        return _Place(ord(part[at]), 1 + ends, self._total + at)
