"""Streams: compressed files, pipes, progress, and memory that does not grow with the file."""

import gzip
import os
import tracemalloc

import pytest

from clearhead.messages import UserError
from clearhead.text import read_text
from clearhead.text.streams import BLOCK
from clearhead.text.text_file import examine


@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "gb18030"])
def test_a_compressed_file_is_read_as_the_plain_one(tmp_path, codec):
    data = ("我们在 2024 年看到 3 只猫。\r\n" * 90).encode(codec)
    plain, packed = tmp_path / "a.txt", tmp_path / "a.txt.GZ"
    plain.write_bytes(data)
    # Two members one after another, as `cat a.gz b.gz` makes them, cut inside a character.
    packed.write_bytes(gzip.compress(data[:101]) + gzip.compress(data[101:]))
    one, two = read_text(plain), read_text(packed)
    assert (two.text, two.encoding) == (one.text, one.encoding)
    assert [note.replace("a.txt.GZ", "a.txt") for note in two.notes] == list(one.notes)
    assert examine(packed).size == len(data)


@pytest.mark.parametrize("fault", ["cut", "not compressed", "flipped"])
def test_a_damaged_compressed_file_is_one_line(tmp_path, monkeypatch, fault):
    path = tmp_path / "a.txt.gz"
    packed = bytearray(gzip.compress(os.urandom(3000).hex().encode()))
    if fault == "flipped":
        packed[len(packed) // 2] ^= 0xFF
    path.write_bytes({"cut": packed[:-20], "not compressed": b"plain text " * 200, "flipped": packed}[fault])
    for read in (read_text, examine):
        with pytest.raises(UserError, match=r"^\S+a\.txt\.gz is no whole \.gz file: compress it again"):
            read(path)
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    with pytest.raises(UserError, match=r"不是完整的 \.gz 文件"):
        examine(path)


def test_an_empty_compressed_file_holds_no_text(tmp_path):
    path = tmp_path / "a.txt.gz"
    for data in (b"", gzip.compress(b"")):
        path.write_bytes(data)
        assert examine(path).blank
        with pytest.raises(UserError, match="holds no text"):
            read_text(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    path = tmp_path / "pipe.txt"
    os.mkfifo(path)
    with pytest.raises(UserError, match="is no plain file"):
        examine(path)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_progress_is_told_every_byte_on_disk_once(tmp_path, name):
    path = tmp_path / name
    data = os.urandom(3 * BLOCK // 4).hex().encode()
    path.write_bytes(gzip.compress(data, 1) if name.endswith("gz") else data)
    told: list[int] = []
    looked = examine(path, progress=told.append)
    assert sum(told) == path.stat().st_size
    assert len(told) > 1
    told.clear()
    assert sum(map(len, looked.parts(told.append))) == len(data)
    assert sum(told) == path.stat().st_size


def test_what_stands_behind_the_last_block_is_told_too(tmp_path):
    # A compressed file may be followed by zeros, which hold nothing and are read all the same.
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"a" * BLOCK) + b"\0" * BLOCK)
    told: list[int] = []
    assert examine(path, progress=told.append).size == BLOCK
    assert sum(told) == path.stat().st_size


def test_a_file_that_changed_is_still_named(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"a" * 1000)
    looked = examine(path)
    path.write_bytes(b"a" * 1000 + b"\xff")
    with pytest.raises(UserError, match="byte 0xFF at offset 1,000"):
        list(looked.parts())


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        for _ in range(24):
            file.write("一只小猫在山里看花。\r\n".encode() * (BLOCK // 32))
    tracemalloc.start()
    looked = examine(path)
    characters = sum(map(len, looked.parts()))
    peak = tracemalloc.get_traced_memory()[1]
    # The planted fault: the whole of it.
    whole = path.read_bytes().decode()
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert characters == len(whole.replace("\r\n", "\n"))
    assert peak < 12 * BLOCK < 24 * BLOCK < held
