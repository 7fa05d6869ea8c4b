"""Token ids on disk, a document after another: written as they come, read a slice at a time.

A token file is a safetensors file, which any reader of that format opens: `ids` (uint16, or uint32 for more than 65536 ids)
and `ends` (int64, the place behind the last id of each document), with what they were made from as metadata, and the SHA-256 of both,
so that an id which became another is noticed. It is written once from front to back; its header, whose room was kept free, last. It is read by opening it anew for each slice: nothing stays
mapped, so that memory is flat over an epoch and another process may replace the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from io import FileIO
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from clearhead.formats.atomic import new_file
from clearhead.formats.token_header import Header, header_bytes, read_header
from clearhead.messages import UserError, say
from clearhead.text.encoding import Encoded
from clearhead.text.ids import checked_ids
from clearhead.text.saved import fingerprint, tokenizer_from_dict
from clearhead.text.tokenizer import Tokenizer

__all__ = ["TokenFile", "TokenSpan", "TokenSpans", "open_tokens", "unchanged_tokens", "write_tokens"]

BLOCK = 1 << 18
"""How many ids are written, or looked through, at a time."""


@dataclass(frozen=True)
class TokenFile:
    """A token file as it was opened."""

    path: Path
    header: Header = field(repr=False)
    """What it says about itself: counts, digests, the vocabulary."""
    begin: int = field(repr=False)
    """At which byte the ids begin."""
    stamp: tuple[int, int] = field(repr=False)
    """Its size and its time when it was opened."""

    def __len__(self) -> int:
        """The number of ids, of all documents."""
        return self.header.tokens

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that made the ids, made anew.

        Raises:
            UserError: this clearhead cannot make it.
        """
        return tokenizer_from_dict(json.loads(self.header.tokenizer))

    @property
    def documents(self) -> TokenSpans:
        """The documents in their order."""
        return TokenSpans(self)

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """The place behind the last id of each document; 8 bytes a document are kept in memory."""
        start = self.begin + self.header.width.itemsize * self.header.tokens
        return self._read(start, self.header.documents, np.dtype("<i8")).astype(np.int64, copy=False)

    def ids(self, start: int = 0, stop: int | None = None) -> NDArray[np.int64]:
        """The ids from place `start` up to `stop`, counted over all documents, in an array of their own.

        Places are those of a slice: negative ones count from the end, and there is nothing beyond it.

        Raises:
            UserError: the file was changed since it was opened, or can no longer be read.
        """
        first, last, _ = slice(start, stop).indices(self.header.tokens)
        width = self.header.width
        return self._read(self.begin + width.itemsize * first, max(0, last - first), width).astype(np.int64)

    def blocks(self) -> Iterator[NDArray[np.integer]]:
        """All ids in order, `BLOCK` at a time, as they stand on disk: uint16 or uint32.

        Raises:
            UserError: as `ids`.
        """
        for start in range(0, self.header.tokens, BLOCK):
            count = min(BLOCK, self.header.tokens - start)
            yield self._read(self.begin + self.header.width.itemsize * start, count, self.header.width)

    def matches(self, tokenizer: Tokenizer, source: str) -> bool:
        """Whether the file holds what `tokenizer` makes of the texts whose digest is `source`."""
        return (self.header.tokenizer_sha256, self.header.source_sha256) == (fingerprint(tokenizer), source)

    def _read(self, begin: int, count: int, width: np.dtype[np.integer]) -> NDArray[np.integer]:
        found = np.empty(count, dtype=width)
        if not count:
            return found
        left = found.data.cast("B")
        with _reading(self.path) as file:
            # Another file may stand there by now: its header is not the one that was read.
            changed = _stamp(file) != self.stamp
            file.seek(begin)
            while left.nbytes and not changed:
                taken = file.readinto(left)
                changed, left = not taken, left[taken:]
        if changed:
            raise UserError(say("token_files.changed", path=self.path))
        return found


@dataclass(frozen=True)
class TokenSpan:
    """A document in a token file: its slices are read when they are asked for.

    Attributes:
        file: where it stands.
        begin: the place of its first id in the file.
        end: the place behind its last.
    """

    file: TokenFile
    begin: int
    end: int

    def __len__(self) -> int:
        """How many ids it has."""
        return self.end - self.begin

    def __getitem__(self, places: slice, /) -> NDArray[np.int64]:
        """The ids from one place to another, in an array of their own.

        Raises:
            UserError: as `TokenFile.ids`.
        """
        start, stop, step = places.indices(len(self))
        if step != 1:
            return self[:][places]
        return self.file.ids(self.begin + start, self.begin + max(start, stop))


class TokenSpans(Sequence[TokenSpan]):
    """The documents of a token file."""

    def __init__(self, file: TokenFile) -> None:
        self._file = file

    def __len__(self) -> int:
        """How many there are."""
        return self._file.header.documents

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many ids each has: known without making one of them."""
        return np.diff(self._file.ends, prepend=0)

    @overload
    def __getitem__(self, index: int) -> TokenSpan: ...
    @overload
    def __getitem__(self, index: slice) -> list[TokenSpan]: ...
    def __getitem__(self, index: int | slice) -> TokenSpan | list[TokenSpan]:
        """One document, or a list of some."""
        if isinstance(index, slice):
            return [self[each] for each in range(len(self))[index]]
        place = range(len(self))[index]
        return TokenSpan(self._file, int(self._file.ends[place - 1]) if place else 0, int(self._file.ends[place]))


def write_tokens(path: Path, tokenizer: Tokenizer, pieces: Iterable[Encoded], *, source: str) -> TokenFile:
    """Write a token file while the ids are made; memory holds a block of them and 8 bytes a document.

    A killed process, a full disk or whatever `pieces` raises leaves what was at `path` as it was.

    Args:
        path: where to.
        tokenizer: what made the ids.
        pieces: the ids, as `text.encoding.encoded` gives them.
        source: the digest of the texts, by which the file is known again.

    Raises:
        UserError: the system refuses (no space, no permission), an id is outside the vocabulary, or what `pieces` raises.
    """
    saved = json.dumps(tokenizer.to_dict(), ensure_ascii=False)
    content = hashlib.sha256()
    header = Header(saved, fingerprint(tokenizer), source, content.hexdigest(), tokenizer.size, 0, 0, 0)
    room = len(header_bytes(header.widest))
    ends, written = array("q"), [0, 0]

    def watched() -> Iterator[NDArray[np.int64]]:
        for piece in pieces:
            written[0] += len(piece.ids)
            written[1] += piece.characters
            if piece.ends:
                ends.append(written[0])
            yield piece.ids

    with new_file(path) as file:
        file.write(b" " * room)
        for block in _blocks(watched()):
            ids = checked_ids(block, tokenizer.size).astype(header.width).data.cast("B")
            content.update(ids)
            file.write(ids)
        behind = np.array(ends, dtype="<i8").tobytes()
        content.update(behind)
        file.write(behind)
        tokens, characters = written
        header = header._replace(
            content_sha256=content.hexdigest(), tokens=tokens, documents=len(ends), characters=characters
        )
        file.rewind()
        file.write(header_bytes(header, room))
    return _known(path)


def open_tokens(path: Path, tokenizer: Tokenizer | None = None) -> TokenFile:
    """The token file at `path`, looked through once.

    Args:
        path: where it is.
        tokenizer: what its ids are wanted for; None if any will do.

    Raises:
        UserError: it cannot be read, is no token file, is damaged (one id that became another is enough) or of another version, or
            another tokenizer made it.
    """
    file = _known(path)
    header = file.header
    if tokenizer is not None and (wanted := fingerprint(tokenizer)) != header.tokenizer_sha256:
        found = header.tokenizer_sha256
        raise UserError(say("token_files.tokenizer", path=path, found=found[:12], wanted=wanted[:12]))
    ends = np.concatenate([[0], file.ends])
    if ends[-1] != header.tokens or (ends[1:] < ends[:-1]).any():
        raise UserError(say("token_files.contradiction", path=path, name="ends"))
    content = hashlib.sha256()
    for block in file.blocks():
        if block.max() >= header.vocab:
            raise UserError(say("token_files.id_outside", path=path, id=block.max(), vocab=header.vocab))
        content.update(block.data.cast("B"))
    content.update(ends[1:].astype("<i8", copy=False).tobytes())
    if content.hexdigest() != header.content_sha256:
        raise UserError(say("token_files.content", path=path))
    return file


def unchanged_tokens(path: Path, tokenizer: Tokenizer, source: str) -> TokenFile | None:
    """The token file at `path` if it holds what would be written there; None if it is to be made, for whatever reason."""
    try:
        file = open_tokens(path, tokenizer)
    except UserError:
        return None
    return file if file.matches(tokenizer, source) else None


def _blocks(rows: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.int64]]:
    """The same ids in rows of `BLOCK` or more: documents may be tiny."""
    waiting: list[NDArray[np.int64]] = []
    length = 0
    for row in rows:
        waiting.append(row)
        length += len(row)
        if length >= BLOCK:
            yield np.concatenate(waiting)
            waiting, length = [], 0
    if length:
        yield np.concatenate(waiting)


def _known(path: Path) -> TokenFile:
    """The file at `path` by its header alone."""
    with _reading(path) as file:
        header, begin = read_header(path, file)
        return TokenFile(path, header, begin, _stamp(file))


@contextmanager
def _reading(path: Path) -> Iterator[FileIO]:
    """The file opened for reading; the system's refusal is one line for the user."""
    try:
        with path.open("rb", buffering=0) as file:
            yield file
    except OSError as error:
        raise UserError(say("text.unreadable", path=path, reason=error.strerror or error)) from error


def _stamp(file: FileIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns
