"""Token files that are damaged, foreign or never finished: one line each, and what was there before is unharmed."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from clearhead.formats import atomic
from clearhead.formats.atomic import PARTIAL, remove_leftovers, write_text
from clearhead.formats.token_files import open_tokens, unchanged_tokens, write_tokens
from clearhead.messages import UserError
from clearhead.text import CharacterTokenizer
from clearhead.text.encoding import Encoded

SOURCE = "5eed" * 16
TOKENIZER = CharacterTokenizer.of("abcdefghi")


def pieces(*rows: list[int]) -> Iterator[Encoded]:
    return (Encoded(np.array(row, dtype=np.int64), len(row), ends=True) for row in rows)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A token file that opens."""
    path = tmp_path / "tokens"
    write_tokens(path, TOKENIZER, pieces([1, 2, 3], [], [4, 5, 6, 7, 9]), source=SOURCE)
    open_tokens(path, TOKENIZER)
    return path


def refusal(path: Path) -> str:
    """The one line with which a file is refused."""
    with pytest.raises(UserError) as error:
        open_tokens(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("kept", [60, 100, 0.5, 0.9, -25, -24, -17, -1])
def test_cut_short(path: Path, kept: float) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    line = refusal(path)
    assert "damaged" in line
    assert "bytes" in line


def test_bytes_behind_the_end(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")
    assert "damaged" in refusal(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\0" * 8, b"\xff" * 64, b"plain text that is none " * 9, b"PK\x03\x04" + b"\0" * 60]
    + [(100).to_bytes(8, "little") + text.ljust(100) for text in (b"null", b"[1]", b"[" * 99, b"{}", b'{"__metadata__":3}')],
)  # fmt: skip
def test_foreign(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert "not a token file" in refusal(path)


def test_foreign_safetensors(path: Path) -> None:
    save_file({"ids": np.arange(3, dtype=np.uint16)}, path)
    assert "not a token file" in refusal(path)
    save_file({"ids": np.arange(3, dtype=np.uint16)}, path, {"format": "pt"})
    assert "not a token file" in refusal(path)
    save_file({"ids": np.arange(3, dtype=np.uint16)}, path, {"format": "clearhead-tokens"})
    assert "version None" in refusal(path)


def test_not_there_or_no_file(tmp_path: Path) -> None:
    refusal(tmp_path / "nothing")
    refusal(tmp_path)


def edited(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """The file with its header changed and the rest as it was."""
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode().ljust(length + 40)
    path.write_bytes(len(text).to_bytes(8, "little") + text + whole[8 + length :])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda h: None, None),
        (lambda h: h["__metadata__"].update(format_version="1"), "version 1"),
        (lambda h: h["__metadata__"].update(format_version=2), "version 2"),
        (lambda h: h["__metadata__"].update(tokens="9"), "ids"),
        (lambda h: h["__metadata__"].update(tokens="many"), "tokens"),
        (lambda h: h["__metadata__"].update(tokens="-8"), "tokens"),
        (lambda h: h["__metadata__"].update(tokens="8" * 5000), "tokens"),
        (lambda h: h["__metadata__"].update(tokens=8), "tokens"),
        (lambda h: h["__metadata__"].pop("characters"), "characters"),
        (lambda h: h["__metadata__"].pop("tokenizer_sha256"), "tokenizer_sha256"),
        (lambda h: h["__metadata__"].update(tokenizer=None), "tokenizer"),
        (lambda h: h["__metadata__"].pop("content_sha256"), "content_sha256"),
        (lambda h: h["__metadata__"].update(content_sha256="0" * 64), "not those that were written"),
        (lambda h: h["__metadata__"].update(documents="4"), "ends"),
        (lambda h: h["__metadata__"].update(vocab="65537"), "ids"),
        (lambda h: h["__metadata__"].update(vocab="9"), "token id 9 and its vocabulary has 9"),
        (lambda h: h["__metadata__"].update(vocab="0"), "vocabulary has 0"),
        (lambda h: h["ids"].update(dtype="I16"), "ids"),
        (lambda h: h["ids"].update(shape=[2, 4]), "ids"),
        (lambda h: h.pop("ids"), "ids"),
        (lambda h: h.pop("ends"), "ends"),
        (lambda h: h["ends"].update(data_offsets=[0, 24]), "ends"),
        (lambda h: h.update(more=h["ends"]), "more"),
    ],
)
def test_headers_that_contradict(path: Path, change: Callable[[dict[str, Any]], object], named: str | None) -> None:
    edited(path, change)
    if named is None:
        open_tokens(path, TOKENIZER)
    else:
        assert named in refusal(path)


@pytest.mark.parametrize("ends", [[3, 3, 7], [3, 3, 9], [4, 3, 8], [-1, 3, 8], [9, 9, 8]])
def test_ends_that_contradict(path: Path, ends: list[int]) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-24] + np.array(ends, dtype="<i8").tobytes())
    assert "its ends contradicts" in refusal(path)


@pytest.mark.parametrize("place", [-40, -34, -26])
def test_an_id_that_became_another_is_noticed(path: Path, place: int) -> None:
    """Nothing but the digest tells: the header, the counts, the ends and the vocabulary all still agree."""
    whole = bytearray(path.read_bytes())
    assert open_tokens(path, TOKENIZER).ids().tolist() == [1, 2, 3, 4, 5, 6, 7, 9]
    whole[place] ^= 1
    path.write_bytes(whole)
    assert "not those that were written" in refusal(path)
    assert unchanged_tokens(path, TOKENIZER, SOURCE) is None


def test_a_boundary_that_moved_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-24] + np.array([2, 3, 8], dtype="<i8").tobytes())
    assert "not those that were written" in refusal(path)


def test_a_file_of_version_1_is_made_anew(path: Path) -> None:
    def old(header: dict[str, Any]) -> None:
        header["__metadata__"].update(format_version="1")
        del header["__metadata__"]["content_sha256"]

    edited(path, old)
    assert "version 1" in refusal(path)
    assert unchanged_tokens(path, TOKENIZER, SOURCE) is None


def test_an_id_outside_is_never_written(path: Path) -> None:
    before = path.read_bytes()
    for wrong in (10, -1, 70_000):
        with pytest.raises(UserError, match="outside the vocabulary of 10"):
            write_tokens(path, TOKENIZER, pieces([1], [wrong]), source=SOURCE)
        unharmed(path, before)


def unharmed(path: Path, before: bytes) -> None:
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_what_the_reader_raises_leaves_the_old_file(path: Path) -> None:
    before = path.read_bytes()
    for error in (UserError("line 2 is broken"), OSError("the disk of the text"), KeyboardInterrupt()):

        def broken(error: BaseException = error) -> Iterator[Encoded]:
            yield from pieces([1, 2])
            raise error

        with pytest.raises(type(error)) as raised:
            write_tokens(path, TOKENIZER, broken(), source=SOURCE)
        # The reader's own trouble, not told as if this file could not be written.
        assert raised.value is error
        unharmed(path, before)


@pytest.mark.parametrize("full_after", [0, 1, 2, 3])
def test_a_full_disk(path: Path, monkeypatch: pytest.MonkeyPatch, full_after: int) -> None:
    before = path.read_bytes()
    real, written = atomic.NewFile, []

    class Full:
        def __init__(self, path: Path, file: Any) -> None:
            self.inner = real(path, self)
            self.file = file

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

        def write(self, data: memoryview) -> int:
            if len(written) > full_after:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written.append(len(data))
            # A disk that fills takes a part, and says so only the next time.
            return int(self.file.write(data[: (len(data) + 1) // 2]))

    monkeypatch.setattr(atomic, "NewFile", lambda path, file: Full(path, file).inner)
    with pytest.raises(UserError, match="No space left"):
        write_tokens(path, TOKENIZER, pieces([1, 2, 3]), source=SOURCE)
    unharmed(path, before)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no disk that is always full")
def test_a_disk_that_is_full_for_real(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb", buffering=0) as file, pytest.raises(UserError, match="No space left"):
        atomic.NewFile(tmp_path, file).write(b"abc")


def test_what_is_written_in_parts_is_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = atomic.NewFile

    class Slow:
        def __init__(self, file: Any) -> None:
            self.file = file

        def write(self, data: memoryview) -> int:
            return int(self.file.write(data[:3]))

        def seek(self, place: int) -> None:
            self.file.seek(place)

    before = path.read_bytes()
    monkeypatch.setattr(atomic, "NewFile", lambda path, file: real(path, Slow(file)))
    write_tokens(path, TOKENIZER, pieces([1, 2, 3], [], [4, 5, 6, 7, 9]), source=SOURCE)
    unharmed(path, before)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        write_tokens(tmp_path / "no/tokens", TOKENIZER, pieces([1]), source=SOURCE)
    with pytest.raises(UserError, match="cannot be written"):
        write_text(tmp_path / "no/text", "abc")


KILLED = """
import sys, time
from pathlib import Path
import numpy as np
from clearhead.formats.token_files import write_tokens
from clearhead.text import ByteTokenizer
from clearhead.text.encoding import Encoded

def endless():
    while True:
        yield Encoded(np.zeros(1 << 18, dtype=np.int64), 1, True)
        print("written", flush=True)
        time.sleep(0.01)

write_tokens(Path(sys.argv[1]), ByteTokenizer(), endless(), source="")
"""


def test_a_killed_process_leaves_the_old_file(path: Path) -> None:
    before = path.read_bytes()
    child = subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE)
    assert child.stdout is not None
    for _ in range(3):
        child.stdout.readline()
    child.kill()
    child.wait()
    child.stdout.close()
    assert path.read_bytes() == before
    names = sorted(each.name for each in path.parent.iterdir())
    assert len(names) == 2
    assert names[0].startswith(PARTIAL)
    remove_leftovers(path.parent)
    unharmed(path, before)
