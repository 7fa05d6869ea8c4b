"""The record of a training as it lies on disk: which lines of a `metrics.jsonl` can be read. Imports without torch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["parsed", "read_record"]


def parsed(texts: Iterable[bytes]) -> Iterator[dict[str, Any] | None]:
    """Each line that is not blank as what it records, an object with a whole number as its `step`; None if it is none.

    A killed process may leave the last line cut, inside a character too; a user may have damaged any.
    """
    for text in texts:
        if not text.strip():
            continue
        try:
            line = json.loads(text.decode("utf-8"))
        except (ValueError, RecursionError):
            line = None
        yield line if isinstance(line, dict) and type(line.get("step")) is int else None


def read_record(path: Path) -> list[dict[str, Any]]:
    """The lines of the file that can be read, in their order; none if there is no file.

    Raises:
        OSError: if the system refuses to read a file that is there.
    """
    if not path.exists():
        return []
    return [line for line in parsed(path.read_bytes().split(b"\n")) if line is not None]
