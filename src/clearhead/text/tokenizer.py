"""What a tokenizer is: text -> token ids and back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clearhead.text.ids import Ids

__all__ = ["FORMAT_VERSION", "UNKNOWN", "TextStream", "Tokenizer", "without_surrogates"]

FORMAT_VERSION = 1
"""The version of what `to_dict` writes."""

UNKNOWN = "\ufffd"
"""The mark that stands for what a tokenizer does not know: U+FFFD, the replacement character."""


_SURROGATE = re.compile("[\ud800-\udfff]")


def without_surrogates(text: str) -> str:
    """The text with U+FFFD for every surrogate: a half of a pair is no character, and no UTF-8 can hold it."""
    try:
        # Far quicker than a search, and nearly every text passes.
        text.encode("utf-8")
    except UnicodeEncodeError:
        return _SURROGATE.sub(UNKNOWN, text)
    return text


class TextStream(Protocol):
    """Ids one at a time -> text as soon as its characters are whole.

    Everything that `push` gave out, and then `finish`, joined, is `decode` of the same ids.
    """

    def push(self, id: int) -> str:
        """The characters that this id completes; "" if it completes none."""
        ...

    def finish(self) -> str:
        """What is still held back, as `decode` would write it; the stream then begins anew."""
        ...


class Tokenizer(Protocol):
    """What training and generation ask of a tokenizer."""

    @property
    def size(self) -> int:
        """The number of ids, V; ids are 0 to V - 1."""
        ...

    @property
    def begin(self) -> int | None:
        """The id that stands before the first token of a text; None if there is no such mark."""
        ...

    @property
    def end(self) -> int | None:
        """The id that stands behind the last token of a text; None if there is no such mark."""
        ...

    @property
    def specials(self) -> Mapping[str, int]:
        """The ids that `encode` never makes, whatever the text, by how they are spelt where somebody asks for them."""
        ...

    def encode(self, text: str) -> list[int]:
        """The ids of a text; never an error, whatever the text, and never a special id."""
        ...

    def encode_array(self, text: str) -> NDArray[np.int64]:
        """The same ids as an array, for whole files."""
        ...

    def encode_many(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The ids of each text; in parallel where that pays."""
        ...

    def decode(self, ids: Ids) -> str:
        """The text of the ids.

        Raises:
            UserError: an id is outside the vocabulary; the message names both numbers.
        """
        ...

    def pieces(self, ids: Ids) -> list[str]:
        """Each id by itself, as it is shown to a reader.

        Raises:
            UserError: as `decode`.
        """
        ...

    def stream(self) -> TextStream:
        """A new stream for ids that come one at a time."""
        ...

    def to_dict(self) -> dict[str, object]:
        """What `tokenizer_from_dict` needs to make an equal tokenizer: numbers and strings only."""
        ...
