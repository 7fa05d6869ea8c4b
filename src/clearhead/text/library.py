"""A tokenizer of the `tokenizers` library, whatever its kind, as one of ours."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

from clearhead.messages import UserError, say
from clearhead.text.ids import Ids, checked_ids
from clearhead.text.library_decoding import Added, added_bytes, readable
from clearhead.text.library_json import HIDDEN, PANIC, Opened, Refusals, further_encoder, open_library, unknown_id
from clearhead.text.tokenizer import UNKNOWN, without_surrogates

__all__ = ["LIBRARY_VERSION", "LibraryStream", "LibraryTokenizer"]

LIBRARY_VERSION = 2
"""The version of what `LibraryTokenizer.to_dict` writes; version 1 knew no such tokenizer."""
SIZED_VERSION = 3
"""The same with a size of its own, which version 2 did not know."""
MASK_VERSION = 4
"""The same with a mask, which version 3 did not know."""

AS_MANY_AS_TOKENS: Any = None
"""The size of a tokenizer whose model has a row for each of its tokens, and no more: a number as soon as it is made."""

AT_A_TIME = 1 << 21
"""About how many characters the library is given at a time: what it returns is some hundred times larger."""


@dataclass(frozen=True)
class LibraryTokenizer:
    """Any `tokenizer.json`: byte-level BPE, WordPiece, Unigram and what else the `tokenizers` library reads.

    A text is encoded as the library does it, with three differences. What the file calls special is never made by a text,
    "<|endoftext|>" included: such a spelling is encoded as the text it is. No text is an error: a model that has no token
    for what it does not know leaves it out. And a text has one encoding: truncation, padding and dropout that the file
    records are switched off, and nothing is put around the ids.

    Byte-level tokenizers give every text back, `decode(encode(text)) == text`; others may normalise it first.

    Attributes:
        json: the `tokenizer.json`, in one form: compact, as the library itself writes it.
        begin: the id that stands before the first token of a text, if there is one.
        end: the id that stands behind the last.
        size: the number of ids: how many the model has, if that differs from the highest id of a token and one. Ids that have no
            token decode to nothing. Added tokens that have no id there are left out of `json`, and what they spell is text.
        mask: the id that stands for a hidden token, if there is one.

    Raises:
        UserError: the library cannot read it, it holds no token, a mark is not one of its special ids, or a token that is not added
            has no id below `size`.
    """

    json: str = field(repr=False)
    begin: int | None = None
    end: int | None = None
    size: int = field(default=AS_MANY_AS_TOKENS, repr=False)
    mask: int | None = field(default=None, repr=False)
    _opened: Opened = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        opened = open_library(self.json, self.size)
        object.__setattr__(self, "json", opened.json)
        object.__setattr__(self, "size", len(opened.tokens))
        object.__setattr__(self, "_opened", opened)
        # A mark that a text could make would be no mark.
        for name, mark in (("begin", self.begin), ("end", self.end), ("mask", self.mask)):
            if mark is not None and mark not in opened.specials.values():
                raise UserError(say("text.library_mark", name=name, id=mark))

    def __reduce__(self) -> tuple[type[LibraryTokenizer], tuple[str, int | None, int | None, int, int | None]]:
        # A pickle of the library's object forgets that spellings of special tokens are text: it is made anew.
        return LibraryTokenizer, (self.json, self.begin, self.end, self.size, self.mask)

    @property
    def tokenizer(self) -> tokenizers.Tokenizer:
        """The library's own object of `json`."""
        return self._opened.library

    @cached_property
    def specials(self) -> Mapping[str, int]:
        """The added tokens that `json` calls special, without the one that stands for what the model does not know."""
        return MappingProxyType(self._opened.specials)

    @cached_property
    def holes(self) -> frozenset[int]:
        """The ids that have no token."""
        return frozenset(id for id, token in enumerate(self._opened.tokens) if token is None)

    @cached_property
    def unknown(self) -> int | None:
        """The id that some texts make because the model knows nothing better; None if no text makes one."""
        return unknown_id(json.loads(self.json))

    @cached_property
    def _silent(self) -> frozenset[int]:
        """The ids that decode to nothing, as if they were not there."""
        return self.holes.union(self.specials.values())

    @cached_property
    def _further(self) -> tokenizers.Tokenizer:
        return further_encoder(self._opened.encoder)

    @cached_property
    def _added(self) -> Added:
        return added_bytes(self._opened.library.decoder, self._opened.decoder)

    def encode(self, text: str) -> list[int]:
        """The ids of the text; what the model cannot write is left out, and no text makes a special id."""
        ids: list[int] = self.encode_array(text).tolist()
        return ids

    def encode_array(self, text: str) -> NDArray[np.int64]:
        """The same ids as an array, for whole files."""
        (ids,) = self.encode_many([text])
        return ids

    def encode_many(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The ids of each text; the library encodes several texts at a time, one a thread."""
        rows: list[NDArray[np.int64]] = []
        for batch in _batches(texts):
            clean = [self._clean(text) for text in batch]
            with Refusals(PANIC):
                encodings = self._opened.encoder.encode_batch_fast(clean, add_special_tokens=False)
            rows += [self._ours(encoding.ids) for encoding in encodings]
        return rows

    def covered(self, text: str) -> list[tuple[int, int]]:
        """The characters of the text that each of its ids was made of: where they begin, and the one after the last.

        The library says it, whatever it made of the text before it cut it. White space that it drops belongs to no id, and each of the
        ids that only together are one character has the whole character.
        """
        with Refusals(PANIC):
            encoding = self._opened.encoder.encode(self._clean(text), add_special_tokens=False)
        ids, table = np.array(encoding.ids, dtype=np.int64), self._opened.ids
        kept = np.ones(ids.shape, dtype=np.bool_) if table is None else table[ids] >= 0
        return [place for place, keep in zip(encoding.offsets, kept.tolist(), strict=True) if keep]

    def encode_further(self, text: str) -> list[int]:
        """The ids of a text behind a special id: some tokenizers put a space before the first word of a whole text, and no other."""
        with Refusals(PANIC):
            encoding = self._further.encode(self._clean(text), add_special_tokens=False)
        ids: list[int] = self._ours(encoding.ids).tolist()
        return ids

    def decode(self, ids: Ids) -> str:
        """The text of the ids; special ids are left out, and U+FFFD stands for bytes that are no UTF-8.

        Raises:
            UserError: an id is outside the vocabulary; the message names both numbers.
        """
        return b"".join(self._bytes(checked_ids(ids, self.size).tolist())).decode("utf-8", errors="replace")

    def pieces(self, ids: Ids) -> list[str]:
        """Each id by itself, as it follows another.

        That is its characters, with the space before a word, and `<0xE4>` for a byte that is only part of a character; a special
        token as it is spelt; an id without a token as `<17>`.

        Raises:
            UserError: as `decode`.
        """
        return [self._piece(id) for id in checked_ids(ids, self.size).tolist()]

    def stream(self) -> LibraryStream:
        """A new stream for ids that come one at a time."""
        return LibraryStream(self)

    def to_dict(self) -> dict[str, object]:
        """The type, the format version, the marks, `json` as the object that it describes, and the size if its tokens do not say it."""
        padded = self._opened.tokens[-1] is None
        # No later version than is needed, so that an earlier clearhead can read it.
        version = SIZED_VERSION if padded else LIBRARY_VERSION
        further = ({"size": self.size} if padded else {}) | ({} if self.mask is None else {"mask": self.mask})
        return {
            "type": "LibraryTokenizer",
            "format_version": version if self.mask is None else MASK_VERSION,
            "begin": self.begin,
            "end": self.end,
            "library": json.loads(self.json),
            **further,
        }

    def _clean(self, text: str) -> str:
        text = without_surrogates(text)
        return text.replace(HIDDEN, UNKNOWN) if self._opened.hides else text

    def _ours(self, ids: list[int]) -> NDArray[np.int64]:
        row = np.array(ids, dtype=np.int64)
        if self._opened.ids is None:
            return row
        row = self._opened.ids[row]
        return row[row >= 0]

    def _piece(self, id: int) -> str:
        token = self._opened.tokens[id]
        if token is None:
            return f"<{id}>"
        return token if id in self._silent else readable(self._added, token)

    def _bytes(self, ids: Iterable[int], before: int | None = None) -> Iterator[bytes]:
        """The bytes that each id adds, behind the id `before`; none for those that are left out."""
        tokens, silent, added = self._opened.tokens, self._silent, self._added
        last = None if before is None else tokens[before]
        for id in ids:
            token = tokens[id]
            if token is not None and id not in silent:
                yield added(last, token)
                last = token


class LibraryStream:
    """The stream of a `LibraryTokenizer`: the bytes of a character are held back until its last one has come."""

    def __init__(self, tokenizer: LibraryTokenizer) -> None:
        self._tokenizer = tokenizer
        self._last: int | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, id: int) -> str:
        """The characters that this id completes; "" if it completes none."""
        (known,) = checked_ids([id], self._tokenizer.size).tolist()
        added = [*self._tokenizer._bytes([known], before=self._last)]
        if added:
            self._last = known
        return self._decoder.decode(b"".join(added))

    def finish(self) -> str:
        """U+FFFD if the last character is incomplete, otherwise nothing; the stream then begins anew."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        self._last = None
        return rest


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The texts in their order, `AT_A_TIME` characters and the text that reaches them at a time."""
    first = characters = 0
    for place, text in enumerate(texts, start=1):
        characters += len(text)
        if characters >= AT_A_TIME or place == len(texts):
            yield texts[first:place]
            first, characters = place, 0
