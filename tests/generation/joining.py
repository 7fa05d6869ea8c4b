"""A tokenizer whose pieces reach over the places where texts are cut, as those of BPE do."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clearhead.text import ByteTokenizer, Ids


@dataclass(frozen=True)
class JoiningTokenizer(ByteTokenizer):
    """An id a byte, but a line end and the ASCII character behind it are one."""

    @property
    def size(self) -> int:
        return 256 + 128

    def encode(self, text: str) -> list[int]:
        pieces = re.findall(rb"\n[\x00-\x7f]|[\x00-\xff]", text.encode(), re.DOTALL)
        return [piece[-1] + 256 * (len(piece) - 1) for piece in pieces]

    def encode_array(self, text: str) -> NDArray[np.int64]:
        return np.array(self.encode(text), dtype=np.int64)

    def decode(self, ids: Ids) -> str:
        return b"".join(bytes([id]) if id < 256 else bytes([10, id - 256]) for id in ids).decode(errors="replace")
