"""How far something long is: a line that moves in a terminal, lines that stay in a log, a line that is rewritten in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn, Protocol, TextIO

from tqdm import tqdm

from clearhead.messages import language, say

LAYOUT = "{desc} {bar} {n_fmt}/{total_fmt} [{elapsed}<{remaining}]{postfix}"
"""What matters most stands to the left: a narrow terminal cuts the line to the right."""
BAR = "{bar:20}"
"""The bar where there is room; where there is not, what is left."""
ROOM = 120
"""Columns from which on there is."""

OFTEN = 0.2
"""Seconds between two changes of a line in a terminal."""
SELDOM, SLOWEST, STEP = 10.0, 60.0, 0.01
"""Lines of a log: not before so many seconds, then with each hundredth of the work, but after so many seconds in any case."""
NOTEBOOK, NOTEBOOK_COLUMNS = 0.5, 80
"""Seconds between two changes of a line in a notebook, each of which is sent to a browser; its width is not known."""


class Bar(Protocol):
    """Shows how far something is."""

    def move(self, count: int, note: str = "") -> None:
        """So much more is done.

        Args:
            count: of what `total` counts.
            note: what else is known now.
        """
        ...

    def busy(self, what: str | None) -> None:
        """Say that something else is being done, with a word; None ends that."""
        ...

    def write(self, text: str) -> None:
        """Print lines that stay, above the line that moves."""
        ...

    def close(self) -> None:
        """Stop; what was reached is shown once more."""
        ...

    def __enter__(self) -> Bar: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def bar_of(
    what: str,
    total: int,
    *,
    done: int = 0,
    size: bool = False,
    delay: float = 0.0,
    leave: bool = True,
    stream: TextIO | None = None,
) -> Bar:
    """The bar that suits where it is shown.

    Args:
        what: a word for what is done.
        total: how much there is to do.
        done: how much of it was done before.
        size: whether bytes are counted.
        delay: seconds before anything is shown; nothing if it ends sooner.
        leave: whether the last line stays.
        stream: where it is shown; standard error if None.
    """
    stream = sys.stderr if stream is None else stream
    if is_notebook(stream) or stream.isatty():
        return MovingBar(what, total, done=done, size=size, delay=delay, leave=leave, stream=stream)
    return LoggedBar(what, total, done=done, size=size, delay=delay, leave=leave, stream=stream)


def is_notebook(stream: TextIO) -> bool:
    r"""Whether what is written appears below a notebook's cell, which knows `\r` but has no width."""
    return type(stream).__module__.split(".")[0] == "ipykernel"


def plain_signs(stream: TextIO) -> bool:
    """Whether only ASCII is sure to be shown, one column a sign.

    Consoles that are not UTF-8 have no blocks and frames. Terminals set up for Chinese may show them two columns wide
    (Unicode leaves it open), and then a line that just fits would wrap.
    """
    try:
        "█─".encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return language() == "zh"


class _Line(tqdm):  # type: ignore[type-arg]
    """tqdm's line, which ends a column before the terminal does: some terminals wrap a line that is exactly full."""

    @property
    def format_dict(self) -> Any:
        """What the line is made of, its width among it."""
        found = super().format_dict
        columns = found["ncols"]
        wide = not columns or columns >= ROOM
        found["bar_format"] = LAYOUT.replace("{bar}", BAR) if wide else LAYOUT
        found["ncols"] = columns and max(1, columns - 1)
        return found


class MovingBar:
    """A line that moves, by tqdm; it is never wider than the terminal, Chinese signs counted as two columns.

    Args: as of `bar_of`.
    """

    def __init__(
        self, what: str, total: int, *, done: int, size: bool, delay: float, leave: bool, stream: TextIO
    ) -> None:
        self._what, self._stream = what, stream
        notebook = is_notebook(stream)
        self._bar: tqdm[NoReturn] = _Line(
            total=total,
            initial=done,
            desc=what,
            file=stream,
            delay=delay,
            leave=leave,
            unit_scale=size,
            unit_divisor=1024 if size else 1000,
            ascii=" #" if plain_signs(stream) else False,
            mininterval=NOTEBOOK if notebook else OFTEN,
            ncols=NOTEBOOK_COLUMNS if notebook else None,
            dynamic_ncols=not notebook,
        )

    def move(self, count: int, note: str = "") -> None:
        """As `Bar.move`."""
        self._bar.set_postfix_str(note, refresh=False)
        self._bar.update(count)

    def busy(self, what: str | None) -> None:
        """As `Bar.busy`; shown at once."""
        self._bar.set_description_str(self._what if what is None else what)

    def write(self, text: str) -> None:
        """As `Bar.write`."""
        tqdm.write(text, file=self._stream)

    def close(self) -> None:
        """As `Bar.close`."""
        self._bar.close()

    def __enter__(self) -> MovingBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class LoggedBar:
    r"""Plain lines for a log file or a pipe, without `\r`: seldom, each whole and each once.

    Args:
        what, total, done, size, delay, leave, stream: as of `bar_of`.
        clock: tells the seconds.
    """

    def __init__(
        self,
        what: str,
        total: int,
        *,
        done: int,
        size: bool,
        delay: float,
        leave: bool,
        stream: TextIO,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._total, self._done, self._size = what, total, done, size
        self._delay, self._leave, self._stream, self._clock = delay, leave, stream, clock
        self._note = ""
        self._first, self._told, self._began = done, done, clock()
        self._at = self._began

    def move(self, count: int, note: str = "") -> None:
        """As `Bar.move`."""
        self._done, self._note = self._done + count, note
        waited, moved = self._clock() - self._at, self._done - self._told
        if waited >= SLOWEST or (waited >= SELDOM and moved >= STEP * self._total):
            self._tell()

    def busy(self, what: str | None) -> None:
        """Nothing: what is written when it is done says so."""

    def write(self, text: str) -> None:
        """As `Bar.write`."""
        print(text, file=self._stream, flush=True)

    def close(self) -> None:
        """As `Bar.close`."""
        late = self._clock() - self._began >= self._delay
        if self._leave and late and self._told != self._done:
            self._tell()

    def __enter__(self) -> LoggedBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _tell(self) -> None:
        self._told, self._at = self._done, self._clock()
        gone = self._at - self._began
        moved = self._done - self._first
        left = gone / moved * (self._total - self._done) if moved else 0.0
        done, total = (self._amount(count) for count in (self._done, self._total))
        line = say(
            "cli.train.line",
            what=self._what,
            done=done,
            total=total,
            share=f"{self._done / self._total:.0%}" if self._total else "100%",
            gone=tqdm.format_interval(gone),
            left=tqdm.format_interval(max(0.0, left)),
        )
        self.write(" ".join([line, self._note]).rstrip())

    def _amount(self, count: int) -> str:
        return tqdm.format_sizeof(count, "B", 1024) if self._size else f"{count:,}"
