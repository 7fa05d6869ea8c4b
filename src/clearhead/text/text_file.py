"""A file of any size -> what one reading of it shows: its encoding, its line ends, that it is text.

It is read in blocks, and one whose name ends with .gz is uncompressed on the way, so that it may be larger than memory.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from clearhead.messages import UserError, say
from clearhead.text.characters import (
    MARK,
    WrongByteError,
    codec_name,
    decoded,
    recognised,
)
from clearhead.text.controls import ControlCodes
from clearhead.text.streams import Progress, blocks_of, nothing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["Read", "TextFile", "examine", "examined"]

_WAYS = ("replace", "ignore")


class Read(Protocol):
    """Bytes that can be read again and again, in blocks."""

    def __call__(self, *, progress: Progress = nothing) -> Iterable[bytes]:
        """Each of their blocks, none of them empty; `progress` is told the bytes on disk that were read for it."""


@dataclass(frozen=True)
class TextFile:
    """What one reading of a file has shown, so that it can be read again without a question.

    Attributes:
        path: the file.
        read: its bytes, in blocks.
        encoding: the encoding to use, by Python's name.
        errors: what becomes of bytes that do not fit it: "strict" or "replace".
        size: the bytes; of a .gz file uncompressed.
        blank: whether there is nothing but white space.
        line_ends: the kinds of line end other than LF, "CRLF" and "CR".
        notes: as those of `RawText`.
    """

    path: Path
    read: Read
    encoding: str
    errors: str
    size: int
    blank: bool
    line_ends: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes, and one for each kind of line end that `parts` changes."""
        return (*self.notes, *(say("text.line_ends", path=self.path, kind=kind) for kind in self.line_ends))

    def raw_parts(self) -> Iterator[str]:
        """The characters as they stand in the file, in parts, without a byte order mark.

        Raises:
            UserError: the file has changed and no longer fits.
        """
        return _characters(self.path, self.read(), self.encoding, self.errors)

    def parts(self, progress: Progress = nothing) -> Iterator[str]:
        """The characters in parts of about 2^20 at most, every line end LF, no byte order mark.

        Args:
            progress: told the bytes on disk as they are read.

        Raises:
            UserError: the file has changed and no longer fits.
        """
        ends = io.IncrementalNewlineDecoder(None, translate=True)
        for part in _characters(self.path, self.read(progress=progress), self.encoding, self.errors):
            # A CR at the end is kept back: LF may follow.
            if text := ends.decode(part):
                yield text
        if text := ends.decode("", final=True):
            yield text


def examine(path: Path, encoding: str = "auto", errors: str = "strict", progress: Progress = nothing) -> TextFile:
    """Read a file of any size once through, in blocks, and find that it is text and how to read it.

    Args:
        path: the file; it may be empty.
        encoding: as for `read_text`.
        errors: as for `read_text`.
        progress: told the bytes on disk, all of them once (to recognise the encoding is quicker, and goes untold).

    Raises:
        UserError: as `read_raw`; or it is a pipe, which cannot be read twice.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise UserError(say("text.pipe", path=path))
    return examined(path, partial(blocks_of, path), encoding, errors, progress)


def examined(path: Path, read: Read, encoding: str, errors: str, progress: Progress = nothing) -> TextFile:
    """Read bytes once through, in blocks, and find that they are text and how to read them.

    Args:
        path: what messages call them.
        read: the bytes.
        encoding: as for `read_text`.
        errors: as for `read_text`.
        progress: told the bytes as `read` tells them, once.

    Raises:
        UserError: as `read_raw`.
    """
    named = None if encoding == "auto" else codec_name(encoding)
    used = named or recognised(read, path)
    notes = []
    if named is None and used != "utf-8":
        notes.append(say("text.encoding_recognised", path=path, encoding=used.upper()))
    if errors == "replace":
        notes.extend(_replaced(path, read, used))
    size, controls = 0, ControlCodes()
    marked, blank = False, True
    ends = io.IncrementalNewlineDecoder(None, translate=True)

    def counted() -> Iterator[bytes]:
        nonlocal size
        for block in read(progress=progress):
            size += len(block)
            yield block

    for number, part in enumerate(_decoded(path, counted(), used, errors)):
        marked = marked or (number == 0 and part.startswith(MARK))
        text = part.removeprefix(MARK) if number == 0 else part
        blank = blank and not text.strip()
        controls.take(text)
        ends.decode(text)
    ends.decode("", final=True)
    if marked:
        notes.append(say("text.bom_removed", path=path))
    # White space may be made of control codes alone; that is no text rather than a binary file.
    if not blank:
        controls.require_text(path)
    return TextFile(path, read, used, errors, size, blank, _kinds(ends.newlines), tuple(notes))


def _kinds(newlines: str | tuple[str, ...] | None) -> tuple[str, ...]:
    found = (newlines,) if isinstance(newlines, str) else newlines or ()
    return tuple(name for name, end in (("CRLF", "\r\n"), ("CR", "\r")) if end in found)


def _replaced(path: Path, read: Read, encoding: str) -> list[str]:
    """A note on how many places do not fit the encoding, if any."""
    try:
        for _ in decoded(read(), encoding):
            pass
    except WrongByteError as first:
        # What stands in the file as U+FFFD itself is left in both.
        counts = {errors: sum(part.count("\ufffd") for part in decoded(read(), encoding, errors)) for errors in _WAYS}
        count = counts["replace"] - counts["ignore"]
        return [say("text.replaced", path=path, count=count, encoding=encoding, offset=first.offset)]
    return []


def _decoded(path: Path, blocks: Iterable[bytes], encoding: str, errors: str) -> Iterator[str]:
    try:
        yield from decoded(blocks, encoding, errors)
    except WrongByteError as wrong:
        raise UserError(
            say("text.wrong_byte", path=path, encoding=encoding, byte=wrong.byte, offset=wrong.offset)
        ) from None


def _characters(path: Path, blocks: Iterable[bytes], encoding: str, errors: str) -> Iterator[str]:
    """The decoded parts without a mark at their start."""
    parts = _decoded(path, blocks, encoding, errors)
    first = next(parts, "").removeprefix(MARK)
    if first:
        yield first
    yield from parts
