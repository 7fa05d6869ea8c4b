"""A file -> its bytes in blocks, uncompressed if its name ends with .gz; and who is told how far reading is."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from clearhead.messages import UserError, say

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BLOCK", "Blocks", "Progress", "blocks_of", "is_gzip", "nothing"]

BLOCK = 1 << 20
"""Bytes that are read at a time."""

Progress: TypeAlias = Callable[[int], None]
"""Told, again and again, how many more bytes on disk have been read."""

Blocks: TypeAlias = Callable[[], Iterable[bytes]]
"""The same bytes at every call, in blocks of any length; none of them is empty."""


def nothing(count: int) -> None:
    """Whom nobody watches: the progress that goes nowhere."""


def is_gzip(path: Path) -> bool:
    """Whether the name says that the file is compressed: it ends with .gz, in small or capital letters."""
    return path.suffix.lower() == ".gz"


def blocks_of(path: Path, progress: Progress = nothing, size: int = BLOCK) -> Iterator[bytes]:
    """The bytes of a file, block after block; those of a .gz file uncompressed.

    Args:
        path: the file.
        progress: told the bytes that were read from the disk; of a .gz file the compressed ones.
        size: the bytes of a block; the last may be shorter.

    Raises:
        UserError: the file is missing, a folder, unreadable, or a damaged .gz file.
    """
    try:
        # Asked first because Windows reports a folder as lack of permission.
        if path.is_dir():
            raise UserError(say("text.directory", path=path))
        with path.open("rb") as raw:
            stream = gzip.GzipFile(fileobj=raw) if is_gzip(path) else raw
            told = 0
            while block := stream.read(size):
                place = raw.tell()
                progress(place - told)
                told = place
                yield block
            # What a compressed file holds behind its last block.
            progress(raw.tell() - told)
    except FileNotFoundError:
        raise UserError(say("text.missing", path=path)) from None
    except PermissionError:
        raise UserError(say("text.permission", path=path)) from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise UserError(say("text.damaged_gzip", path=path)) from None
    except OSError as error:
        raise UserError(say("text.unreadable", path=path, reason=error.strerror or error)) from None
