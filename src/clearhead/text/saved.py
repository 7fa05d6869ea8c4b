"""A tokenizer as it was saved -> the tokenizer."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from clearhead.messages import UserError, say
from clearhead.text.files import read_raw
from clearhead.text.library import AS_MANY_AS_TOKENS, LibraryTokenizer
from clearhead.text.marked import MarkedTokenizer
from clearhead.text.numbers import NumberTokenizer
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokenizers import ByteTokenizer, CharacterTokenizer

__all__ = ["TOKENIZER_FILE", "fingerprint", "read_tokenizer", "tokenizer_from_dict"]

TOKENIZER_FILE = "tokenizer.json"
"""The file of a folder that is its tokenizer: as clearhead saves one in a run, or as others do."""

Value = TypeVar("Value")

KNOWN_VERSION = 4
"""The latest version that can be read."""


def tokenizer_from_dict(saved: object) -> Tokenizer:
    """The tokenizer that `to_dict` described, after any journey through JSON.

    Raises:
        UserError: `saved` is not that: the message names the field that is wrong.
    """
    return _restored(saved, "tokenizer", "")


def read_tokenizer(path: str | os.PathLike[str]) -> Tokenizer:
    """The tokenizer in a file: one that clearhead saved, or a `tokenizer.json` of the `tokenizers` library.

    Args:
        path: the file, or a folder that holds a `tokenizer.json`.

    Raises:
        UserError: there is no such file, it cannot be read, is damaged, or is no tokenizer.
    """
    file = Path(path)
    if file.is_dir():
        file /= TOKENIZER_FILE
    text = read_raw(file, "utf-8").text
    try:
        saved = json.loads(text)
    # Lists in lists without end are no defect of the reader.
    except (ValueError, RecursionError) as error:
        raise UserError(say("text.tokenizer_no_json", path=file, reason=error)) from None
    if not isinstance(saved, Mapping) or not {"type", "model"} & saved.keys():
        raise UserError(say("text.no_tokenizer", path=file))
    # A file of the library has a model, and no type of its own.
    return tokenizer_from_dict(saved) if "type" in saved else LibraryTokenizer(text)


def fingerprint(tokenizer: Tokenizer) -> str:
    """What tells tokenizers apart: the SHA-256, in hexadecimal, of what they save, whatever the order of its fields."""
    saved = json.dumps(tokenizer.to_dict(), ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(saved.encode("ascii")).hexdigest()


def _restored(saved: object, name: str, within: str) -> Tokenizer:
    if not isinstance(saved, Mapping):
        raise _malformed(name, saved)
    _must_be_known(saved.get("format_version"), within)
    match saved.get("type"):
        case "CharacterTokenizer":
            return CharacterTokenizer(_field(saved, "characters", str, within))
        case "ByteTokenizer":
            return ByteTokenizer()
        case "LibraryTokenizer":
            library = _field(saved, "library", dict, within)
            begin, end, size, mask = (_number(saved, name, within) for name in ("begin", "end", "size", "mask"))
            size = AS_MANY_AS_TOKENS if size is None else size
            return LibraryTokenizer(json.dumps(library), begin, end, size, mask)
        case "NumberTokenizer":
            begin, end = (_number(saved, name, within) for name in ("begin", "end"))
            size = _number(saved, "size", within)
            if size is None:
                raise _malformed(f"{within}size", size)
            return NumberTokenizer(size, begin, end)
        case "MarkedTokenizer" if not within:
            inner = _restored(saved.get("inner"), "inner", "inner.")
            return MarkedTokenizer(inner, _field({"masked": False, **saved}, "masked", bool, within))
        case other:
            raise _malformed(f"{within}type", other)


def _must_be_known(version: object, within: str) -> None:
    if not isinstance(version, int) or version < 1:
        raise _malformed(f"{within}format_version", version)
    if version > KNOWN_VERSION:
        raise UserError(say("text.tokenizer_version", found=version, known=KNOWN_VERSION))


def _field(saved: Mapping[str, object], name: str, kind: type[Value], within: str) -> Value:
    value = saved.get(name)
    if not isinstance(value, kind):
        raise _malformed(f"{within}{name}", value)
    return value


def _number(saved: Mapping[str, object], name: str, within: str) -> int | None:
    number = saved.get(name)
    # JSON has no other numbers than these; True is one of Python's.
    if number is None or (isinstance(number, int) and not isinstance(number, bool)):
        return number
    raise _malformed(f"{within}{name}", number)


def _malformed(field: str, found: object) -> UserError:
    shown = ascii(found)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return UserError(say("text.tokenizer_malformed", field=field, found=shown))
