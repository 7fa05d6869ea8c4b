"""What is asked of the `gguf` package, an extra: the table of block formats, and their dequantisation."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clearhead.messages import UserError, say


class BlockFormat(NamedTuple):
    """How numbers lie in a block of bytes."""

    name: str
    numbers: int
    """How many of them a block holds, neighbours of one row."""
    size: int
    """The bytes of a block."""


def block_format(number: int) -> BlockFormat | None:
    """The format that files call by this number; None if nobody knows it.

    Raises:
        UserError: if the package is not installed.
    """
    return _formats().get(number)


@cache
def _formats() -> dict[int, BlockFormat]:
    sizes = _package().GGML_QUANT_SIZES
    return {int(each): BlockFormat(each.name, *sizes[each]) for each in sizes}


@cache
def readable(kind: BlockFormat) -> bool:
    """Whether the package can turn blocks of this format into numbers."""
    try:
        dequantised(np.zeros(kind.size, np.uint8), kind)
    except NotImplementedError:
        return False
    return True


def dequantised(raw: npt.NDArray[np.uint8], kind: BlockFormat) -> npt.NDArray[np.float32]:
    """The numbers of some blocks, one after the other."""
    package = _package()
    # What is not finite is found where it is used, and told there.
    with np.errstate(all="ignore"):
        found = package.dequantize(raw[None], package.GGMLQuantizationType[kind.name])
    numbers: npt.NDArray[np.float32] = found[0]
    return numbers


def _package() -> ModuleType:
    try:
        import gguf  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UserError(say("gguf.package")) from error
    return gguf
