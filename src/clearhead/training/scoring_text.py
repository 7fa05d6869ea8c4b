"""Texts on their way to being scored: their ids in a temporary file, and what the scored tokens stand for, counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from clearhead.formats.token_files import TokenSpans, write_tokens
from clearhead.text import CharacterTokenizer, MarkedTokenizer, Tokenizer
from clearhead.text.documents import Document, Documents
from clearhead.text.encoding import Encoded, encoded
from clearhead.training.batches import Ids

Readable: TypeAlias = str | Sequence[str] | Documents
"""A text, several, or documents in parts."""

_PART_OF_CHARACTER = re.compile("<0x[0-9A-F]{2}>")


class Extent(NamedTuple):
    """How much text there is."""

    bytes: int
    """Of its UTF-8."""
    characters: int

    def plus(self, other: Extent) -> Extent:
        """The sum."""
        return Extent(self.bytes + other.bytes, self.characters + other.characters)

    def minus(self, other: Extent) -> Extent:
        """The difference."""
        return Extent(self.bytes - other.bytes, self.characters - other.characters)


NOTHING = Extent(0, 0)


class Spooled(NamedTuple):
    """Texts as ids, and what is scored of them."""

    documents: TokenSpans
    """The ids of each, without marks."""
    marks: tuple[int, int] | None
    """What stands before and behind each of them; None for a tokenizer that does not have both."""
    scored: int
    """Of how many documents anything is scored."""
    tokens: int
    """How many are scored, end marks among them."""
    ends: int
    """How many of them are end marks."""
    extent: Extent
    """Of the scored text."""
    unknown: int
    """How many scored ids are the unknown mark of a character tokenizer."""


def spooled(
    path: Path,
    tokenizer: Tokenizer,
    texts: Readable,
    limit: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Spooled:
    """The ids of texts, written to a token file.

    Args:
        path: the file; it must stay as long as the ids are read.
        tokenizer: of the model.
        texts: read once, in parts.
        limit: no more is kept than the first so many scored tokens need; all if None.
        progress: is told how many characters have been read.

    Raises:
        UserError: whatever reading the texts raises, or the system refuses to write.
    """
    read, counted = _Read(texts), _Counted(tokenizer, limit)
    pieces = counted.of(encoded(tokenizer, read.documents, progress))
    documents = write_tokens(path, tokenizer, pieces, source="").documents
    if limit is not None:
        # No more is known of a text that is cut than what its ids stand for.
        extent = counted.kept.minus(counted.first)
    else:
        # The text itself, which a tokenizer may not give back as it was: what it does not know is a mark to it.
        every_character = counted.unscored and counted.mark is not None
        extent = read.extent.minus(read.firsts if every_character else counted.first)
    return Spooled(documents, counted.marks, counted.scored, counted.tokens, counted.ends, extent, counted.unknown)


def inner_of(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer of the text, without the marks around it."""
    return tokenizer.inner if isinstance(tokenizer, MarkedTokenizer) else tokenizer


class _Counted:
    """Ids that are counted as they pass, and cut behind the first so many that are scored."""

    def __init__(self, tokenizer: Tokenizer, limit: int | None) -> None:
        begin, end = tokenizer.begin, tokenizer.end
        self.tokenizer, self.limit = tokenizer, limit
        self.marks = None if begin is None or end is None else (begin, end)
        self.unscored = int(self.marks is None)
        """How many ids at the beginning of a document are not scored."""
        self.mark = 0 if isinstance(inner_of(tokenizer), CharacterTokenizer) else None
        """The id of every character that is not known."""
        self.scored = self.tokens = self.ends = self.unknown = 0
        self.kept = self.first = NOTHING

    def of(self, pieces: Iterable[Encoded]) -> Iterator[Encoded]:
        """The same pieces, up to the limit."""
        here = 0
        for piece in pieces:
            skipped = 0 if here else self.unscored
            ids = piece.ids if self.limit is None else piece.ids[: self.limit - self.tokens + skipped]
            here += len(ids)
            self._count(ids, skipped)
            ends = piece.ends or self.tokens == self.limit
            if ends:
                self.scored += here > self.unscored or self.marks is not None
                if self.marks is not None and self.tokens != self.limit:
                    self.ends, self.tokens = self.ends + 1, self.tokens + 1
                here = 0
            yield piece._replace(ids=ids, ends=ends)
            if self.tokens == self.limit:
                return

    def _count(self, ids: Ids, skipped: int) -> None:
        self.tokens += len(ids[skipped:])
        self.first = self.first.plus(extent_of(self.tokenizer, ids[:skipped]))
        if self.mark is not None:
            self.unknown += int(np.count_nonzero(ids[skipped:] == self.mark))
        if self.limit is not None:
            self.kept = self.kept.plus(extent_of(self.tokenizer, ids))


def extent_of(tokenizer: Tokenizer, ids: Ids) -> Extent:
    """How much text the first ids of a text stand for; a character counts with its last byte."""
    stream = tokenizer.stream()
    text = "".join(map(stream.push, ids.tolist()))
    if not stream.finish():
        return Extent(_bytes(text), len(text))
    # The last character is not whole: a piece shows a byte that is only part of one as <0xE4>.
    return Extent(_bytes(_PART_OF_CHARACTER.sub(".", "".join(tokenizer.pieces(ids)))), len(text))


class _Read:
    """Documents that are counted as they are read."""

    def __init__(self, texts: Readable) -> None:
        self.extent = NOTHING
        """Of everything."""
        self.firsts = NOTHING
        """Of the first character of each document."""
        self._texts = texts

    def documents(self) -> Iterator[Document]:
        """Each of them, once."""
        for document in _documents(self._texts):
            yield document._replace(parts=self._counted(document.parts))

    def _counted(self, parts: Iterable[str]) -> Iterator[str]:
        begun = False
        for part in parts:
            self.extent = self.extent.plus(Extent(_bytes(part), len(part)))
            if part and not begun:
                self.firsts, begun = self.firsts.plus(Extent(_bytes(part[0]), 1)), True
            yield part


def _documents(texts: Readable) -> Iterator[Document]:
    if callable(texts):
        return texts()
    return (Document(None, None, [text]) for text in ([texts] if isinstance(texts, str) else texts))


def _bytes(text: str) -> int:
    # A text that was made in Python may hold half a surrogate pair; tokenizers read it as U+FFFD, of as many bytes.
    return len(text.encode("utf-8", errors="surrogatepass"))
