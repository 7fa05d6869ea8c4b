"""What stands in the header of a file is read as the package's own reader reads it, and typed when asked for."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from clearhead.formats.gguf.header import GgufHeader, read_header
from clearhead.formats.gguf.window import Window
from clearhead.messages import UserError
from tests.formats.gguf.written import number, raw, tensor, text


def field(key: str, kind: int, value: bytes) -> bytes:
    """A key with a value of the type with this number."""
    return text(key) + struct.pack("<I", kind) + value


def array(kind: int, count: int, values: bytes) -> bytes:
    """The value of an array."""
    return struct.pack("<IQ", kind, count) + values


VALUES: dict[str, tuple[int, bytes, Any]] = {
    "u8": (0, struct.pack("<B", 200), 200),
    "i8": (1, struct.pack("<b", -100), -100),
    "u16": (2, struct.pack("<H", 60_000), 60_000),
    "i16": (3, struct.pack("<h", -30_000), -30_000),
    "u32": (4, struct.pack("<I", 4_000_000_000), 4_000_000_000),
    "i32": (5, struct.pack("<i", -2_000_000_000), -2_000_000_000),
    "f32": (6, struct.pack("<f", 0.375), 0.375),
    "bool": (7, b"\1", True),
    "text": (8, text("小猫 🐈"), "小猫 🐈"),
    "u64": (10, struct.pack("<Q", 1 << 63), 1 << 63),
    "i64": (11, struct.pack("<q", -(1 << 62)), -(1 << 62)),
    "f64": (12, struct.pack("<d", 1 / 3), 1 / 3),
    "no text": (8, text(""), ""),
    "numbers": (9, array(5, 3, struct.pack("<3i", 7, -8, 9)), [7, -8, 9]),
    "flags": (9, array(7, 2, b"\0\1"), [False, True]),
    "texts": (9, array(8, 2, text("ab") + text("")), ["ab", ""]),
    "nothing": (9, array(8, 0, b""), []),
    "nested": (9, array(9, 2, array(0, 2, b"\1\2") + array(8, 1, text("x"))), [[1, 2], ["x"]]),
}


def header_of(path: Path, content: bytes) -> GgufHeader:
    path.write_bytes(content)
    return read_header(path)


def test_every_type(tmp_path: Path) -> None:
    fields = [field(key, kind, value) for key, (kind, value, _) in VALUES.items()]
    header = header_of(tmp_path / "model.gguf", raw(fields, [tensor("a", (3, 2))], 24))
    assert dict(header.fields) == {key: value for key, (_, _, value) in VALUES.items()}
    assert all(type(header.fields[key]) is type(value) for key, (_, _, value) in VALUES.items())
    info = header.tensors["a"]
    assert (info.shape, info.kind.name, info.size, info.row_size) == ((2, 3), "F32", 24, 12)
    assert info.begin == len(raw(fields, [tensor("a", (3, 2))]))


def test_the_packages_reader_agrees(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    flat = {key: each for key, each in VALUES.items() if key not in ("nested", "nothing")}
    fields = [field(key, kind, value) for key, (kind, value, _) in flat.items()]
    tensors = [tensor("a", (3, 2)), tensor("b", (64, 5), 8, 64), tensor("c", (4,), 1, 448)]
    header = header_of(path, raw([*fields, number("general.alignment", 64)], tensors, 512))
    theirs = gguf.GGUFReader(path)
    own = {key: each.contents() for key, each in theirs.fields.items() if not key.startswith("GGUF.")}
    assert dict(header.fields) == own
    found = {name: (info.shape, info.kind.name, info.begin, info.size) for name, info in header.tensors.items()}
    assert found == {
        each.name: (tuple(map(int, each.shape[::-1])), each.tensor_type.name, each.data_offset, each.n_bytes)
        for each in theirs.tensors
    }


def test_version_2(tmp_path: Path) -> None:
    content = bytearray(raw([number("a", 5)]))
    content[4] = 2
    assert header_of(tmp_path / "model.gguf", bytes(content)).fields == {"a": 5}


def test_a_header_of_many_windows(tmp_path: Path) -> None:
    """Texts across the places up to which the file has been read, one of them longer than what is read at a time."""
    words = ["x" * (index % 97) for index in range(60_000)] + ["y" * (1 << 22)] + [str(index) for index in range(9)]
    fields = [field("words", 9, array(8, len(words), b"".join(map(text, words)))), number("after", 5)]
    path = tmp_path / "model.gguf"
    header = header_of(path, raw(fields))
    assert header.fields["words"] == words
    assert header.fields["after"] == 5


def test_no_more_is_read_than_needed(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(raw([number("a", 5)], data=1 << 23))
    with path.open("rb", buffering=0) as file:
        window = Window(path, file)
        assert window.take(4, "magic") == b"GGUF"
        assert file.tell() == 1 << 20


def test_typed(tmp_path: Path) -> None:
    fields = [field(key, kind, value) for key, (kind, value, _) in VALUES.items()]
    header = header_of(tmp_path / "model.gguf", raw(fields))
    assert header.take("u8", int) == 200
    assert header.take("u8", float) == 200
    assert header.take("bool", bool) is True
    assert header.take("text", str) == "小猫 🐈"
    assert header.take("none", int, 4) == 4
    assert header.take("none", str, None) is None
    assert header.listed("texts", str) == ["ab", ""]
    assert header.listed("nothing", int) == []
    assert header.listed("none", int, None) is None
    for key, kind in (("text", int), ("u8", bool), ("bool", int), ("f32", int), ("numbers", int), ("none", int)):
        assert key in line(lambda key=key, kind=kind: header.take(key, kind))  # type: ignore[misc]
    for key, kind in (("numbers", str), ("text", str), ("nested", int), ("flags", int), ("none", int)):
        assert key in line(lambda key=key, kind=kind: header.listed(key, kind))  # type: ignore[misc]


def line(asked: Any) -> str:
    with pytest.raises(UserError) as error:
        asked()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_numbers_of_numpy_do_not_leak(tmp_path: Path) -> None:
    values = array(6, 2, np.array([0.5, 2.0], "<f4").tobytes())
    found = header_of(tmp_path / "model.gguf", raw([field("a", 9, values)])).fields["a"]
    assert [type(each) for each in found] == [float, float]
