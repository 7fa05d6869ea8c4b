"""A library tokenizer as a value: saved, copied, marked, kept in one form, and refused in one line."""

import copy
import json
import pickle

import pytest

from clearhead.messages import UserError
from clearhead.text import MarkedTokenizer, Tokenizer, library, tokenizer_from_dict
from clearhead.text.library import LibraryTokenizer
from tests.text.library_files import (
    ALL,
    BYTE_LEVEL,
    END,
    LLAMA,
    START,
    SUFFIX,
    UNIGRAM,
    WORD_PIECE,
    WORDS,
    library_file,
)

each = pytest.mark.parametrize("tokenizer", ALL.values(), ids=ALL)


def streamed(tokenizer: Tokenizer, ids: list[int]) -> str:
    stream = tokenizer.stream()
    return "".join([*[stream.push(id) for id in ids], stream.finish()])


@each
def test_saved_and_loaded(tokenizer):
    saved = json.loads(json.dumps(tokenizer.to_dict(), sort_keys=True, ensure_ascii=False))
    assert (saved["type"], saved["format_version"]) == ("LibraryTokenizer", 2)
    loaded = tokenizer_from_dict(saved)
    assert loaded == tokenizer
    assert hash(loaded) == hash(tokenizer)
    assert loaded.to_dict() == tokenizer.to_dict()


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_copy_makes_no_special_ids_either(again):
    made = again(BYTE_LEVEL)
    assert made == BYTE_LEVEL
    assert BYTE_LEVEL.specials[END] not in made.encode(END)
    # The planted fault: what the library itself makes of a pickle forgets.
    theirs = pickle.loads(pickle.dumps(BYTE_LEVEL.tokenizer))
    assert theirs.encode(END).ids == [BYTE_LEVEL.specials[END]]


def test_marks_of_its_own():
    made = LibraryTokenizer(BYTE_LEVEL.json, begin=BYTE_LEVEL.specials[START], end=BYTE_LEVEL.specials[END])
    assert tokenizer_from_dict(json.loads(json.dumps(made.to_dict()))) == made != BYTE_LEVEL
    assert repr(made) == f"LibraryTokenizer(begin={made.begin}, end={made.end})"
    masked = LibraryTokenizer(BYTE_LEVEL.json, made.begin, made.end, mask=BYTE_LEVEL.specials[END])
    saved = json.loads(json.dumps(masked.to_dict()))
    assert (saved["format_version"], saved["mask"]) == (4, masked.mask)
    assert tokenizer_from_dict(saved) == pickle.loads(pickle.dumps(masked)) == masked != made
    assert tokenizer_from_dict({**saved, "format_version": 2, "mask": None}) == made
    with pytest.raises(UserError, match="mask is 0, which is none of its special ids"):
        LibraryTokenizer(BYTE_LEVEL.json, mask=0)
    for wrong in (0, -1, made.size):
        with pytest.raises(UserError, match=f"end is {wrong}, which is none of its special ids"):
            LibraryTokenizer(BYTE_LEVEL.json, end=wrong)


@each
def test_marked(tokenizer):
    marked = MarkedTokenizer(tokenizer, masked=True)
    text = "the cat<begin>"
    ids = [marked.begin, *marked.encode(text), marked.end, marked.mask]
    assert marked.decode(ids) == streamed(marked, ids) == tokenizer.decode(tokenizer.encode(text))
    assert marked.pieces(ids)[0] == "<begin>"
    assert marked.specials == {
        **tokenizer.specials,
        "<begin>": marked.begin,
        "<end>": marked.end,
        "<mask>": marked.mask,
    }
    assert tokenizer_from_dict(json.loads(json.dumps(marked.to_dict()))) == marked


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("", "cannot be read"),
        ("{}", "cannot be read \\(Model missing"),
        ("[1]", "cannot be read"),
        (library_file({"type": "Cat", "vocab": {}}), "cannot be read"),
        (library_file({"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]}), "Token `b` out of vocabulary"),
        (library_file({"type": "BPE", "vocab": {"a": -1}, "merges": []}), "cannot be read"),
        (library_file({"type": "BPE", "vocab": {}, "merges": []}), "no token at all"),
        (
            library_file({"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []}),
            "Two tokens of the tokenizer share one id",
        ),
        (library_file({"type": "BPE", "vocab": {"a": 2**31}, "merges": []}), "has the id 2147483648; 16,777,216 ids"),
        (library_file({"type": "Unigram", "unk_id": 7, "vocab": [["a", 0.0]]}), "cannot be read"),
    ],
)
def test_what_is_no_tokenizer_is_one_line(file, line):
    with pytest.raises(UserError, match=line) as refusal:
        LibraryTokenizer(file)
    assert "\n" not in str(refusal.value)


def test_files_are_read_once(monkeypatch):
    opened = []
    monkeypatch.setattr(library, "open_library", lambda text, size: opened.append(text) or BYTE_LEVEL._opened)
    made = LibraryTokenizer("any")
    for _ in range(3):
        made.decode(made.encode("the cat"))
        made.pieces(made.encode_array("the").tolist())
        assert made.size
        made.stream().push(1)
    assert opened == ["any"]


@pytest.mark.parametrize("file", [WORD_PIECE, UNIGRAM, LLAMA, SUFFIX, WORDS])
def test_a_file_is_kept_in_one_form(file):
    spread = json.dumps(json.loads(file), indent=3, sort_keys=True)
    assert LibraryTokenizer(spread) == LibraryTokenizer(file)
    once = LibraryTokenizer(file).json
    assert LibraryTokenizer(once).json == once
