"""The header of a GGUF file: what it says about the model, its vocabulary, and where its tensors lie.

Source: the description of the format in the ggml project, docs/gguf.md; versions 2 and 3, little-endian.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np

from clearhead.formats.fields import MISSING
from clearhead.formats.gguf.layout import MOST_AXES, Claimed, TensorInfo, lay_out
from clearhead.formats.gguf.window import Window
from clearhead.messages import UserError, say

__all__ = ["GgufHeader", "read_header"]

Kind = TypeVar("Kind", int, float, bool, str)

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEEPEST = 4
"""How deep arrays may lie in arrays; nobody writes more than two."""
LONGEST_NAME = 256
"""Of keys and tensors; of the latter, others take 64."""
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""The types of numbers, as `struct` and numpy write them."""
_TEXT, _ARRAY = 8, 9
_LEAST_FIELD = 8 + 4 + 1
"""The bytes of a key's length, a type and a value."""
_LEAST_TENSOR = 8 + 4 + 8 + 4 + 8
"""The bytes of a name's length, the number of axes, one of them, a format and an offset."""
_LEAST = {_TEXT: 8, _ARRAY: 4 + 8}
"""The bytes of an empty text and of an empty array."""


@dataclass(frozen=True)
class GgufHeader:
    """What a GGUF file says about itself.

    Args:
        path: the file.
        fields: every value by its key: bool, int, float, str, or a list of such.
        tensors: where each tensor lies, held against the file.
    """

    path: Path
    fields: Mapping[str, Any]
    tensors: Mapping[str, TensorInfo]

    @overload
    def take(self, key: str, kind: type[Kind]) -> Kind: ...
    @overload
    def take(self, key: str, kind: type[Kind], default: None) -> Kind | None: ...
    @overload
    def take(self, key: str, kind: type[Kind], default: Kind) -> Kind: ...
    def take(self, key: str, kind: type[Any], default: Any = MISSING) -> Any:
        """The value of a key.

        Args:
            key: the key.
            kind: what it must be; a whole number may stand for a float.
            default: what is taken where it is missing.

        Raises:
            UserError: if it is missing and has no default, or of another kind, naming the key.
        """
        value = self.fields.get(key, default)
        if value is MISSING:
            raise UserError(say("gguf.key_missing", path=self.path, name=key))
        if value is not default and not _is(value, kind):
            raise self._of_another_kind(key, value, kind.__name__)
        return value

    @overload
    def listed(self, key: str, kind: type[Kind]) -> list[Kind]: ...
    @overload
    def listed(self, key: str, kind: type[Kind], default: None) -> list[Kind] | None: ...
    def listed(self, key: str, kind: type[Any], default: Any = MISSING) -> Any:
        """The value of a key that is a list.

        Args:
            key: the key.
            kind: what each of its values must be.
            default: what is taken where the key is missing.

        Raises:
            UserError: as `take`.
        """
        value = self.fields.get(key, default)
        if value is MISSING:
            raise UserError(say("gguf.key_missing", path=self.path, name=key))
        if value is not default and not (isinstance(value, list) and all(_is(each, kind) for each in value)):
            raise self._of_another_kind(key, value, f"list[{kind.__name__}]")
        return value

    def _of_another_kind(self, key: str, value: object, wanted: str) -> UserError:
        # Of a list, its beginning alone: it may be a whole vocabulary.
        shown = repr(value[:3] if isinstance(value, list | str) else value)[:60]
        return UserError(say("gguf.key_kind", path=self.path, name=key, value=shown, wanted=wanted))


def _is(value: object, kind: type[Any]) -> bool:
    return isinstance(value, bool) is (kind is bool) and isinstance(value, (int, float) if kind is float else kind)


def read_header(path: Path) -> GgufHeader:
    """The header of a file; no tensor is read.

    Every count and every length is held against what is left of the file before anything is allocated for it.

    Raises:
        UserError: the file cannot be read, is no GGUF file, is cut short, contradicts itself, or is written as this reader cannot read it.
    """
    try:
        with path.open("rb", buffering=0) as file:
            return _read(path, Window(path, file))
    except OSError as error:
        raise UserError(say("gguf.unreadable", path=path, reason=error.strerror or error)) from error


def _read(path: Path, window: Window) -> GgufHeader:
    _must_be_known(path, window)
    tensors, count = window.count("tensor_count"), window.count("metadata_kv_count")
    window.claim(count, _LEAST_FIELD, "metadata_kv_count")
    fields: dict[str, Any] = {}
    for index in range(count):
        what = f"metadata[{index}]"
        key = _name(window, what)
        if key in fields:
            raise UserError(say("gguf.twice", path=path, name=key))
        fields[key] = _value(window, window.count(what, "I"), key, 0)
    window.claim(tensors, _LEAST_TENSOR, "tensor_count")
    claimed = [_claimed(window, f"tensors[{index}]") for index in range(tensors)]
    alignment = fields.get("general.alignment", 32)
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise UserError(say("gguf.alignment", path=path, value=repr(alignment)[:60]))
    data = -(-window.at // alignment) * alignment
    return GgufHeader(path, fields, lay_out(path, claimed, data=data, alignment=alignment, size=window.size))


def _must_be_known(path: Path, window: Window) -> None:
    if window.size < len(MAGIC) or window.take(len(MAGIC), "magic") != MAGIC:
        raise UserError(say("gguf.foreign", path=path))
    version = window.count("version", "I")
    # Versions are small: only with its bytes in the other order does one end in zeros.
    if version and not version & 0xFFFF:
        raise UserError(say("gguf.big_endian", path=path))
    if version not in VERSIONS:
        raise UserError(say("gguf.version", path=path, found=version, known=", ".join(map(str, VERSIONS))))


def _value(window: Window, kind: int, key: str, depth: int) -> Any:
    """The next value, of the type with this number."""
    if kind in _NUMBERS:
        return window.number(_NUMBERS[kind], key)
    if kind == _TEXT:
        return window.text(key)
    if kind != _ARRAY:
        raise UserError(say("gguf.value_type", path=window.path, name=key, kind=kind))
    if depth == DEEPEST:
        raise UserError(say("gguf.nested", path=window.path, name=key, most=DEEPEST))
    inner, count = window.count(key, "I"), window.count(key)
    if inner in _NUMBERS:
        dtype = np.dtype("<" + _NUMBERS[inner])
        window.claim(count, dtype.itemsize, key)
        return np.frombuffer(window.take(count * dtype.itemsize, key), dtype).tolist()
    window.claim(count, _LEAST.get(inner, 1), key)
    if inner == _TEXT:
        return window.texts(count, key)
    return [_value(window, inner, key, depth + 1) for _ in range(count)]


def _name(window: Window, what: str) -> str:
    """A name, which can stand in a message."""
    name = window.text(what)
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise UserError(say("gguf.not_name", path=window.path, what=what))
    return name


def _claimed(window: Window, what: str) -> Claimed:
    name = _name(window, what)
    axes = window.count(what, "I")
    if axes > MOST_AXES:
        raise UserError(say("gguf.axes", path=window.path, name=name, axes=axes, most=MOST_AXES))
    sizes = tuple(window.count(what) for _ in range(axes))
    return Claimed(name, sizes, window.count(what, "I"), window.count(what))
