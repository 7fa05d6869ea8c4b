"""Token files: what was written is read, by us and by safetensors; re-used, refused, and flat in memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file
from safetensors.torch import load_file as load_torch

from clearhead.formats import token_files
from clearhead.formats.token_files import TokenFile, open_tokens, unchanged_tokens, write_tokens
from clearhead.messages import UserError
from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer
from clearhead.text.documents import Document
from clearhead.text.encoding import Encoded, Sizes, encoded

SOURCE = "5eed" * 16
TEXTS = ("", "It was 小猫。", "a", "", "", "the end, and no line break" * 5, "")


def given_out(*rows: Iterable[int]) -> Iterator[Encoded]:
    """Each row a document; those longer than three ids in two pieces."""
    for row in rows:
        ids = np.array(list(row), dtype=np.int64)
        if len(ids) > 3:
            yield Encoded(ids[:2], 2, ends=False)
            ids = ids[2:]
        yield Encoded(ids, len(ids), ends=True)


def written(path: Path, tokenizer: CharacterTokenizer | ByteTokenizer | MarkedTokenizer, *texts: str) -> TokenFile:
    documents = [Document(None, None, [text]) for text in texts]
    pieces = encoded(tokenizer, lambda: iter(documents), sizes=Sizes(piece=7, window=2, batch=20))
    return write_tokens(path, tokenizer, pieces, source=SOURCE)


def flat(documents: Iterable[list[int]]) -> list[int]:
    return [id for document in documents for id in document]


def rows(file: TokenFile) -> list[list[int]]:
    return [document[:].tolist() for document in file.documents]


def test_what_was_written_is_read(tmp_path: Path) -> None:
    tokenizer = ByteTokenizer()
    made = written(tmp_path / "a.tokens", tokenizer, *TEXTS)
    file = open_tokens(tmp_path / "a.tokens", tokenizer)
    assert made == file
    assert rows(file) == [tokenizer.encode(text) for text in TEXTS]
    everything = tokenizer.encode("".join(TEXTS))
    assert file.ids().tolist() == everything
    assert (len(file), file.header.documents, file.header.characters) == (len(everything), 7, len("".join(TEXTS)))
    assert file.ends.tolist() == np.cumsum([len(text.encode()) for text in TEXTS]).tolist()
    assert file.documents.lengths.tolist() == [len(text.encode()) for text in TEXTS]
    assert file.tokenizer == tokenizer
    assert [each.name for each in tmp_path.iterdir()] == ["a.tokens"]


def test_slices_are_those_of_an_array(tmp_path: Path) -> None:
    file = write_tokens(
        tmp_path / "a", CharacterTokenizer.of("abcdefghij"), given_out(range(3), range(11), [5]), source=SOURCE
    )
    document = file.documents[1]
    assert len(document) == 11
    for places in (
        slice(None), slice(3), slice(2, 7), slice(-4, None), slice(-4, -1), slice(8, 99), slice(7, 3), slice(5, 5),
        slice(99, 100), slice(0, 11, 3), slice(None, None, -1),
    ):  # fmt: skip
        assert document[places].tolist() == list(range(11))[places]
        assert document[places].dtype == np.int64
    assert file.ids(2, 5).tolist() == [2, 0, 1]
    assert file.ids(-2).tolist() == [10, 5]
    assert file.ids(9, 4).tolist() == []
    assert [len(each) for each in file.documents[1:]] == [11, 1]
    assert file.documents[-1][:].tolist() == [5]
    with pytest.raises(IndexError):
        file.documents[3]
    # A slice is the caller's own.
    taken = document[0:3]
    taken += 1
    assert document[0:3].tolist() == [0, 1, 2]


class Sized(ByteTokenizer):
    """Bytes, and many ids that no text has."""

    def __init__(self, size: int) -> None:
        object.__setattr__(self, "_size", size)

    @property
    def size(self) -> int:
        return self._size  # type: ignore[attr-defined,no-any-return]


@given(st.lists(st.lists(st.integers(0, 70_000), max_size=9), max_size=6), st.sampled_from([70_001, 65_537]))
def test_any_documents(tmp_path_factory: pytest.TempPathFactory, documents: list[list[int]], vocab: int) -> None:
    path = tmp_path_factory.mktemp("any") / "tokens"
    documents = [[id % vocab for id in document] for document in documents]
    tokenizer = Sized(vocab)
    file = write_tokens(path, tokenizer, given_out(*documents), source=SOURCE)
    assert rows(file) == documents
    assert open_tokens(path, tokenizer).ids().tolist() == flat(documents)


@pytest.mark.parametrize(("vocab", "width"), [(256, np.uint16), (65_536, np.uint16), (65_537, np.uint32)])
def test_the_narrowest_type_that_holds_the_vocabulary(tmp_path: Path, vocab: int, width: type) -> None:
    path = tmp_path / "tokens"
    write_tokens(path, Sized(vocab), given_out([0, vocab - 1, 7]), source=SOURCE)
    assert load_file(path)["ids"].dtype == width
    assert open_tokens(path).ids().tolist() == [0, vocab - 1, 7]


@pytest.mark.parametrize("documents", [(), ([],), ([3, 1, 2],), ([3, 1, 2, 0], [], [5])], ids=len)
def test_any_reader_of_safetensors_opens_it(tmp_path: Path, documents: tuple[list[int], ...]) -> None:
    """Also where the number of ids is odd, and `ends` stands at an odd place."""
    path = tmp_path / "tokens"
    made = write_tokens(path, MarkedTokenizer(CharacterTokenizer.of("小猫ab")), given_out(*documents), source=SOURCE)
    ends = np.cumsum([len(document) for document in documents], dtype=np.int64)
    read = load_file(path)
    assert {name: array.dtype for name, array in read.items()} == {"ids": np.uint16, "ends": np.int64}
    assert read["ids"].tolist() == flat(documents)
    assert read["ends"].tolist() == ends.tolist()
    assert torch.equal(load_torch(path)["ends"], torch.from_numpy(ends))
    assert open_tokens(path) == made
    with safe_open(path, framework="np") as file:
        assert file.get_tensor("ids").tolist() == flat(documents)
        assert file.get_tensor("ends").tolist() == ends.tolist()
        metadata = file.metadata()
    assert metadata["format"] == "clearhead-tokens"
    assert metadata["format_version"] == "2"
    assert metadata["content_sha256"] == sha256(path.read_bytes()[-made.header.size or 10**9 :]).hexdigest()
    assert metadata["source_sha256"] == SOURCE
    assert int(metadata["tokens"]) == len(flat(documents))
    assert int(metadata["documents"]) == len(documents)
    assert "小猫" in metadata["tokenizer"]


def test_more_than_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_files, "BLOCK", 5)
    documents = [list(range(length)) for length in (0, 4, 5, 6, 1, 23, 0)]
    file = write_tokens(tmp_path / "tokens", ByteTokenizer(), given_out(*documents), source=SOURCE)
    assert rows(open_tokens(tmp_path / "tokens")) == rows(file) == documents


def test_the_same_again_is_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        written(tmp_path / name, CharacterTokenizer.of("abc"), *TEXTS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_reused_while_nothing_changed(tmp_path: Path) -> None:
    path, tokenizer = tmp_path / "tokens", CharacterTokenizer.of("abc")
    assert unchanged_tokens(path, tokenizer, SOURCE) is None
    made = written(path, tokenizer, "abc")
    assert made.matches(CharacterTokenizer.of("cba"), SOURCE)
    assert unchanged_tokens(path, tokenizer, SOURCE) == made
    assert not made.matches(tokenizer, SOURCE[::-1])
    assert unchanged_tokens(path, tokenizer, SOURCE[::-1]) is None
    assert not made.matches(CharacterTokenizer.of("abd"), SOURCE)
    assert unchanged_tokens(path, CharacterTokenizer.of("abd"), SOURCE) is None
    path.write_bytes(path.read_bytes()[:-1])
    assert unchanged_tokens(path, tokenizer, SOURCE) is None


def test_refused_when_the_tokenizer_differs(tmp_path: Path) -> None:
    path, tokenizer = tmp_path / "tokens", CharacterTokenizer.of("abc")
    made = written(path, tokenizer, "abc")
    with pytest.raises(UserError, match="another tokenizer") as error:
        open_tokens(path, MarkedTokenizer(tokenizer))
    assert made.header.tokenizer_sha256[:12] in str(error.value)
    assert open_tokens(path, CharacterTokenizer.of("cab")) == made


def test_a_file_that_was_replaced_is_not_read_with_the_old_header(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    old = written(path, ByteTokenizer(), "abcdef", "xyz")
    new = written(path, ByteTokenizer(), "xyz", "abcdef and more")
    with pytest.raises(UserError, match="changed"):
        old.documents[1][:]
    assert len(new.documents[1][:]) == 15
    with path.open("rb+") as file:
        file.truncate(new.begin + 3)
    with pytest.raises(UserError, match="cut short"):
        new.ids(0, 2)
    path.unlink()
    with pytest.raises(UserError, match="cannot be read"):
        new.ids(0, 2)


FLAT = """
import sys
from pathlib import Path
import numpy as np
from clearhead.formats.token_files import open_tokens

def resident():
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) + int(fields["RssFile"].split()[0])

file = open_tokens(Path(sys.argv[1]))
(document,) = file.documents
mapped = np.memmap(file.path, "<u2", "r", file.begin, len(file)) if sys.argv[2] == "mapped" else document
T = 1 << 14
starts = np.random.default_rng(0).permutation(len(document) // T) * T
mapped[:T].sum()
before, total = resident(), 0
for start in starts:
    total += int(mapped[start : start + T].astype(np.int64).sum())
print(resident() - before, total)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell resident memory in /proc")
def test_memory_is_flat_over_an_epoch(tmp_path: Path) -> None:
    """Every id of 100 MB in random order grows the process by less than 20 MB; one map kept open (the fault) does not pass."""
    block = np.random.default_rng(1).integers(0, 256, 1 << 20)
    path, times = tmp_path / "tokens", 50
    write_tokens(path, ByteTokenizer(), (Encoded(block, 1, n == times - 1) for n in range(times)), source=SOURCE)
    assert path.stat().st_size > 100_000_000

    def grown(kind: str) -> int:
        ran = subprocess.run([sys.executable, "-c", FLAT, path, kind], capture_output=True, text=True, check=True)
        kilobytes, total = map(int, ran.stdout.split())
        assert total == times * int(block.sum())
        return kilobytes

    assert grown("spans") < 20_000
    assert grown("mapped") > 80_000
