"""The beginning of a file, read as far as it is asked for."""

from __future__ import annotations

import os
import struct
from io import FileIO
from pathlib import Path

from clearhead.messages import UserError, say

LARGEST = 1 << 26
"""More bytes no header has: that of a model with 262,144 tokens takes 14 MB."""
_FIRST = 1 << 20
_LENGTH = struct.Struct("<Q")


class Window:
    """What has been read of a file, and the place up to which it has been understood.

    Whatever a length in the file claims, nothing is read or allocated before it is held against what is left.

    Args:
        path: the file, for messages.
        file: the same, open and at its beginning.
    """

    def __init__(self, path: Path, file: FileIO) -> None:
        self.path, self.at = path, 0
        self.size = os.fstat(file.fileno()).st_size
        self._file, self._held = file, bytearray()

    def claim(self, count: int, least: int, what: str) -> None:
        """Hold a count of things against the room that is left for them.

        Args:
            count: how many there are said to be.
            least: how many bytes each takes at least.
            what: what they are, for messages.

        Raises:
            UserError: if they cannot all be there.
        """
        end = self.at + count * least
        if end > self.size:
            raise UserError(say("gguf.cut", path=self.path, what=what, wanted=count * least, left=self.size - self.at))
        if end > LARGEST:
            raise UserError(say("gguf.long", path=self.path, what=what, end=end, most=LARGEST))

    def take(self, count: int, what: str) -> bytearray:
        """The next bytes.

        Raises:
            UserError: if the file ends before.
        """
        self._reach(count, what)
        self.at += count
        return self._held[self.at - count : self.at]

    def number(self, kind: str, what: str) -> int | float | bool:
        """The next number.

        Args:
            kind: its format, as in `struct`.
            what: what it is, for messages.
        """
        unpacked: tuple[int | float | bool] = struct.unpack("<" + kind, self.take(struct.calcsize("<" + kind), what))
        return unpacked[0]

    def count(self, what: str, kind: str = "Q") -> int:
        """The next whole number without a sign."""
        return int(self.number(kind, what))

    def text(self, what: str) -> str:
        """The next text: its length, then UTF-8."""
        return self.texts(1, what)[0]

    def texts(self, count: int, what: str) -> list[str]:
        """The next texts, one after the other.

        Raises:
            UserError: if the file ends before, or one is not UTF-8.
        """
        self.claim(count, _LENGTH.size, what)
        found = []
        # A vocabulary is most of a header: this loop is what opening a file takes.
        held, at = self._held, self.at
        try:
            for _ in range(count):
                begin = at + _LENGTH.size
                if begin > len(held):
                    self.at = at
                    self._reach(_LENGTH.size, what)
                end = begin + _LENGTH.unpack_from(held, at)[0]
                if end > len(held):
                    self.at = begin
                    self._reach(end - begin, what)
                found.append(held[begin:end].decode())
                at = end
        except UnicodeDecodeError as error:
            raise UserError(say("gguf.not_text", path=self.path, what=what)) from error
        self.at = at
        return found

    def _reach(self, count: int, what: str) -> None:
        """Hold `count` bytes from `at` on."""
        self.claim(1, count, what)
        end = self.at + count
        if end > len(self._held):
            # Twice as much each time, so that few tensors are read along with a small header.
            wanted = min(max(end, 2 * len(self._held), _FIRST), self.size)
            self._held += self._file.read(wanted - len(self._held))
        if end > len(self._held):
            raise UserError(say("gguf.cut", path=self.path, what=what, wanted=count, left=len(self._held) - self.at))
