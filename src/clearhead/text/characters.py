"""Bytes in blocks -> the name of their encoding, and their characters.

`recognised` decides in this order, and the first that holds wins:

1. A byte order mark: UTF-8, UTF-16, UTF-32 (little or big end first) or GB18030.
2. It holds NUL bytes: UTF-16 without a mark if one of its two byte orders reads as plain writing (at least 99% of the
   characters are letters, Han, kana, Hangul, usual signs or white space); if both do, the one with more ASCII;
   otherwise the file is binary.
3. Every byte fits UTF-8.
4. Every byte fits GB18030, at least 90% of the characters are ASCII, Han, kana or East Asian punctuation, and at least
   8% of the Han are among the commonest of Chinese writing. Korean, Japanese, Big5 or Latin-1 bytes often fit GB18030
   too, but what comes out are rare Han: they fail the last condition.

Shares are taken over the first 65,536 bytes (UTF-16) or characters (GB18030).

Anything else is called UTF-8, of which decoding then names the first byte that does not fit. Latin-1 fits every file, so
it is never guessed: name it.
"""

from __future__ import annotations

import codecs
import sys
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from clearhead.messages import UserError, say
from clearhead.text.code_points import code_points
from clearhead.text.controls import ControlCodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from clearhead.text.streams import Blocks

__all__ = ["MARK", "WrongByteError", "codec_name", "decoded", "recognised"]

MARK = "\ufeff"
"""What a byte order mark is once it is decoded."""

# UTF-32 before UTF-16: the mark of UTF-32-LE begins with that of UTF-16-LE.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"\x84\x31\x95\x33", "gb18030"),
)

_HAN = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF))
_EAST_ASIAN_SIGNS = ((0x2010, 0x2027), (0x2030, 0x205E), (0x3000, 0x30FF), (0xFF01, 0xFF60))
_ASCII = ((0x09, 0x0D), (0x20, 0x7E))
_CHINESE = (*_ASCII, *_EAST_ASIAN_SIGNS, *_HAN)
# Latin, Greek, Cyrillic, Hangul, currency and other signs, and emoji beside the usual Han.
_WRITING = (
    *_ASCII,
    *_EAST_ASIAN_SIGNS,
    *((0xA0, 0x24F), (0x370, 0x52F), (0x20A0, 0x22FF), (0x2500, 0x27BF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3)),
    (0x1F300, 0x1FAFF),
)

_COMMON_HAN = (
    "的一是不了在人有我他這这中大来來上个個国國到说說们們为為子和你地出道也时時年得就那要下以生会會自着著去之过過家學学"
    "对對可里裡后後小么麼心多天而能好都然没沒日于於起还還发發成事只作当當想看文无無开開手用主行方又如前所本见見"
    "头頭面公同三已老从從动動长長花风風春月山云雲水何君夜知白江"
)

# Notations for identifiers and host names, which Python lists among its text encodings.
_NOT_FOR_FILES = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape"})

_SAMPLE = 1 << 16


class WrongByteError(ValueError):
    """A byte does not fit the encoding.

    Attributes:
        byte: its value.
        offset: how many bytes stand before it.
    """

    def __init__(self, byte: int, offset: int) -> None:
        super().__init__(f"byte 0x{byte:02X} at offset {offset:,}")
        self.byte = byte
        self.offset = offset


def codec_name(encoding: str) -> str:
    """Python's own name of the encoding.

    Raises:
        UserError: if there is no such text encoding.
    """
    try:
        # Encoding a letter refuses what is no text encoding, such as "hex".
        "a".encode(encoding)
        codecs.getincrementaldecoder(encoding)
        name = codecs.lookup(encoding).name
    except (LookupError, ValueError):
        name = None
    if name is None or name in _NOT_FOR_FILES:
        raise UserError(say("text.unknown_encoding", encoding=repr(encoding)))
    # "utf-8-sig" counts the offset of a wrong byte from behind its mark; plain UTF-8 counts from the start of the file.
    return "utf-8" if name == "utf-8-sig" else name


def recognised(blocks: Blocks, path: Path) -> str:
    """The name of the encoding, by the rule at the top of this module; "utf-8" if none other fits.

    Args:
        blocks: the bytes; read up to four times, never held together.
        path: what messages call them.

    Raises:
        UserError: the bytes fit neither, and they are no text.
    """
    head = _first(blocks(), _SAMPLE)
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    size, nul, utf8 = 0, False, True
    decoder = codecs.getincrementaldecoder("utf-8")()
    for block, last in _with_end(blocks()):
        size += len(block)
        nul = nul or b"\0" in block
        utf8 = utf8 and _takes(decoder, block, last)
    if nul and size % 2 == 0:
        wide = _utf16_without_mark(head)
        if wide is not None:
            return wide
    if utf8:
        return "utf-8"
    if _is_gb18030(blocks()):
        return "gb18030"
    # Before a byte is blamed: Latin-1 gives one character a byte, which is what is counted here.
    _require_text(blocks(), path)
    return "utf-8"


def decoded(blocks: Iterable[bytes], encoding: str, errors: str = "strict") -> Iterator[str]:
    """The characters, in parts as the blocks are, however these cut through characters; a mark is one of them.

    Args:
        blocks: the bytes.
        encoding: Python's name of it, as of `codec_name`.
        errors: "strict" raises; "replace" and "ignore" are Python's.

    Raises:
        WrongByteError: with "strict", at the first byte that does not fit.
    """
    start, rest = _opening(blocks)
    decoder = codecs.getincrementaldecoder(_with_order(encoding, start))(errors)
    fed = 0
    for block, last in _with_end(chain([start], rest)):
        fed += len(block)
        try:
            part = decoder.decode(block, last)
        except UnicodeDecodeError as error:
            # The object is what was left of the blocks before and this one: it ends where this block ends.
            offset = fed - len(error.object) + error.start
            raise WrongByteError(error.object[error.start], offset) from None
        if part:
            yield part


def _require_text(blocks: Iterable[bytes], path: Path) -> None:
    controls = ControlCodes()
    for block in blocks:
        controls.take(block.decode("latin-1"))
    controls.require_text(path)


def _with_end(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each block, and at the end an empty one that says it is the last."""
    for block in blocks:
        yield block, False
    yield b"", True


def _first(blocks: Iterable[bytes], count: int) -> bytes:
    """The first `count` bytes, or all if there are fewer."""
    head = b""
    for block in blocks:
        head += block[: count - len(head)]
        if len(head) == count:
            break
    return head


def _opening(blocks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes, as many as a mark can have if there are so many, and the blocks behind them."""
    rest = iter(blocks)
    start = b""
    for block in rest:
        start += block
        if len(start) >= 4:
            break
    return start, rest


def _with_order(encoding: str, start: bytes) -> str:
    """UTF-16 and UTF-32 with the byte order of their mark, or of the machine where there is none, as `bytes.decode`."""
    if encoding not in {"utf-16", "utf-32"}:
        return encoding
    own = f"{encoding}-{'le' if sys.byteorder == 'little' else 'be'}"
    return next((name for mark, name in _MARKS if name.startswith(encoding) and start.startswith(mark)), own)


def _takes(decoder: codecs.IncrementalDecoder, block: bytes, last: bool) -> bool:
    try:
        decoder.decode(block, last)
    except UnicodeDecodeError:
        return False
    return True


def _is_gb18030(blocks: Iterable[bytes]) -> bool:
    sample = ""
    try:
        for part in decoded(blocks, "gb18030"):
            sample += part[: _SAMPLE - len(sample)]
    except WrongByteError:
        return False
    return _is_chinese(sample)


def _utf16_without_mark(head: bytes) -> str | None:
    readings = {name: code_points(head.decode(name, "replace")) for name in ("utf-16-le", "utf-16-be")}
    # ASCII in the wrong order reads as Han: "a" becomes U+6100. Han in the wrong order never reads as ASCII throughout.
    ascii_shares = {name: _share(read, _ASCII) for name, read in readings.items() if _share(read, _WRITING) >= 0.99}
    if len(set(ascii_shares.values())) < len(ascii_shares):
        return None
    return max(ascii_shares, key=lambda name: ascii_shares[name], default=None)


def _is_chinese(text: str) -> bool:
    points = code_points(text)
    han = points[_within(points, _HAN)]
    common = np.isin(han, code_points(_COMMON_HAN)).sum()
    return bool(_share(points, _CHINESE) >= 0.9 and common >= max(1, 0.08 * han.size))


def _within(points: NDArray[np.uint32], ranges: tuple[tuple[int, int], ...]) -> NDArray[np.bool_]:
    inside = np.zeros(points.shape, dtype=np.bool_)
    for first, last in ranges:
        inside |= (points >= first) & (points <= last)
    return inside


def _share(points: NDArray[np.uint32], ranges: tuple[tuple[int, int], ...]) -> float:
    return float(_within(points, ranges).mean())
