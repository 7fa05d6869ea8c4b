"""A text that is ids: "5 17 3", for models that came without a tokenizer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clearhead.messages import UserError, say
from clearhead.text.ids import Ids, checked_ids
from clearhead.text.library_json import MOST_IDS
from clearhead.text.marked import MarkedTokenizer
from clearhead.text.tokenizer import FORMAT_VERSION, Tokenizer
from clearhead.text.tokenizers import NO_SPECIALS

__all__ = ["NumberStream", "NumberTokenizer", "knows_no_words"]


@dataclass(frozen=True)
class NumberTokenizer:
    """Ids written as numbers, with white space between them.

    It stands where nobody knows the words: `encode("5 17 3") == [5, 17, 3]`, and `decode` writes them so again. What stands between
    white space and is no number, or none below `size`, is left out: "5 cat -1 3.5 17" is [5, 17]. The numbers are those of ASCII.

    Every id can be written, the marks too: a text of numbers says exactly what it means, so none of them is special.

    Attributes:
        size: the number of ids, V.
        begin: the id that stands before the first token of a text, if the model has one.
        end: the id that stands behind the last.

    Raises:
        UserError: there is no id, there are more than any vocabulary has, or a mark is none of them.
    """

    size: int
    begin: int | None = None
    end: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.size <= MOST_IDS:
            raise UserError(say("text.numbers_size", size=self.size, most=MOST_IDS))
        for name, mark in (("begin", self.begin), ("end", self.end)):
            if mark is not None and not 0 <= mark < self.size:
                raise UserError(say("text.numbers_mark", name=name, id=mark, size=self.size))

    @property
    def specials(self) -> Mapping[str, int]:
        """None."""
        return NO_SPECIALS

    @cached_property
    def _number(self) -> re.Pattern[str]:
        # No longer than the last id: Python refuses to read thousands of digits, and nobody needs them.
        return re.compile(rf"(?<!\S)0*([0-9]{{1,{len(str(self.size))}}})(?!\S)")

    def encode(self, text: str) -> list[int]:
        """The numbers below `size` in the text, in their order; the rest is left out."""
        return [id for id in map(int, self._number.findall(text)) if id < self.size]

    def encode_array(self, text: str) -> NDArray[np.int64]:
        """The same ids as an array, for whole files."""
        return np.array(self.encode(text), dtype=np.int64)

    def encode_many(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The ids of each text."""
        return [self.encode_array(text) for text in texts]

    def decode(self, ids: Ids) -> str:
        """The ids as numbers, with spaces between them.

        Raises:
            UserError: an id is outside the vocabulary; the message names both numbers.
        """
        return " ".join(self.pieces(ids))

    def pieces(self, ids: Ids) -> list[str]:
        """Each id as a number.

        Raises:
            UserError: as `decode`.
        """
        return [*map(str, checked_ids(ids, self.size).tolist())]

    def stream(self) -> NumberStream:
        """A new stream for ids that come one at a time."""
        return NumberStream(self)

    def to_dict(self) -> dict[str, object]:
        """The type, the format version, the size and the marks."""
        marks = {"begin": self.begin, "end": self.end}
        return {"type": "NumberTokenizer", "format_version": FORMAT_VERSION, "size": self.size, **marks}


def knows_no_words(tokenizer: Tokenizer) -> bool:
    """Whether the texts of a tokenizer are numbers."""
    return isinstance(tokenizer.inner if isinstance(tokenizer, MarkedTokenizer) else tokenizer, NumberTokenizer)


class NumberStream:
    """The stream of a `NumberTokenizer`: a number is whole at once, and brings the space before it, the first of a text aside."""

    def __init__(self, tokenizer: NumberTokenizer) -> None:
        self._tokenizer = tokenizer
        self._between = ""

    def push(self, id: int) -> str:
        """The number."""
        (number,) = self._tokenizer.pieces([id])
        between, self._between = self._between, " "
        return between + number

    def finish(self) -> str:
        """Nothing; the stream then begins anew."""
        self._between = ""
        return ""
