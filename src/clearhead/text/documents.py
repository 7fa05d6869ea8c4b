"""Documents: texts in parts, so that no document need fit into memory; and how files are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from clearhead.messages import UserError, say

__all__ = ["ERRORS", "PART", "Document", "Documents", "Reading"]

ERRORS = ("strict", "replace")

PART = 1 << 20
"""About how many characters a part of a long document has."""


@dataclass(frozen=True)
class Reading:
    """How files are read.

    Args:
        encoding: "auto" to recognise it, or any text encoding that Python knows.
        errors: what becomes of bytes that do not fit the encoding: "strict" refuses the file and names the first of them,
            "replace" puts U+FFFD in their place.
        field: which field of a .jsonl line holds the text.

    Raises:
        UserError: if `errors` is neither.
    """

    encoding: str = "auto"
    errors: str = "strict"
    field: str = "text"

    def __post_init__(self) -> None:
        if self.errors not in ERRORS:
            raise UserError(say("training.setting", name="errors", value=self.errors, wanted=" | ".join(ERRORS)))


class Document(NamedTuple):
    """One text."""

    path: Path | None
    """Where it was read; None for a text that is in no file."""
    line: int | None
    """The line of a .jsonl or .csv file, from 1; None if the file is the document."""
    parts: Iterable[str]
    """The text in its order, in pieces of any length; line ends are LF. To be read once."""


Documents: TypeAlias = Callable[[], Iterator[Document]]
"""The same documents in the same order at every call; each is to be read before the next is asked for."""
