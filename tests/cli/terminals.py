"""What a bar is shown in: a terminal of some width, a notebook that is made up, a log."""

from __future__ import annotations

import io
import os
import re
import struct
from threading import Thread
from types import TracebackType

import pytest

from clearhead.text.columns import columns_of


class Terminal:
    """A pseudo-terminal of so many columns; `stream` writes into it, `text` is what it got."""

    def __init__(self, columns: int, encoding: str = "utf-8") -> None:
        pytest.importorskip("pty", reason="this system has no pseudo-terminals")
        import fcntl  # noqa: PLC0415 - not on every system
        import termios  # noqa: PLC0415

        self._outside, inside = os.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream = io.TextIOWrapper(os.fdopen(inside, "wb", 0), encoding=encoding, errors="replace", newline="")
        self._encoding, self._parts = encoding, list[bytes]()
        self._reader = Thread(target=self._read)

    @property
    def text(self) -> str:
        """All that was written."""
        return b"".join(self._parts).decode(self._encoding)

    def __enter__(self) -> Terminal:
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stream.close()
        self._reader.join()
        os.close(self._outside)

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self._outside, 4096)
            except OSError:  # nobody writes any more
                return
            if not part:
                return
            self._parts.append(part)


class Notebook(io.StringIO):
    """What a notebook's kernel puts in the place of standard error."""


Notebook.__module__ = "ipykernel.iostream"


class Log(io.StringIO):
    """A file that a bar is written to."""

    @property
    def lines(self) -> list[str]:
        """Its lines."""
        return self.getvalue().splitlines()


class Clock:
    """Tells the seconds that it is told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def moved(text: str) -> list[str]:
    r"""The states of the line that moves: what stands between two of \r and \n, without what moves the cursor."""
    return [part for part in re.split(r"[\r\n]+", re.sub(r"\x1b\[\d*[A-Z]", "\n", text)) if part.strip()]


def too_wide(text: str, columns: int) -> list[str]:
    """Those that a terminal would wrap, or a strict one: a full line counts."""
    return [line for line in moved(text) if columns_of(line) >= columns]
