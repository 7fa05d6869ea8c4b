"""Folders of several safetensors files, or of none: what an index may not say, and what is no model."""

from __future__ import annotations

import json
import math
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from clearhead.formats.safetensors_files import open_safetensors
from clearhead.formats.safetensors_header import LONGEST
from tests.formats.safetensors_made import INDEX, check_reads, refusal, shard_of, tensors, write_shards


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"a": "../" + shard_of(1)}, f"the file ../{shard_of(1)}"),
        ({"a": "/etc/passwd"}, "the file /etc/passwd"),
        ({"a": "sub/" + shard_of(1)}, "sub/"),
        ({"a": "sub\\" + shard_of(1)}, "sub\\"),
        ({"a": "C:" + shard_of(1)}, "C:"),
        ({"a": ".."}, "the file ..,"),
        ({"a": "."}, "the file ."),
        ({"a": ""}, "the file '',"),
        ({"a": "x\0y"}, r"'x\x00y'"),
        ({"a": "x\ny"}, r"'x\ny'"),
        ({"a": "\udc80"}, r"'\udc80'"),
        ({"a": "n" * 300}, "is missing"),
        ({"a": "other.safetensors"}, "other.safetensors is missing"),
        ({"a": shard_of(2)}, f"{shard_of(2)} does not hold a"),
        ({"lost": shard_of(2)}, f"{shard_of(2)} does not hold lost"),
        ({"lost\x1b[2J": shard_of(2)}, r"'lost\x1b[2J'"),
        ({"a": 7}, "no weight_map"),
        ({"a": ["x"]}, "no weight_map"),
    ],
)
def test_an_index_that_lies(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    (tmp_path / "sub").mkdir()
    write_shards(tmp_path, tensors(), changes)
    (tmp_path / "sub" / shard_of(1)).write_bytes((tmp_path / shard_of(1)).read_bytes())
    assert named in refusal(tmp_path)


def test_a_tensor_that_the_index_forgot_is_there_all_the_same(tmp_path: Path) -> None:
    whole = tensors()
    check_reads(open_safetensors(write_shards(tmp_path, whole, {"a": None})), whole)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"weight_map": {}}',
        b'{"weight_map": []}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"weight_map": NaN}',
        b" " * (LONGEST + 1),
    ],
)
def test_an_index_that_is_none(tmp_path: Path, content: bytes) -> None:
    write_shards(tmp_path, tensors())
    (tmp_path / INDEX).write_bytes(content)
    assert INDEX in refusal(tmp_path)


def test_a_shard_that_is_missing_cut_or_another(tmp_path: Path) -> None:
    write_shards(tmp_path, tensors())
    third = tmp_path / shard_of(3)
    whole = third.read_bytes()
    third.write_bytes(whole[:-3])
    assert f"{shard_of(3)} has {len(whole) - 3} bytes" in refusal(tmp_path)
    third.write_bytes((tmp_path / shard_of(1)).read_bytes())
    assert "holds a twice" in refusal(tmp_path)
    third.unlink()
    assert f"{shard_of(3)} is missing" in refusal(tmp_path)
    third.mkdir()
    assert f"{shard_of(3)} is missing" in refusal(tmp_path)


@pytest.mark.parametrize(
    "files", [("pytorch_model.bin",), ("pytorch_model-00001-of-00002.bin", "pytorch_model.bin.index.json")]
)
def test_pickles_are_not_read_and_can_be_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: tuple[str, ...]
) -> None:
    """The command in the message is run: tied tensors and turned ones come out, too."""
    whole = {"a": torch.randn(3, 2).t(), "b": (tied := torch.randn(4)), "c": tied}
    for name in files:
        torch.save(whole, tmp_path / name)
    (tmp_path / "pytorch_model.bin.index.json").write_text("{}", encoding="utf-8")
    line = refusal(tmp_path)
    assert "pickles alone (pytorch_model" in line
    if len(files) == 2:
        (tmp_path / files[1]).unlink()
    monkeypatch.chdir(tmp_path)
    exec(shlex.split(line[line.index("python -c") :])[2], {})
    check_reads(open_safetensors(tmp_path), {name: tensor.contiguous() for name, tensor in whole.items()})


def test_folders_without_weights(tmp_path: Path) -> None:
    assert "holds no weights" in refusal(tmp_path)
    assert "holds no weights" in refusal(tmp_path / "nothing")
    save_file(tensors(), tmp_path / "model-00001-of-00002.safetensors")
    assert INDEX in refusal(tmp_path)
    (tmp_path / "model.safetensors").symlink_to("nowhere")
    assert "a link may lead nowhere" in refusal(tmp_path)


def test_adapters_are_no_model(tmp_path: Path) -> None:
    save_file(tensors(), tmp_path / "model.safetensors")
    (tmp_path / "adapter_config.json").write_text("{}", encoding="utf-8")
    assert "LoRA" in refusal(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    assert "is no file" in refusal(tmp_path)


def test_many_tensors_are_read_without_their_header_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = {f"blocks.{number}.weight": torch.full((3,), float(number)) for number in range(500)}
    save_file(many, tmp_path / "model.safetensors")
    found = open_safetensors(tmp_path)
    monkeypatch.setattr(json, "loads", None)
    monkeypatch.setattr("clearhead.formats.safetensors_header.safe_open", None)
    assert sum(found.read(name).sum().item() for name in found.names) == 3 * math.comb(500, 2)
