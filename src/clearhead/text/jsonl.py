r"""A .jsonl file -> its objects, one a line, each with its line number; a broken line is named.

A control code that stands in the file as a byte is judged as in any text file. One that a string writes as an escape, NUL as
`\u0000` among them, was meant: it is a character like any other.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clearhead.messages import UserError, say
from clearhead.text.streams import Progress, nothing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from clearhead.text.text_file import TextFile

__all__ = ["JSONL", "is_jsonl", "lines_of", "objects_of", "plain_suffix", "whole_characters"]


JSONL = ".jsonl"


def plain_suffix(path: Path) -> str:
    """The end of the file's name without .gz, in small letters: ".txt" of "A.TXT.gz", "" of "readme"."""
    inner = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return inner.suffix.lower()


def is_jsonl(path: Path) -> bool:
    """Whether the name says that each line of the file is a JSON value: it ends with .jsonl or .jsonl.gz."""
    return plain_suffix(path) == JSONL


def lines_of(parts: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The lines of a text that comes in parts, each with its number from 1; LF ends a line and nothing else does.

    A line may be longer than many parts: its pieces are joined once.
    """
    number, pieces = 1, [""]
    for part in parts:
        head, *others = part.split("\n")
        pieces.append(head)
        for other in others:
            yield number, "".join(pieces)
            number, pieces = number + 1, [other]
    if last := "".join(pieces):
        yield number, last


def objects_of(file: TextFile, progress: Progress = nothing) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a .jsonl file, each with the number of its line; blank lines are skipped.

    Args:
        file: the file.
        progress: told the bytes on disk as they are read.

    Raises:
        UserError: a line is no whole JSON, or no object (the message names the file and the line).
    """
    for number, line in lines_of(file.parts(progress)):
        if not line or line.isspace():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(say("jsonl.broken", path=file.path, line=number, column=error.pos + 1)) from None
        except (ValueError, RecursionError):
            # A number of thousands of digits, or brackets in brackets beyond what Python follows.
            raise UserError(say("jsonl.too_much", path=file.path, line=number)) from None
        if not isinstance(value, dict):
            raise UserError(say("jsonl.no_object", path=file.path, line=number))
        yield number, value


def whole_characters(text: str, file: TextFile, line: int) -> str:
    r"""The text of a line, without halves of surrogate pairs, which JSON can write (\ud83d) and UTF-8 cannot.

    Raises:
        UserError: there is one, unless wrong bytes are to be replaced: then U+FFFD stands in its place.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        if file.errors != "replace":
            raise UserError(say("jsonl.half_character", path=file.path, line=line)) from None
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
    return text
