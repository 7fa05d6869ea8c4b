"""GGUF files that are damaged, foreign or lie about themselves: one line each, and no memory for what is only claimed."""

from __future__ import annotations

import os
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from clearhead.formats.assemble import assemble
from clearhead.formats.gguf.file import open_gguf
from clearhead.formats.gguf.header import DEEPEST, read_header
from clearhead.formats.gguf.window import LARGEST
from clearhead.formats.weights import own_tensors
from clearhead.messages import UserError
from tests.formats.gguf.test_header import array, field
from tests.formats.gguf.written import model_in, number, raw, tensor, text, tiny, write_model
from tests.oracles.compare import assert_same

HUGE = 1 << 60
MOST = (1 << 64) - 1


def refusal(path: Path, reading: Callable[[Path], object] = read_header) -> str:
    """The one line with which a file is refused."""
    with pytest.raises(UserError) as error:
        reading(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)
    return str(error.value)


def pairs(count: int, first: int = 0) -> list[bytes]:
    return [number(f"key {index}", 1) for index in range(first, count)]


CLAIMS: list[tuple[bytes, str]] = [
    (raw(counts=(HUGE, 0)), "tensor_count"),
    (raw(counts=(0, HUGE)), "metadata_kv_count"),
    (raw(counts=(MOST, MOST)), "metadata_kv_count"),
    (raw(pairs(3), counts=(0, 5)), "metadata[3]"),
    (raw(pairs(3), counts=(0, 40)), "metadata_kv_count takes"),
    (raw(tensors=[tensor("a", (1,))], data=64, counts=(4, 0)), "tensor_count"),
    (raw([struct.pack("<Q", 100 << 30)], counts=(0, 1), data=9), "metadata[0]"),
    (raw([text("a") + struct.pack("<IQ", 8, 100 << 30)]), "a takes 107374182400 bytes"),
    (raw([text("a") + struct.pack("<IQ", 8, MOST)]), "a takes"),
    (raw([field("a", 9, array(8, 1 << 50, b""))]), "a takes"),
    (raw([field("a", 9, array(0, 1 << 50, b""))]), "a takes"),
    (raw([field("a", 9, array(12, MOST, b""))]), "a takes"),
    (raw([field("a", 9, array(9, 1 << 50, b""))]), "a takes"),
    (raw([field("a", 9, array(9, 2, array(0, 1 << 50, b"")))]), "a takes"),
    (raw([field("a", 9, array(99, 1 << 50, b""))]), "a takes"),
    (raw([field("a", 9, array(99, 1, b""))]), "type 99"),
    (raw([field("a", 13, b"")]), "type 13"),
    (raw([field("a", 9, array(9, 1, b"") * 5000)]), f"more than {DEEPEST} deep"),
    (raw([field("a", 8, struct.pack("<Q", 2) + b"\xff\xfe")]), "a is not UTF-8"),
    (raw([struct.pack("<Q", 2) + b"\xff\xfe" + struct.pack("<II", 4, 1)]), "metadata[0] is not UTF-8"),
    (raw([number("a\nb", 1)]), "name of metadata[0] is none"),
    (raw([number("a" * 257, 1)]), "name of metadata[0] is none"),
    (raw(tensors=[tensor("a\x1b[2J", (1,))], data=64), "name of tensors[0] is none"),
    (raw([number("a", 1), number("a", 1)]), "a is there twice"),
    (raw([number("general.alignment", 0)]), "general.alignment is 0"),
    (raw([number("general.alignment", 48)]), "general.alignment is 48"),
    (raw([field("general.alignment", 8, text("32"))]), "general.alignment is '32'"),
    (raw([field("general.alignment", 7, b"\1")]), "general.alignment is True"),
    (raw([field("general.alignment", 5, struct.pack("<i", -32))]), "general.alignment is -32"),
    (raw([field("general.alignment", 6, struct.pack("<f", 32))]), "general.alignment is 32.0"),
    (raw([field("general.alignment", 11, struct.pack("<q", 1 << 62))], [tensor("a", (1,))], 64), "a ends at byte"),
    (raw(tensors=[tensor("a", (1,)), tensor("a", (1,), 0, 32)], data=64), "a is there twice"),
    (raw(tensors=[tensor("a", ())], data=64), "a has the impossible shape ()"),
    (raw(tensors=[tensor("a", (3, 0, 2))], data=64), "(2, 0, 3)"),
    (raw(tensors=[tensor("a", (1,) * 5)], data=64), "a has 5 axes"),
    (raw(tensors=[text("a") + struct.pack("<I", 0xFFFFFFFF)], data=64), "a has 4294967295 axes"),
    (raw(tensors=[tensor("a", (1 << 32, 1 << 32))], data=64), "a ends at byte"),
    (raw(tensors=[tensor("a", (MOST,) * 4)], data=64), "a ends at byte"),
    (raw(tensors=[tensor("a", (17,))], data=64), "a ends at byte"),
    (raw(tensors=[tensor("a", (1,), 0, 64)], data=64), "a ends at byte"),
    (raw(tensors=[tensor("a", (1,), 0, MOST - 31)], data=64), "a ends at byte"),
    (raw(tensors=[tensor("a", (1,), 0, 8)], data=64), "begins at 8"),
    (raw([number("general.alignment", 64)], [tensor("a", (1,), 0, 32)], 128), "no multiple of 64"),
    (raw(tensors=[tensor("a", (9,)), tensor("b", (1,), 0, 32)], data=64), "b begins inside a"),
    (raw(tensors=[tensor("a", (1,), 0, 32), tensor("b", (1,), 0, 32)], data=64), "b begins inside a"),
    (raw(tensors=[tensor("a", (40,), 8)], data=64), "multiple of 32"),
    (raw(tensors=[tensor("a", (1,), 4)], data=64), "a is stored as 4,"),
    (raw(tensors=[tensor("a", (1,), 99)], data=64), "a is stored as 99,"),
    (raw(tensors=[tensor("a", (256,), 15)], data=512), "a is stored as Q8_K,"),
    (raw(tensors=[tensor("a", (1,), 28)], data=64), "a is stored as F64,"),
    (b"", "not a GGUF file"),
    (b"GG", "not a GGUF file"),
    (b"\x80\x04lots of other things", "not a GGUF file"),
    (b"FUGG" + raw()[4:], "not a GGUF file"),
    (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
    (b"GGUF" + struct.pack("<III", 1, 0, 0) + bytes(9), "version 1"),
    (b"GGUF" + struct.pack("<IQQ", 4, 0, 0), "version 4"),
    (b"GGUF" + struct.pack("<IQQ", 0, 0, 0), "version 0"),
]


@pytest.mark.parametrize(("content", "named"), CLAIMS, ids=range(len(CLAIMS)))
def test_claims(tmp_path: Path, content: bytes, named: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    read_once = refusal(path)
    assert named in read_once
    tracemalloc.start()
    try:
        assert refusal(path) == read_once
        assert tracemalloc.get_traced_memory()[1] < 1 << 17
    finally:
        tracemalloc.stop()


def test_the_claims_alone_are_at_fault(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    fields = [number("general.alignment", 64), field("a", 9, array(9, 1, array(0, 1, b"\1")))]
    path.write_bytes(raw(fields, [tensor("a", (8,)), tensor("b", (32, 2), 8, 64)], 160))
    assert read_header(path).tensors.keys() == {"a", "b"}


@pytest.mark.parametrize(
    "field_of_it",
    [text("a") + struct.pack("<IQ", 8, 100 << 30), field("a", 9, array(0, 100 << 30, b"")), field("a", 9, array(8, 1 << 33, b""))],
)  # fmt: skip
def test_a_file_that_is_as_long_as_it_claims(tmp_path: Path, field_of_it: bytes) -> None:
    """A hole in a file takes no room on the disk, and would take it in memory."""
    path = tmp_path / "model.gguf"
    path.write_bytes(raw([field_of_it]))
    try:
        os.truncate(path, 101 << 30)
    except OSError:
        pytest.skip("the disk has no files with holes of 101 GB")
    tracemalloc.start()
    try:
        assert f"more than {LARGEST}" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_not_there_or_no_file(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "nothing.gguf")
    assert "directory" in refusal(tmp_path)


@torch.no_grad()
def test_cut_at_any_byte(tmp_path: Path) -> None:
    """Nothing but the padding behind the last tensor can be missing."""
    path = tmp_path / "model.gguf"
    write_model(path, "gpt2", tiny("gpt2"), "Q4_0")
    whole, model = path.stat().st_size, own_tensors(model_in(path))
    end = max(info.begin + info.size for info in read_header(path).tensors.values())
    data = min(info.begin for info in read_header(path).tensors.values())
    assert whole - 32 < end
    for length in range(whole - 1, end - 1, -1):
        os.truncate(path, length)
        for name, found in own_tensors(model_in(path)).items():
            assert_same(found, model[name])
    # Behind the header every length is judged alike: some at both ends, and some between.
    for length in [*range(end - 1, end - 200, -1), *range(end - 200, data + 40, -997), *range(data + 40, -1, -1)]:
        os.truncate(path, length)
        refusal(path, open_gguf)


def test_cut_between_opening_and_reading(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_model(path, "gpt2", tiny("gpt2"))
    opened = open_gguf(path)
    path.write_bytes(path.read_bytes()[:-5000])
    assert "cut short" in refusal(path, lambda _: assemble(opened, torch.float32, "cpu"))
    path.unlink()
    assert "No such file" in refusal(path, lambda _: assemble(opened, torch.float32, "cpu"))
