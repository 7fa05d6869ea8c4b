"""Text -> token ids and back: one id a character, or one id a byte."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from clearhead.messages import UserError, say
from clearhead.text.code_points import code_points
from clearhead.text.ids import Ids, checked_ids
from clearhead.text.tokenizer import FORMAT_VERSION, UNKNOWN, without_surrogates

__all__ = ["ByteStream", "ByteTokenizer", "CharacterStream", "CharacterTokenizer"]

NO_SPECIALS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class CharacterTokenizer:
    """One id a character: id 0 is the unknown mark U+FFFD, id i is `characters[i - 1]`.

    `decode(encode(text)) == text` if every character of the text is in the vocabulary; each one that is not comes back
    as the mark.

    Attributes:
        characters: the known characters, each once, in the order of their ids; neither U+FFFD nor a surrogate.

    Raises:
        UserError: there is no character, or one that may not stand there.
    """

    characters: str

    def __post_init__(self) -> None:
        if not self.characters:
            raise UserError(say("text.no_characters"))
        seen = set(UNKNOWN)
        for character in self.characters:
            if character in seen or "\ud800" <= character <= "\udfff":
                raise UserError(say("text.bad_character", character=ascii(character)))
            seen.add(character)

    @classmethod
    def of(cls, text: str) -> CharacterTokenizer:
        """The tokenizer whose characters are those of `text`, sorted by code point.

        Raises:
            UserError: the text has no character that can be known.
        """
        known = set(without_surrogates(text)) - {UNKNOWN}
        return cls("".join(sorted(known)))

    @property
    def size(self) -> int:
        """The number of ids: the characters and the unknown mark."""
        return 1 + len(self.characters)

    @property
    def begin(self) -> None:
        """There is none: every id is a character."""

    @property
    def end(self) -> None:
        """There is none."""

    @property
    def specials(self) -> Mapping[str, int]:
        """None."""
        return NO_SPECIALS

    @cached_property
    def _point_of_id(self) -> NDArray[np.uint32]:
        return code_points(UNKNOWN + self.characters)

    @cached_property
    def _id_of_point(self) -> NDArray[np.int64]:
        # One place more than the largest known code point: every larger one is looked up there and finds 0.
        known = self._point_of_id[1:]
        table = np.zeros(int(known.max()) + 2, dtype=np.int64)
        table[known] = np.arange(1, self.size)
        return table

    def encode(self, text: str) -> list[int]:
        """The id of each character; 0 for those that are not known."""
        ids: list[int] = self.encode_array(text).tolist()
        return ids

    def encode_array(self, text: str) -> NDArray[np.int64]:
        """The same ids as an array, for whole files."""
        return self._id_of_point[np.minimum(code_points(text), len(self._id_of_point) - 1)]

    def encode_many(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The ids of each text."""
        return [self.encode_array(text) for text in texts]

    def decode(self, ids: Ids) -> str:
        """The characters of the ids, joined.

        Raises:
            UserError: an id is outside the vocabulary; the message names both numbers.
        """
        return self._point_of_id[checked_ids(ids, self.size)].tobytes().decode("utf-32-le")

    def pieces(self, ids: Ids) -> list[str]:
        """The character of each id.

        Raises:
            UserError: as `decode`.
        """
        return list(self.decode(ids))

    def stream(self) -> CharacterStream:
        """A new stream for ids that come one at a time."""
        return CharacterStream(self)

    def to_dict(self) -> dict[str, object]:
        """The type, the format version and the characters."""
        return {"type": "CharacterTokenizer", "format_version": FORMAT_VERSION, "characters": self.characters}


@dataclass(frozen=True)
class CharacterStream:
    """The stream of a `CharacterTokenizer`: every id is a whole character, so nothing is ever held back."""

    tokenizer: CharacterTokenizer

    def push(self, id: int) -> str:
        """The character of the id."""
        return self.tokenizer.decode([id])

    def finish(self) -> str:
        """Nothing."""
        return ""


@dataclass(frozen=True)
class ByteTokenizer:
    """One id a byte of UTF-8: 256 ids, and no text that it cannot write.

    `decode(encode(text)) == text` for every text without surrogates; a surrogate is no character, and is encoded as
    U+FFFD.
    """

    @property
    def size(self) -> int:
        """The number of ids: 256."""
        return 256

    @property
    def begin(self) -> None:
        """There is none: every id is a byte."""

    @property
    def end(self) -> None:
        """There is none."""

    @property
    def specials(self) -> Mapping[str, int]:
        """None."""
        return NO_SPECIALS

    def encode(self, text: str) -> list[int]:
        """The bytes of the text in UTF-8."""
        return list(self._bytes(text))

    def encode_array(self, text: str) -> NDArray[np.int64]:
        """The same ids as an array, for whole files."""
        return np.frombuffer(self._bytes(text), dtype=np.uint8).astype(np.int64)

    def encode_many(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The ids of each text."""
        return [self.encode_array(text) for text in texts]

    def decode(self, ids: Ids) -> str:
        """The text of the bytes; U+FFFD for bytes that are no UTF-8.

        Raises:
            UserError: an id is outside the vocabulary; the message names both numbers.
        """
        return checked_ids(ids, self.size).astype(np.uint8).tobytes().decode("utf-8", errors="replace")

    def pieces(self, ids: Ids) -> list[str]:
        """Each byte by itself: an ASCII character, or `<0xE4>` for a byte that is only part of a character.

        Raises:
            UserError: as `decode`.
        """
        return [chr(byte) if byte < 0x80 else f"<0x{byte:02X}>" for byte in checked_ids(ids, self.size).tolist()]

    def stream(self) -> ByteStream:
        """A new stream for ids that come one at a time."""
        return ByteStream()

    def to_dict(self) -> dict[str, object]:
        """The type and the format version."""
        return {"type": "ByteTokenizer", "format_version": FORMAT_VERSION}

    def _bytes(self, text: str) -> bytes:
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError:
            return without_surrogates(text).encode("utf-8")


class ByteStream:
    """The stream of a `ByteTokenizer`: the bytes of a character are held back until its last one has come."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, id: int) -> str:
        """The characters that this byte completes; "" if it completes none."""
        return self._decoder.decode(checked_ids([id], 256).astype(np.uint8).tobytes())

    def finish(self) -> str:
        """U+FFFD if the last character is incomplete, otherwise nothing; the stream then begins anew."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest
