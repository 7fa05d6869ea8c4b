"""A tokenizer as it was saved -> the tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from clearhead.messages import UserError, say
from clearhead.text.marked import MarkedTokenizer
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokenizers import ByteTokenizer, CharacterTokenizer

__all__ = ["tokenizer_from_dict"]

Value = TypeVar("Value")

KNOWN_VERSION = 2
"""The latest version that can be read."""


def tokenizer_from_dict(saved: object) -> Tokenizer:
    """The tokenizer that `to_dict` described, after any journey through JSON.

    Raises:
        UserError: `saved` is not that: the message names the field that is wrong.
    """
    return _restored(saved, "tokenizer", "")


def _restored(saved: object, name: str, within: str) -> Tokenizer:
    if not isinstance(saved, Mapping):
        raise _malformed(name, saved)
    _must_be_known(saved.get("format_version"), within)
    match saved.get("type"):
        case "CharacterTokenizer":
            return CharacterTokenizer(_field(saved, "characters", str, within))
        case "ByteTokenizer":
            return ByteTokenizer()
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


def _malformed(field: str, found: object) -> UserError:
    shown = ascii(found)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return UserError(say("text.tokenizer_malformed", field=field, found=shown))
