"""A model with more rows than its tokenizer has tokens, or with fewer."""

import copy
import json
import pickle
from base64 import b64encode

import pytest

from clearhead.messages import UserError
from clearhead.text import MarkedTokenizer, tokenizer_from_dict
from clearhead.text.library import LibraryTokenizer
from clearhead.text.saved import fingerprint
from clearhead.text.specials import encode_special, never_made
from tests.text.library_files import ALL, BYTE_LEVEL, END, METASPACE, START, added, library_file, numbered

each = pytest.mark.parametrize("tokenizer", ALL.values(), ids=ALL)
TEXT = "the cat sat 小猫 <|image|>"


@each
def test_rows_without_a_token_decode_to_nothing(tokenizer):
    size = tokenizer.size + 5
    padded = LibraryTokenizer(tokenizer.json, size=size)
    assert padded.size == size
    ids = padded.encode(TEXT)
    assert ids == tokenizer.encode(TEXT)
    among = [id for each in ids for id in (size - 1, each, size - 5)]
    assert padded.decode(among) == tokenizer.decode(ids)
    stream = padded.stream()
    assert "".join([*map(stream.push, among), stream.finish()]) == padded.decode(among)
    assert padded.pieces([size - 1]) == [f"<{size - 1}>"]
    assert {*range(size - 5, size)} <= padded.holes & never_made(padded)
    # The planted fault: without the size, such an id is an error.
    with pytest.raises(UserError, match=f"id {size - 1} is outside the vocabulary of {tokenizer.size}"):
        tokenizer.decode(among)


@each
def test_saved_and_copied_with_its_size(tokenizer):
    padded = LibraryTokenizer(tokenizer.json, size=tokenizer.size + 3)
    saved = json.loads(json.dumps(padded.to_dict()))
    assert (saved["format_version"], saved["size"]) == (3, tokenizer.size + 3)
    made = (tokenizer_from_dict(saved), copy.deepcopy(padded), pickle.loads(pickle.dumps(padded)))
    assert all(again == padded and again.size == padded.size for again in made)
    assert padded != tokenizer
    assert fingerprint(padded) != fingerprint(tokenizer)
    assert tokenizer_from_dict(json.loads(json.dumps(MarkedTokenizer(padded).to_dict()))).begin == padded.size


def test_what_was_saved_before_there_were_sizes_is_the_same():
    same = LibraryTokenizer(BYTE_LEVEL.json, size=BYTE_LEVEL.size)
    assert same == BYTE_LEVEL
    assert same.to_dict() == BYTE_LEVEL.to_dict()
    assert same.to_dict().keys() == {"type", "format_version", "begin", "end", "library"}
    assert same.to_dict()["format_version"] == 2


def with_image(*, special):
    """The byte-level one and a token more, for which the model has no row."""
    file = json.loads(BYTE_LEVEL.json)
    file["added_tokens"].append(added(BYTE_LEVEL.size, "<|image|>", special=special))
    return json.dumps(file)


@pytest.mark.parametrize("special", [True, False])
def test_an_added_token_without_a_row_is_never_made(special):
    file = with_image(special=special)
    made = LibraryTokenizer(file, size=BYTE_LEVEL.size)
    assert made == BYTE_LEVEL
    assert "<|image|>" not in made.specials
    assert made.encode(TEXT) == encode_special(made, TEXT) == BYTE_LEVEL.encode(TEXT)
    assert made.decode(made.encode(TEXT)) == TEXT
    assert tokenizer_from_dict(made.to_dict()) == made
    # The planted fault: left to itself, the file makes an id that the model has no row for.
    assert BYTE_LEVEL.size in encode_special(LibraryTokenizer(file), TEXT)


def test_an_added_token_without_a_row_that_is_an_entry_too():
    """Its entry and the merges to it go with it."""
    model = {"type": "BPE", "vocab": numbered("a", "b", "c", "ab", "abc"), "merges": [["a", "b"], ["ab", "c"]]}
    made = LibraryTokenizer(library_file(model, [added(4, "abc")]), size=4)
    assert made.encode("abcab") == [3, 2, 3]
    unigram = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["▁a", -1.0], ["b", -2.0], ["<i>", 0.0]]}
    file = library_file(unigram, [added(0, "<unk>"), added(3, "<i>")], pre_tokenizer=METASPACE, decoder=METASPACE)
    made = LibraryTokenizer(file, size=3)
    assert made.encode("ab<i>") == [1, 2, 0]
    assert (made.size, made.specials) == (3, {})


def test_a_token_without_a_row_is_refused_with_both_numbers():
    count = BYTE_LEVEL.size
    for size in (count - 3, 0, -1):
        with pytest.raises(UserError, match=f"The tokenizer has {count} tokens and the model {size} ids") as refusal:
            LibraryTokenizer(BYTE_LEVEL.json, size=size)
        assert "\n" not in str(refusal.value)
    with pytest.raises(UserError, match="16,777,216 ids are the most"):
        LibraryTokenizer(BYTE_LEVEL.json, size=10**30)


def test_a_mark_without_a_row_is_no_mark():
    gone = BYTE_LEVEL.size
    with pytest.raises(UserError, match=f"end is {gone}, which is none of its special ids"):
        LibraryTokenizer(with_image(special=True), end=gone, size=gone)


def test_specials_with_rows_stay():
    made = LibraryTokenizer(with_image(special=True), size=BYTE_LEVEL.size)
    assert made.specials == BYTE_LEVEL.specials
    assert {END, START} <= made.specials.keys()


@pytest.mark.parametrize(
    ("size", "line"), [("9", "size is '9'"), (True, "size is True"), (7, "model 7 ids"), (10**30, "are the most")]
)
def test_a_damaged_size_is_one_line(size, line):
    with pytest.raises(UserError, match=line):
        tokenizer_from_dict({**BYTE_LEVEL.to_dict(), "format_version": 3, "size": size})


def test_half_of_a_pair_in_a_file_is_one_line():
    file = library_file({"type": "WordLevel", "vocab": {"\ud800": 0}, "unk_token": "a"})
    with pytest.raises(UserError, match="The tokenizer cannot be read"):
        LibraryTokenizer(file)


def test_a_damaged_table_of_characters_is_one_line(capfd):
    """The library panics where it is read or, worse, where it is used."""
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}

    def file(table: bytes) -> str:
        return library_file(
            model, normalizer={"type": "Precompiled", "precompiled_charsmap": b64encode(table).decode()}
        )

    with pytest.raises(UserError, match="cannot be read") as refusal:
        LibraryTokenizer(file(b"abc"))
    assert "\n" not in str(refusal.value)
    made = LibraryTokenizer(file(b"\x08\0\0\0" + b"\xff" * 8 + b"abc\0"))
    for use in (made.encode, made.encode_further):
        with pytest.raises(UserError, match="cannot be read"):
            use("abc")
    # The planted fault: left to itself it is no exception that anybody catches.
    with pytest.raises(BaseException, match="out of bounds") as panic:
        made.tokenizer.encode("abc")
    assert not isinstance(panic.value, Exception)
