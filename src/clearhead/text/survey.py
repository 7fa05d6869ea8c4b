"""Documents -> what one reading of them shows: their sizes, their characters, and hashes that say what they are."""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clearhead.text.code_points import code_points

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clearhead.text.documents import Documents

__all__ = ["Survey", "survey"]


@dataclass(frozen=True)
class Survey:
    """What documents are, 16 bytes for each and the alphabet.

    Attributes:
        alphabet: every character that occurs, once, in the order of the code points.
        lengths: (N) the characters of each document.
        digests: (N) the first 8 bytes of the SHA-256 of each document's UTF-8, as one number, first byte highest.
        sha256: in hexadecimal, of the UTF-8 of all documents with a NUL between each two.
    """

    alphabet: str
    lengths: NDArray[np.int64]
    digests: NDArray[np.uint64]
    sha256: str

    @property
    def documents(self) -> int:
        """How many there are."""
        return len(self.lengths)

    @property
    def characters(self) -> int:
        """Of all documents together."""
        return int(self.lengths.sum())


def survey(documents: Documents) -> Survey:
    """Read every document once.

    Args:
        documents: the documents; there may be none.
    """
    used = np.zeros(0x110000, dtype=np.bool_)
    ascii_used = b""
    lengths, digests = array("q"), array("Q")
    every = hashlib.sha256()
    for number, document in enumerate(documents()):
        length, own = 0, hashlib.sha256()
        if number:
            every.update(b"\0")
        for part in document.parts:
            # A text that was made in Python may hold half a surrogate pair; it has bytes of its own all the same.
            written = part.encode("utf-8", "surrogatepass")
            own.update(written)
            every.update(written)
            if part.isascii():
                # Most parts hold no character that others did not, which is quick to see where each is one byte.
                if unseen := written.translate(None, ascii_used):
                    ascii_used += bytes(set(unseen))
            else:
                used[code_points(part)] = True
            length += len(part)
        lengths.append(length)
        digests.append(int.from_bytes(own.digest()[:8], "big"))
    used[list(ascii_used)] = True
    alphabet = "".join(map(chr, np.flatnonzero(used).tolist()))
    return Survey(alphabet, np.array(lengths, dtype=np.int64), np.array(digests, dtype=np.uint64), every.hexdigest())
