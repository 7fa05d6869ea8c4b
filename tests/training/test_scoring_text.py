"""What is scored of a text, without ever having all of it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer, Tokenizer
from clearhead.text.bpe_training import train_bpe
from clearhead.text.documents import Document
from clearhead.training.scoring_text import Extent, extent_of, spooled

PART = "0123456789abcde\n" * (1 << 14)
PARTS = 80
MB = 1 << 20


def long_document(read: list[int]) -> Callable[[], Iterator[Document]]:
    """20 MB in one document, made as it is read; `read` says how much was."""

    def parts() -> Iterator[str]:
        for _ in range(PARTS):
            read.append(len(PART))
            yield PART

    return lambda: iter([Document(None, None, parts())])


def peak_of(work: Callable[[], object]) -> int:
    """The most bytes that Python and numpy held at a time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_long_document_is_never_held(tmp_path: Path) -> None:
    found = []
    held = peak_of(lambda: found.append(spooled(tmp_path / "ids", ByteTokenizer(), long_document([]))))
    assert held < 60 * MB
    (text,) = found
    assert (text.tokens, text.extent) == (PARTS * len(PART) - 1, Extent(PARTS * len(PART) - 1, PARTS * len(PART) - 1))
    document = text.documents[0]
    last = document[len(document) - 3 :]
    assert ByteTokenizer().decode(last) == "de\n"
    # The planted fault: its ids in an array.
    assert peak_of(lambda: document[:]) > 150 * MB


def test_no_more_is_read_than_the_limit_needs(tmp_path: Path) -> None:
    read: list[int] = []
    text = spooled(tmp_path / "ids", CharacterTokenizer.of(PART), long_document(read), limit=1000)
    assert (text.tokens, text.extent, len(text.documents[0])) == (1000, Extent(1000, 1000), 1001)
    # Encoding reads ahead, but not to the end.
    assert sum(read) < PARTS * len(PART) / 3


@pytest.mark.parametrize(
    "tokenizer",
    [ByteTokenizer(), MarkedTokenizer(ByteTokenizer()), train_bpe(["a猫 a猫 é é"], vocab=261)],
    ids=["bytes", "marked", "joined"],
)
def test_the_first_ids_stand_for_their_bytes(tokenizer: Tokenizer) -> None:
    """Every beginning of a text: the bytes of its tokens, the characters that are whole."""
    text = "a猫😀b é"
    ids = np.array(tokenizer.encode(text))
    counted = [extent_of(tokenizer, ids[:count]) for count in range(len(ids) + 1)]
    assert counted[0] == Extent(0, 0)
    assert counted[-1] == Extent(len(text.encode()), len(text))
    for count, extent in enumerate(counted):
        data = text.encode()[: extent.bytes]
        assert extent.characters == len(data.decode(errors="ignore"))
        assert tokenizer.decode(ids[:count]) == data.decode(errors="replace")
