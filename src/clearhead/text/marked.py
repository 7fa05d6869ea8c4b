"""A tokenizer with marks that no text can produce: where a sequence begins, where it ends, and what is hidden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clearhead.messages import UserError, say
from clearhead.text.ids import checked_ids

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from clearhead.text.ids import Ids
    from clearhead.text.tokenizer import TextStream, Tokenizer

__all__ = ["MARKED_VERSION", "MarkedStream", "MarkedTokenizer"]

MARKED_VERSION = 1
"""The version of what `MarkedTokenizer.to_dict` writes around the inner tokenizer's own."""
MASKED_VERSION = 2
"""The same with a mask, which version 1 did not know."""


@dataclass(frozen=True)
class MarkedTokenizer:
    """Another tokenizer and two more ids, or three, behind its own.

    Every id of the inner tokenizer keeps its meaning. A text is encoded as the inner tokenizer does it, so whatever a
    user writes, "<begin>" included, never becomes a mark; who wants marks puts `begin` and `end` around the ids.

    Attributes:
        inner: the tokenizer of the text; not itself a `MarkedTokenizer`.
        masked: whether there is a mark that stands for a hidden token.

    Raises:
        UserError: the inner tokenizer has marks already.
    """

    inner: Tokenizer
    masked: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.inner, MarkedTokenizer):
            raise UserError(say("text.marked_twice"))

    @property
    def size(self) -> int:
        """The number of ids: the inner ones and the marks."""
        return self.inner.size + 2 + self.masked

    @property
    def begin(self) -> int:
        """The id of the mark at which a sequence begins: the first behind the inner ids."""
        return self.inner.size

    @property
    def end(self) -> int:
        """The id of the mark at which a sequence ends."""
        return self.inner.size + 1

    @property
    def mask(self) -> int | None:
        """The id that stands for a hidden token, the last of all; None if there is none."""
        return self.inner.size + 2 if self.masked else None

    @property
    def specials(self) -> Mapping[str, int]:
        """The marks, and what is special to the inner tokenizer."""
        marks = {"<begin>": self.begin, "<end>": self.end} | ({} if self.mask is None else {"<mask>": self.mask})
        return {**self.inner.specials, **marks}

    def encode(self, text: str) -> list[int]:
        """The inner tokenizer's ids of the text, without marks."""
        return self.inner.encode(text)

    def encode_array(self, text: str) -> NDArray[np.int64]:
        """The same ids as an array, for whole files."""
        return self.inner.encode_array(text)

    def encode_many(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The inner tokenizer's ids of each text, without marks."""
        return self.inner.encode_many(texts)

    def decode(self, ids: Ids) -> str:
        """The text of the ids; marks are left out, as if they were not there.

        Raises:
            UserError: an id is outside the vocabulary; the message names both numbers.
        """
        return self.inner.decode(self._without_marks(checked_ids(ids, self.size)))

    def pieces(self, ids: Ids) -> list[str]:
        """Each id by itself, as the inner tokenizer shows it; the marks as `<begin>`, `<end>` and `<mask>`.

        Raises:
            UserError: as `decode`.
        """
        row = checked_ids(ids, self.size)
        marks = {self.begin: "<begin>", self.end: "<end>", self.mask: "<mask>"}
        others = iter(self.inner.pieces(self._without_marks(row)))
        return [marks[id] if id in marks else next(others) for id in row.tolist()]

    def stream(self) -> MarkedStream:
        """A new stream for ids that come one at a time."""
        return MarkedStream(self.inner.stream(), self.inner.size, self.size)

    def to_dict(self) -> dict[str, object]:
        """The type, the format version and the inner tokenizer's dict."""
        saved = {"type": "MarkedTokenizer", "format_version": MARKED_VERSION, "inner": self.inner.to_dict()}
        return saved | ({"format_version": MASKED_VERSION, "masked": True} if self.masked else {})

    def _without_marks(self, row: NDArray[np.int64]) -> NDArray[np.int64]:
        return row[row < self.begin]


@dataclass(frozen=True)
class MarkedStream:
    """The stream of a `MarkedTokenizer`: a mark gives no text and leaves half a character held back.

    Attributes:
        inner: the stream of the inner tokenizer.
        texts: the number of inner ids; those behind them are the marks.
        size: the number of all ids.
    """

    inner: TextStream
    texts: int
    size: int

    def push(self, id: int) -> str:
        """The characters that this id completes; "" for a mark."""
        (known,) = checked_ids([id], self.size).tolist()
        return "" if known >= self.texts else self.inner.push(known)

    def finish(self) -> str:
        """What is still held back, as `decode` would write it; the stream then begins anew."""
        return self.inner.finish()
