"""Tokenizers in files, ours and others', and what tells them apart."""

import json

import pytest

from clearhead.messages import UserError
from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer, tokenizer_from_dict
from clearhead.text.library import LibraryTokenizer
from clearhead.text.saved import fingerprint, read_tokenizer
from tests.text.library_files import BYTE_LEVEL, WORD_PIECE

TOKENIZERS = [
    *(ByteTokenizer(), CharacterTokenizer("ab"), CharacterTokenizer("ba"), BYTE_LEVEL, LibraryTokenizer(WORD_PIECE)),
    *(MarkedTokenizer(ByteTokenizer()), MarkedTokenizer(ByteTokenizer(), masked=True), MarkedTokenizer(BYTE_LEVEL)),
    LibraryTokenizer(BYTE_LEVEL.json, end=max(BYTE_LEVEL.specials.values())),
]


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_a_saved_tokenizer_is_read(tmp_path, tokenizer):
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(tokenizer.to_dict(), ensure_ascii=False), encoding="utf-8")
    assert read_tokenizer(file) == read_tokenizer(tmp_path) == read_tokenizer(str(tmp_path)) == tokenizer


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_file_of_the_library_is_read(tmp_path, encoding):
    file = tmp_path / "other.json"
    file.write_text(WORD_PIECE, encoding=encoding)
    assert read_tokenizer(file) == LibraryTokenizer(WORD_PIECE)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "There is no file .*tokenizer.json"),
        (b"", "is no JSON"),
        (b'{"type": "Byte', "is damaged or no tokenizer: it is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b"[1, 2]", "tokenizer.json holds no tokenizer"),
        (b'{"name": "cat"}', "tokenizer.json holds no tokenizer"),
        (b'{"type": "Cat", "format_version": 1}', "The saved tokenizer is damaged: type is 'Cat'"),
        (b'{"model": {"type": "BPE"}}', "The tokenizer cannot be read"),
        (b"\xff\xfe", "byte 0xFF at offset 0"),
    ],
)
def test_what_is_no_tokenizer_is_one_line(tmp_path, content, line):
    if content is not None:
        (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(UserError, match=line) as refusal:
        read_tokenizer(tmp_path)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"library": None}, "library is None"),
        ({"library": "{}"}, "library is '{}'"),
        ({"library": {}}, "cannot be read"),
        ({"begin": "1"}, "begin is '1'"),
        ({"end": True}, "end is True"),
        ({"end": 1.0}, "end is 1.0"),
        ({"end": 10**30}, "which is none of its special ids"),
        ({"format_version": 5}, "format version 5; this clearhead reads version 4"),
    ],
)
def test_a_damaged_field_is_named(changed, line):
    with pytest.raises(UserError, match=line):
        tokenizer_from_dict({**BYTE_LEVEL.to_dict(), **changed})
    within = {"type": "MarkedTokenizer", "format_version": 1, "inner": {**BYTE_LEVEL.to_dict(), **changed}}
    with pytest.raises(
        UserError, match=line if "which" in line or "version" in line or "read" in line else f"inner.{line}"
    ):
        tokenizer_from_dict(within)


def test_fingerprints_tell_tokenizers_apart():
    marks = [fingerprint(tokenizer) for tokenizer in TOKENIZERS]
    assert len(set(marks)) == len(TOKENIZERS)
    assert all(len(mark) == 64 and set(mark) <= set("0123456789abcdef") for mark in marks)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_a_fingerprint_survives_any_journey_through_json(tokenizer):
    journey = json.loads(json.dumps(tokenizer.to_dict(), sort_keys=True, indent=2))
    assert fingerprint(tokenizer_from_dict(journey)) == fingerprint(tokenizer)


def test_a_fingerprint_is_a_number_that_stays():
    # What token files written today were made with must be recognised tomorrow.
    assert fingerprint(ByteTokenizer()) == "cba27209d885efaee945b86dffe9ee327f1f4a441a8c36c59be821b294771c3d"
