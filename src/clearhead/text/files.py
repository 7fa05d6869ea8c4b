"""A text file -> its text, whatever its encoding and line ends, and what was done to get there.

`encoding="auto"` decides in this order, and the first that holds wins:

1. A byte order mark: UTF-8, UTF-16, UTF-32 (little or big end first) or GB18030.
2. It holds NUL bytes: UTF-16 without a mark if one of its two byte orders reads as plain writing (at least 99% of the
   characters are letters, Han, kana, Hangul, usual signs or white space); if both do, the one with more ASCII;
   otherwise the file is binary.
3. Every byte fits UTF-8.
4. Every byte fits GB18030, at least 90% of the characters are ASCII, Han, kana or East Asian punctuation, and at least
   8% of the Han are among the commonest of Chinese writing. Korean, Japanese, Big5 or Latin-1 bytes often fit GB18030
   too, but what comes out are rare Han: they fail the last condition.

Shares are taken over the first 65,536 bytes (UTF-16) or characters (GB18030).

Anything else is an error that names the first byte that does not fit UTF-8. Latin-1 fits every file, so it is never
guessed: name it.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clearhead.messages import UserError, say
from clearhead.text.code_points import code_points

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

__all__ = ["LEAST_BYTES", "DecodedText", "RawText", "read_raw", "read_text", "with_line_feeds"]

LEAST_BYTES = 1000
"""The smallest file that can be trained on, in bytes on disk."""

# UTF-32 before UTF-16: the mark of UTF-32-LE begins with that of UTF-16-LE.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"\x84\x31\x95\x33", "gb18030"),
)
_MARK = "\ufeff"

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
    "的一是不了在人有我他这這中大来來上个個国國到说說们們为為子和你地出道也时時年得就那要下以生会會自着著去之过過家學学"
    "对對可里裡后後小么麼心多天而能好都然没沒日于於起还還发發成事只作当當想看文无無开開手用主行方又如前所本见見"
    "头頭面公同三已老从從动動长長花风風月春山云雲水何君夜知白江"
)

# Control codes other than white space, the end mark of DOS and ESC (coloured logs are text).
_CONTROL = re.compile("[\x00-\x08\x0e-\x19\x1c-\x1f\x7f]")

# Notations for identifiers and host names, which Python lists among its text encodings.
_NOT_FOR_FILES = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape"})

_SAMPLE = 1 << 16


@dataclass(frozen=True)
class DecodedText:
    """The text of one file.

    Attributes:
        text: the characters, every line end LF, no byte order mark.
        encoding: the encoding that was used, by Python's name ("utf-8", "utf-16-le", "gb18030", ...).
        path: the file.
        notes: one line, in the user's language, for each thing that a reader of the file should know: an encoding that
            was recognised (other than UTF-8), a mark that was removed, line ends that were changed.
    """

    text: str
    encoding: str
    path: Path
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RawText:
    """The characters of one file as they stand in it.

    Attributes:
        text: the characters, line ends unchanged, no byte order mark; may be blank.
        encoding: the encoding that was used, by Python's name.
        size: the bytes of the file.
        notes: as those of `DecodedText`, without the line ends.
    """

    text: str
    encoding: str
    size: int
    notes: tuple[str, ...]


def read_text(path: str | os.PathLike[str], encoding: str = "auto") -> DecodedText:
    """The text of the file `path`.

    Args:
        path: the file; at least `LEAST_BYTES` long.
        encoding: "auto" to recognise it (the rule stands at the top of this module), or any text encoding that Python
            knows. A name is obeyed, never second-guessed.

    Raises:
        UserError: the file is missing, a folder, unreadable, empty, too small or binary, a byte does not fit the
            encoding (the message names the byte and its offset from the start of the file), or there is no such
            encoding.
    """
    file = Path(path)
    raw = read_raw(file, encoding)
    if not raw.text.strip():
        raise UserError(say("text.empty", path=file, least=LEAST_BYTES))
    if raw.size < LEAST_BYTES:
        raise UserError(say("text.too_small", path=file, size=raw.size, least=LEAST_BYTES))
    text, kinds = with_line_feeds(raw.text, lone=True)
    ends = tuple(say("text.line_ends", path=file, kind=kind) for kind in kinds)
    return DecodedText(text=text, encoding=raw.encoding, path=file, notes=raw.notes + ends)


def read_raw(file: Path, encoding: str) -> RawText:
    """The characters of a file of any size, for those who set a least size and judge line ends themselves.

    Args:
        file: the file; it may be empty.
        encoding: as for `read_text`.

    Raises:
        UserError: as `read_text`, except that neither an empty file nor a small one is an error.
    """
    return raw_text(_read_bytes(file), file, encoding)


def raw_text(data: bytes, file: Path, encoding: str) -> RawText:
    """The characters of bytes that did not come from a file.

    Args:
        data: the bytes.
        file: what messages call them.
        encoding: as for `read_text`.

    Raises:
        UserError: as `read_raw`.
    """
    named = None if encoding == "auto" else _codec_name(encoding)
    used = named or _recognised(file, data)
    text = _decoded(file, data, used)
    notes = []
    if named is None and used != "utf-8":
        notes.append(say("text.encoding_recognised", path=file, encoding=used.upper()))
    if text.startswith(_MARK):
        text = text[1:]
        notes.append(say("text.bom_removed", path=file))
    # White space may be made of control codes alone; that is no text rather than a binary file.
    if text.strip():
        _require_text(file, text)
    return RawText(text=text, encoding=used, size=len(data), notes=tuple(notes))


def with_line_feeds(text: str, lone: bool) -> tuple[str, list[str]]:
    """The text with every line end LF, and the kinds of line end that were replaced.

    Args:
        text: the characters of a file.
        lone: whether a CR that no LF follows is a line end; otherwise it stays.
    """
    kinds = []
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
        kinds.append("CRLF")
    if lone and "\r" in text:
        text = text.replace("\r", "\n")
        kinds.append("CR")
    return text, kinds


def _read_bytes(file: Path) -> bytes:
    try:
        # Asked first because Windows reports a folder as lack of permission.
        if file.is_dir():
            raise UserError(say("text.directory", path=file))
        return file.read_bytes()
    except FileNotFoundError:
        raise UserError(say("text.missing", path=file)) from None
    except PermissionError:
        raise UserError(say("text.permission", path=file)) from None
    except OSError as error:
        raise UserError(say("text.unreadable", path=file, reason=error.strerror or error)) from None


def _codec_name(encoding: str) -> str:
    """Python's own name of the encoding."""
    try:
        # Encoding a letter refuses what is no text encoding, such as "hex".
        "a".encode(encoding)
        name = codecs.lookup(encoding).name
    except (LookupError, ValueError):
        name = None
    if name is None or name in _NOT_FOR_FILES:
        raise UserError(say("text.unknown_encoding", encoding=repr(encoding)))
    # "utf-8-sig" counts the offset of a wrong byte from behind its mark; plain UTF-8 counts from the start of the file.
    return "utf-8" if name == "utf-8-sig" else name


def _recognised(file: Path, data: bytes) -> str:
    """The name of the encoding, by the rule at the top of this module; "utf-8" if none other fits."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    if b"\0" in data:
        wide = _utf16_without_mark(data)
        if wide is not None:
            return wide
    if _fits(data, "utf-8"):
        return "utf-8"
    if _fits(data, "gb18030") and _is_chinese(data.decode("gb18030")[:_SAMPLE]):
        return "gb18030"
    # Before a byte is blamed: Latin-1 gives one character a byte, which is what is counted here.
    _require_text(file, data.decode("latin-1"))
    return "utf-8"


def _fits(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _utf16_without_mark(data: bytes) -> str | None:
    if len(data) % 2:
        return None
    readings = {name: code_points(data[:_SAMPLE].decode(name, "replace")) for name in ("utf-16-le", "utf-16-be")}
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


def _decoded(file: Path, data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise UserError(
            say("text.wrong_byte", path=file, encoding=encoding, byte=data[error.start], offset=error.start)
        ) from None


def _require_text(file: Path, text: str) -> None:
    """Raise if `text` is no writing: it holds a NUL, or more than 1% of it are control codes."""
    count = sum(1 for _ in _CONTROL.finditer(text))
    if "\0" in text or count > 0.01 * len(text):
        raise UserError(say("text.binary", path=file, count=count, total=len(text)))
