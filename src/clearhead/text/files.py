"""A text file -> its text, whatever its encoding and line ends, and what was done to get there.

One whose name ends with .gz is uncompressed on the way. The rule by which `encoding="auto"` decides stands at the top of
`clearhead.text.characters`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clearhead.messages import UserError, say
from clearhead.text.streams import Progress, blocks_of, nothing
from clearhead.text.text_file import examined

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

__all__ = [
    "LEAST_BYTES",
    "DecodedText",
    "RawText",
    "raw_text",
    "read_raw",
    "read_text",
    "require_size",
    "with_line_feeds",
]

LEAST_BYTES = 1000
"""The smallest file that can be trained on, in bytes (of a .gz file: uncompressed)."""


@dataclass(frozen=True)
class DecodedText:
    """The text of one file.

    Attributes:
        text: the characters, every line end LF, no byte order mark.
        encoding: the encoding that was used, by Python's name ("utf-8", "utf-16-le", "gb18030", ...).
        path: the file.
        notes: one line, in the user's language, for each thing that a reader of the file should know: an encoding that
            was recognised (other than UTF-8), bytes that were replaced, a mark that was removed, line ends that were
            changed.
    """

    text: str
    encoding: str
    path: Path
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RawText:
    """The characters of one file as they stand in it.

    Attributes:
        text: the characters, line ends unchanged, no byte order mark; may be blank.
        encoding: the encoding that was used, by Python's name.
        size: the bytes of the file.
        notes: as those of `DecodedText`, without the line ends.
    """

    text: str
    encoding: str
    size: int
    notes: tuple[str, ...]


def read_text(path: str | os.PathLike[str], encoding: str = "auto", errors: str = "strict") -> DecodedText:
    """The text of the file `path`.

    Args:
        path: the file; at least `LEAST_BYTES` long.
        encoding: "auto" to recognise it (the rule stands at the top of `clearhead.text.characters`), or any text encoding
            that Python knows. A name is obeyed, never second-guessed.
        errors: "strict" refuses bytes that do not fit the encoding, "replace" puts U+FFFD in their place.

    Raises:
        UserError: the file is missing, a folder, unreadable, empty, too small or binary, a byte does not fit the
            encoding (the message names the byte and its offset from the start of the file), or there is no such
            encoding.
    """
    file = Path(path)
    raw = read_raw(file, encoding, errors)
    require_size(file, raw.size, blank=not raw.text.strip())
    text, kinds = with_line_feeds(raw.text, lone=True)
    ends = tuple(say("text.line_ends", path=file, kind=kind) for kind in kinds)
    return DecodedText(text=text, encoding=raw.encoding, path=file, notes=raw.notes + ends)


def require_size(path: Path, size: int, *, blank: bool, least: int = LEAST_BYTES) -> None:
    """Refuse a file that is too little, to train on unless told otherwise.

    Raises:
        UserError: it is blank, or shorter than `least`.
    """
    if blank:
        raise UserError(say("text.empty", path=path, least=least))
    if size < least:
        raise UserError(say("text.too_small", path=path, size=size, least=least))


def read_raw(file: Path, encoding: str, errors: str = "strict") -> RawText:
    """The characters of a file of any size, for those who set a least size and judge line ends themselves.

    Args:
        file: the file; it may be empty.
        encoding: as for `read_text`.
        errors: as for `read_text`.

    Raises:
        UserError: as `read_text`, except that neither an empty file nor a small one is an error.
    """
    return raw_text(b"".join(blocks_of(file)), file, encoding, errors)


def raw_text(data: bytes, file: Path, encoding: str, errors: str = "strict") -> RawText:
    """The characters of bytes that did not come from a file.

    Args:
        data: the bytes.
        file: what messages call them.
        encoding: as for `read_text`.
        errors: as for `read_text`.

    Raises:
        UserError: as `read_raw`.
    """

    def whole(*, progress: Progress = nothing) -> Iterable[bytes]:
        return [data] if data else []

    looked = examined(file, whole, encoding, errors, nothing)
    return RawText("".join(looked.raw_parts()), looked.encoding, looked.size, looked.notes)


def with_line_feeds(text: str, lone: bool) -> tuple[str, list[str]]:
    """The text with every line end LF, and the kinds of line end that were replaced.

    Args:
        text: the characters of a file.
        lone: whether a CR that no LF follows is a line end; otherwise it stays.
    """
    kinds = []
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
        kinds.append("CRLF")
    if lone and "\r" in text:
        text = text.replace("\r", "\n")
        kinds.append("CR")
    return text, kinds
