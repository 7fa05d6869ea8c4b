"""The survey: what one reading of documents shows is what the whole of them in memory shows."""

import hashlib
import tracemalloc
from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clearhead.text import read_text
from clearhead.text.documents import Document, Documents, Reading
from clearhead.text.sources import find_sources
from clearhead.text.survey import survey


def documents_of(texts: Sequence[str], size: int = 1000) -> Documents:
    """Texts as documents, in parts of `size` characters."""

    def documents() -> Iterator[Document]:
        for number, text in enumerate(texts, start=1):
            yield Document(None, number, (text[place : place + size] for place in range(0, len(text), size)))

    return documents


def digest(text: str) -> int:
    return int(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16], 16)


@given(st.lists(st.text(), max_size=6), st.integers(1, 5))
def test_a_survey_is_that_of_the_whole_texts(texts, size):
    found = survey(documents_of(texts, size))
    assert found.documents == len(texts)
    assert found.characters == sum(map(len, texts))
    assert found.alphabet == "".join(sorted(set("".join(texts))))
    assert found.lengths.tolist() == list(map(len, texts))
    assert (found.lengths.dtype, found.digests.dtype) == (np.int64, np.uint64)
    assert found.digests.tolist() == list(map(digest, texts))
    assert found.sha256 == hashlib.sha256("\0".join(texts).encode()).hexdigest()


def test_a_survey_by_hand():
    found = survey(documents_of(["ba", "c"]))
    assert (found.alphabet, found.characters) == ("abc", 3)
    # printf ba | sha256sum; printf c | sha256sum; printf 'ba\0c' | sha256sum
    assert [f"{each:016x}" for each in found.digests] == ["970f519c2cadbcef", "2e7d2c03a9507ae2"]
    assert found.sha256 == "24db8893ea370bca1213095bdd8abfd141af6a16305efb772b43984ac79ab5cd"
    # The planted faults: no mark between documents, or one behind each.
    assert found.sha256 not in {hashlib.sha256(text).hexdigest() for text in (b"bac", b"ba\0c\0")}


def test_half_a_surrogate_pair_is_no_crash():
    found = survey(documents_of(["a\ud800"]))
    assert found.alphabet == "a\ud800"
    assert found.digests.tolist() == [digest("a\ud800")]


def test_no_document_is_an_empty_survey():
    found = survey(documents_of([]))
    assert (found.documents, found.characters, found.alphabet) == (0, 0, "")
    assert found.sha256 == hashlib.sha256(b"").hexdigest()


def test_runs_from_before_there_was_a_survey_have_the_same_hash(tmp_path):
    names = []
    for number, text in enumerate(["小猫在山里看花。\r\n" * 60, "A small cat.\r" * 100]):
        path = tmp_path / f"{number}.txt"
        path.write_bytes(("\ufeff" + text).encode("utf-16-le"))
        names.append(str(path))
    whole = "\0".join(read_text(name).text for name in names)
    assert survey(find_sources(names, Reading()).documents).sha256 == hashlib.sha256(whole.encode()).hexdigest()


def test_memory_is_that_of_two_numbers_a_document():
    def many(count: int) -> Documents:
        return lambda: (Document(None, number, (f"document {number} " * 50,)) for number in range(count))

    peaks = []
    for count in (1000, 9000):
        tracemalloc.start()
        assert survey(many(count)).documents == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # 16 bytes as they are gathered, with room to grow, and 16 more in the arrays at the end; the texts are 900 bytes and more.
    assert peaks[1] - peaks[0] < 8000 * 48
