"""Text as an array of numbers, one a character."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["code_points"]


def code_points(text: str) -> NDArray[np.uint32]:
    """The Unicode code point of every character; surrogates too, so that no text is an error."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
