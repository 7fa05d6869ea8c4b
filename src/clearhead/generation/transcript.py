"""Tokens of one row -> its text: whole characters, and nothing of a stop string."""

from __future__ import annotations

from collections.abc import Sequence

from clearhead.text import TextStream


class Transcript:
    """The text of tokens that come one at a time, up to the first stop string.

    The text ends where a stop string is first complete, and without it; of several that end at the same character the longest
    counts. That depends on the text alone, not on where tokens begin and end: what may turn out to be the beginning of a stop
    string is held back until it is clear.

    Args:
        stream: of the tokenizer.
        stops: strings that end the text; none may be empty.
    """

    def __init__(self, stream: TextStream, stops: Sequence[str] = ()) -> None:
        self._stream, self._stops = stream, tuple(stops)
        self._held = ""
        self.stopped = False
        """Whether a stop string has come."""

    def push(self, id: int) -> str:
        """The text that is certain with this token; "" if there is none, or a stop string has come."""
        return self._certain(self._stream.push(id))

    def finish(self, *, whole: bool) -> str:
        """What is left of the text when no more tokens come.

        Args:
            whole: whether the model ended the text itself; otherwise the beginning of a character that it might have finished is
                left out.
        """
        rest = self._stream.finish()
        certain = self._certain(rest if whole else "")
        held, self._held = self._held, ""
        return certain if self.stopped else certain + held

    def _certain(self, text: str) -> str:
        if self.stopped:
            return ""
        given = []
        for character in text:
            self._held += character
            found = max((len(stop) for stop in self._stops if self._held.endswith(stop)), default=0)
            if found:
                given.append(self._held[:-found])
                self._held, self.stopped = "", True
                break
            keep = self._beginning()
            given.append(self._held[: len(self._held) - keep])
            self._held = self._held[len(self._held) - keep :]
        return "".join(given)

    def _beginning(self) -> int:
        """How many of the held characters, the last ones, may begin a stop string."""
        longest = min(len(self._held), max(map(len, self._stops), default=1) - 1)
        ends = range(longest, 0, -1)
        return next((n for n in ends if any(stop.startswith(self._held[-n:]) for stop in self._stops)), 0)
