"""safetensors, whole and in parts: the same numbers as the library's own reader, and one line for whatever is wrong."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from clearhead.formats import safetensors_files
from clearhead.formats.safetensors_files import SafetensorsFiles, open_safetensors
from clearhead.formats.safetensors_header import LONGEST
from clearhead.messages import UserError
from tests.formats.safetensors_made import check_reads, entry, refusal, shard_of, tensors, write_raw, write_shards

TYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_file_reads_as_the_library_reads_it(tmp_path: Path, dtype: torch.dtype) -> None:
    save_file(tensors(dtype), tmp_path / "model.safetensors", {"format": "pt"})
    whole = load_file(tmp_path / "model.safetensors")
    check_reads(open_safetensors(tmp_path), whole)
    check_reads(SafetensorsFiles.of_file(tmp_path / "model.safetensors"), whole)


def test_several_files_are_one_model(tmp_path: Path) -> None:
    whole = tensors()
    check_reads(open_safetensors(write_shards(tmp_path, whole)), whole)


def test_one_file_comes_before_an_index(tmp_path: Path) -> None:
    write_shards(tmp_path, tensors())
    save_file({"only": torch.ones(2)}, tmp_path / "model.safetensors")
    assert set(open_safetensors(tmp_path).names) == {"only"}


@pytest.mark.parametrize("wrong", ["row", "type"])
def test_a_place_that_is_wrong_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    save_file(tensors(), tmp_path / "model.safetensors")
    found, read = open_safetensors(tmp_path), safetensors_files._read_into

    def planted(tensor: Tensor, path: Path, begin: int) -> None:
        read(tensor, path, begin + 4 if wrong == "row" else begin)
        if wrong == "type":
            tensor.copy_(tensor.bfloat16())

    monkeypatch.setattr(safetensors_files, "_read_into", planted)
    with pytest.raises((AssertionError, UserError)):
        check_reads(found, load_file(tmp_path / "model.safetensors"))


def test_links_are_followed_as_a_cache_makes_them(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots/1a2b"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    whole = tensors()
    write_shards(blobs, whole)
    for number, path in enumerate(sorted(blobs.iterdir())):
        path.rename(blobs / f"{number}")
        (snapshot / path.name).symlink_to(Path("../../blobs") / f"{number}")
    check_reads(open_safetensors(snapshot), whole)
    (blobs / "1").unlink()
    assert shard_of(2) in refusal(snapshot)


def test_nothing_of_a_file_stays_open(tmp_path: Path) -> None:
    save_file(tensors(), tmp_path / "model.safetensors")
    found = open_safetensors(tmp_path)
    kept = found.read("large")
    if sys.platform == "linux":
        # This file alone: what another test has mapped is not ours to judge.
        assert str(tmp_path) not in Path("/proc/self/maps").read_text(encoding="utf-8")
        assert not any(str(tmp_path) in str(each.readlink()) for each in open_files())
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert kept.isfinite().all()
    assert "shorter than when it was opened" in refusal(tmp_path, lambda _: found.read("a"))
    (tmp_path / "model.safetensors").unlink()
    assert "No such file" in refusal(tmp_path, lambda _: found.read("a"))


def open_files() -> Iterator[Path]:
    return (each for each in list(Path("/proc/self/fd").iterdir()) if os.path.lexists(each))


@pytest.mark.parametrize("kept", [0, 1, 7, 8, 9, 40, 0.5, 0.99, -1])
def test_a_file_cut_short(tmp_path: Path, kept: float) -> None:
    path = tmp_path / "model.safetensors"
    save_file(tensors(), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    assert re.search(r"model.safetensors (has \d+ bytes and by its header|cannot be read as)", refusal(tmp_path))


A = {"a": entry([2], 0, 8)}
HUGE = 1 << 60


@pytest.mark.parametrize(
    ("header", "data", "length", "named"),
    [
        (A, 8, HUGE, f"bytes and by its header {HUGE + 8}:"),
        (A, 9, None, "bytes and by its header"),
        ({"a": entry([HUGE], 0, 4 * HUGE)}, 8, None, "does not say which type, shape and place a has"),
        ({"a": entry([1 << 58], 0, 1 << 60)}, 8, None, f"by its header {1 << 60}"[:20]),
        ({"a": entry([1 << 58], 0, 8)}, 8, None, "cannot be read as safetensors"),
        ({"a": entry([0, 1 << 62, 1 << 62], 0, 0)}, 0, None, "does not say"),
        ({"a": entry([1] * 9, 0, 4)}, 4, None, "does not say"),
        (A | {"b": entry([2], 0, 8)}, 8, None, "invalid offset"),
        (A | {"b": entry([2], 4, 12)}, 12, None, "invalid offset"),
        (A | {"b": entry([2], 12, 20)}, 20, None, "invalid offset"),
        ({"a": entry([2], 8, 0)}, 8, None, "does not say"),
        ({"a": entry([3], 0, 8)}, 8, None, "cannot be read as safetensors"),
        ({"a": entry([2], 0, 8, "Q7")}, 8, None, "Q7"),
        ({"a": entry([-2], 0, 8)}, 8, None, "does not say"),
        ({"a": entry([2.0], 0, 8)}, 8, None, "does not say"),
        ({"a": entry([True], 0, 4)}, 4, None, "does not say"),
        ({"a": {"dtype": "F32", "shape": [2]}}, 8, None, "does not say"),
        ({"a": 7}, 8, None, "does not say"),
        ({"a\nb": entry([2], 0, 8)}, 8, None, r"'a\nb'"),
        ({"\ud800": entry([2], 0, 8)}, 8, None, r"'\ud800'"),
        ({"n" * 10_000: entry([2], 0, 8)}, 8, None, "nnn"),
        (b"{" + b",".join([json.dumps(A).encode()[1:-1]] * 2) + b"}", 8, None, "holds a twice"),
        (b'{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}', 8, None, "holds dtype twice"),
        (b"[1,2]", 8, None, "JSON list"),
        (b"null", 0, None, "NoneType"),
        (b"{", 0, None, "cannot be read as safetensors"),
        (b"\xff\xfe" * 9, 0, None, "cannot be read as safetensors"),
        (b"[" * 100_000, 0, None, "cannot be read as safetensors"),
        (b'{"a":' * 100_000, 0, None, "cannot be read as safetensors"),
        (b'{"a":' + b"9" * 5000 + b"}", 0, None, "cannot be read as safetensors"),
        (b" " * (LONGEST + 1), 0, None, f"more than {LONGEST} bytes"),
        ({"__metadata__": {"a": 1}} | A, 8, None, "cannot be read as safetensors"),
    ],
)  # fmt: skip
def test_a_header_that_lies(
    tmp_path: Path, header: bytes | dict[str, Any], data: int, length: int | None, named: str
) -> None:
    write_raw(tmp_path / "model.safetensors", header, b"\0" * data, length)
    assert named in refusal(tmp_path)


def test_a_header_that_does_not(tmp_path: Path) -> None:
    """What the lies above were made of is read."""
    write_raw(tmp_path / "model.safetensors", A | {"__metadata__": {"a": "1"}}, b"\0" * 8)
    check_reads(open_safetensors(tmp_path), {"a": torch.zeros(2)})


@pytest.mark.parametrize("dtype", ["I32", "I64", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "C64"])
def test_a_type_that_weights_do_not_have(tmp_path: Path, dtype: str) -> None:
    """Told when somebody asks for the tensor: saved masks and numbers of positions are of such types, and unused."""
    write_raw(tmp_path / "model.safetensors", {"h.0.mask": entry([8 // size_of(dtype)], 0, 8, dtype)}, b"\0" * 8)
    found = open_safetensors(tmp_path)
    line = refusal(tmp_path, lambda _: found.read("h.0.mask"))
    assert f"h.0.mask is of type {dtype}" in line
    assert "F64, F32, F16, BF16" in line


def size_of(dtype: str) -> int:
    return {"I32": 4, "I64": 8, "C64": 8}.get(dtype, 1)
