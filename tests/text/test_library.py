"""Any `tokenizer.json`: no special id from a text, no text an error, streams that say what `decode` says."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.text import ByteTokenizer, Tokenizer, library
from clearhead.text.library import LibraryTokenizer
from clearhead.text.library_json import HIDDEN
from tests.text.library_files import (
    ALL,
    BYTE_LEVEL,
    END,
    METASPACE,
    OTHERS,
    added,
    library_file,
    numbered,
)

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
# What is spelt in any of them, and what stands around it.
FRAGMENTS = ["<|end|>", "<s>", "</s>", "<unk>", "[CLS]", "[MASK]", "<|x|>", "<eos>", HIDDEN, f"{HIDDEN}1", f"{HIDDEN}?"]
SPELLINGS = st.lists(st.sampled_from([*FRAGMENTS, " ", "▁", "the", "cat", "小", "\ud800", "plain", "1"])).map("".join)
few = settings(max_examples=40)
each = pytest.mark.parametrize("tokenizer", ALL.values(), ids=ALL)


def streamed(tokenizer: Tokenizer, ids: list[int]) -> str:
    stream = tokenizer.stream()
    return "".join([*[stream.push(id) for id in ids], stream.finish()])


def by_the_library(tokenizer: LibraryTokenizer, ids: list[int]) -> str:
    kept = [id for id in ids if id not in tokenizer.specials.values()]
    return tokenizer.tokenizer.decode(kept, skip_special_tokens=False)


def test_byte_level_by_hand():
    ids = BYTE_LEVEL.encode("the cats, 小猫 12345é")
    assert BYTE_LEVEL.decode(ids) == "the cats, 小猫 12345é"
    assert BYTE_LEVEL.pieces(ids) == [
        *["the", " cats", ",", " ", "小猫", " ", "123", "45", "<0xC3>", "<0xA9>"]
    ]  # fmt: skip
    assert BYTE_LEVEL.pieces([BYTE_LEVEL.specials[END]]) == [END]


def test_word_piece_by_hand():
    word = OTHERS["WordPiece"]
    assert word.encode("the cats sat . don't plain") == [3, 4, 5, 6, 10, 0, 16]
    # The library's decoder takes the space before a sign away.
    assert word.decode([3, 4, 5, 6, 10]) == "the cats sat."
    assert word.pieces([3, 4, 5, 1, 16]) == [" the", " cat", "s", "[CLS]", " plain"]


def test_a_space_is_taken_away_at_the_beginning_alone():
    llama = OTHERS["Llama"]
    ids = llama.encode("cat cat")
    assert llama.pieces(ids) == [" cat", " cat"]
    assert llama.decode(ids) == "cat cat"
    assert [llama.decode([id]) for id in ids] == ["cat", "cat"]
    stream = llama.stream()
    assert [stream.push(id) for id in ids] == ["cat", " cat"]
    assert (stream.finish(), stream.push(ids[0])) == ("", "cat")


def test_a_byte_token_is_a_byte():
    llama = OTHERS["Llama"]
    ids = llama.encode("小 猫!")
    assert llama.pieces(ids) == [" ", "小", " ", "<0xE7>", "<0x8C>", "<0xAB>", "!"]
    stream = llama.stream()
    assert [stream.push(id) for id in ids] == ["", "小", " ", "", "", "猫", "!"]
    # Half a character, and what the library gives up because of it.
    torn = [*ids[3:6], ids[3], *llama.encode("猫")[1:]]
    assert llama.decode(torn) == "猫\ufffd猫" == streamed(llama, torn)
    assert by_the_library(llama, torn) == "\ufffd" * 7


@each
@few
@given(text=ANY_TEXT | SPELLINGS)
def test_no_text_makes_a_special_id_or_an_error(tokenizer, text):
    ids = tokenizer.encode(text)
    assert not set(ids) & set(tokenizer.specials.values())
    assert all(0 <= id < tokenizer.size for id in ids)
    array = tokenizer.encode_array(text)
    assert (array.dtype, array.tolist()) == (np.int64, ids)
    assert [row.tolist() for row in tokenizer.encode_many([text, "cat", text])] == [ids, tokenizer.encode("cat"), ids]


def test_a_library_left_to_itself_makes_them():
    """The planted fault: without what is changed, the same texts make special ids or errors."""
    for name, text in (("WordPiece", "the [CLS]"), ("Unigram", "the <s>"), ("words", "<eos>")):
        # Its own setting keeps it from finding spellings first, not from finding them in the model's vocabulary.
        assert ALL[name].tokenizer.encode_special_tokens
        made = ALL[name].tokenizer.encode(text, add_special_tokens=False).ids
        assert set(made) & set(ALL[name].specials.values())
    with pytest.raises(Exception, match="Missing"):
        ALL["words"].tokenizer.encode("dog")
    assert ALL["words"].encode("dog cat dog") == [0]


@pytest.mark.parametrize("ignores", [False, True])
def test_a_whole_word_of_the_vocabulary_that_is_special(ignores):
    """A byte-level model looks whole words up if it ignores merges; a merge may lead to one, too."""
    letters = sorted(json.loads(BYTE_LEVEL.json)["model"]["vocab"], key=len)[:256]
    model = {"type": "BPE", "vocab": numbered(*letters, "ab", "abc"), "ignore_merges": ignores}
    model["merges"] = [["a", "b"], ["ab", "c"]]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    file = library_file(model, [added(257, "abc")], pre_tokenizer=level, decoder=level)
    made = LibraryTokenizer(file)
    assert made.pieces(made.encode("abc abcd")) == ["ab", "c", " ", "ab", "c", "d"]
    assert made.decode([*made.encode("abc"), 257]) == "abc"
    # The same without a mark: the word is one id.
    assert LibraryTokenizer(library_file(model, pre_tokenizer=level, decoder=level)).encode("abc") == [257]


@few
@given(ANY_TEXT | SPELLINGS)
def test_byte_level_gives_every_text_back(text):
    assert BYTE_LEVEL.decode(BYTE_LEVEL.encode(text)) == "".join(
        "\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text
    )


@each
@few
@given(text=ANY_TEXT | SPELLINGS)
def test_what_a_text_becomes_is_decoded_as_the_library_does_it(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == by_the_library(tokenizer, ids)


@each
@few
@given(data=st.data())
def test_a_stream_joined_is_the_decoded_text(tokenizer, data):
    often = [*tokenizer.specials.values(), *tokenizer.encode("the cat 猫 小")]
    ids = data.draw(st.lists(st.sampled_from(often) | st.integers(0, tokenizer.size - 1)))
    assert streamed(tokenizer, ids) == tokenizer.decode(ids)
    kept = [id for id in ids if id not in tokenizer.specials.values()]
    assert tokenizer.decode(kept) == tokenizer.decode(ids)
    shown = tokenizer.pieces(ids)
    assert len(shown) == len(ids)
    assert not any(letter in piece for piece in shown for letter in "Ġ▁Ċ")


@few
@given(st.lists(st.integers(0, BYTE_LEVEL.size - 1)))
def test_broken_bytes_are_decoded_as_the_library_does_it(ids):
    assert BYTE_LEVEL.decode(ids) == by_the_library(BYTE_LEVEL, ids)


def test_a_stream_of_pieces_alone_would_be_wrong():
    """The planted fault: pieces joined are not the text, nor are ids decoded one by one."""
    ids = OTHERS["Llama"].encode("cat cat 猫")
    text = OTHERS["Llama"].decode(ids)
    assert "".join(OTHERS["Llama"].decode([id]) for id in ids) != text == "cat cat 猫"
    assert "".join(OTHERS["Llama"].pieces(ids)) != text


def test_a_stream_gives_whole_characters_out_at_once():
    stream = BYTE_LEVEL.stream()
    given_out = [stream.push(id) for id in BYTE_LEVEL.encode("a💬b")]
    assert given_out == ["a", "", "", "", "💬", "b"]


def test_the_suffix_of_a_word_is_a_space_before_the_next():
    suffix = OTHERS["suffix"]
    ids = suffix.encode("cat cats")
    assert suffix.decode(ids) == "cat cats" == streamed(suffix, ids)
    assert suffix.pieces(ids) == [" cat", "ca", "t", " s"]


def test_a_vocabulary_with_holes():
    words = OTHERS["words"]
    assert words.size == 6
    assert words.decode([0, 1, 2, 5, 3, 4]) == "cat sat mat" == streamed(words, [0, 1, 2, 5, 3, 4])
    assert words.pieces([0, 1, 5, 4]) == [" cat", "<1>", "<eos>", "<4>"]
    for wrong in (-1, 6, 10**30):
        for use in (words.decode, words.pieces, lambda ids: words.stream().push(ids[0])):
            with pytest.raises(UserError, match=rf"Token id {wrong} is outside the vocabulary of 6"):
                use([wrong])


def test_what_the_file_records_is_switched_off():
    file = json.loads(BYTE_LEVEL.json)
    long = "the cat sat " * 50
    file["truncation"] = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    file["padding"] = {
        **{"strategy": {"Fixed": 999}, "direction": "Right", "pad_to_multiple_of": None},
        **{"pad_id": 0, "pad_type_id": 0, "pad_token": "!"},
    }
    file["model"]["dropout"] = 0.9
    file["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": END, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {END: {"id": END, "ids": [BYTE_LEVEL.specials[END]], "tokens": [END]}},
    }
    restless = LibraryTokenizer(json.dumps(file))
    assert restless.encode(long) == BYTE_LEVEL.encode(long)
    kept = json.loads(restless.json)
    assert (kept["truncation"], kept["padding"], kept["model"]["dropout"]) == (None, None, None)


def test_added_tokens_that_are_not_special_still_match():
    file = json.loads(BYTE_LEVEL.json)
    file["added_tokens"].append(added(BYTE_LEVEL.size, "<tool>", special=False))
    made = LibraryTokenizer(json.dumps(file))
    ids = made.encode(f"a<tool>{END}")
    assert ids[:2] == [*made.encode("a"), BYTE_LEVEL.size]
    assert made.specials == BYTE_LEVEL.specials
    assert made.decode(ids) == f"a<tool>{END}"


def test_the_unknown_token_is_text_where_texts_make_it():
    assert "[UNK]" not in OTHERS["WordPiece"].specials
    assert OTHERS["WordPiece"].decode(OTHERS["WordPiece"].encode("the dog")) == "the [UNK]"
    # With a token for every byte none is unknown.
    assert "<unk>" in OTHERS["Llama"].specials


def test_a_unigram_without_an_unknown_token():
    model = {
        "type": "Unigram",
        "unk_id": None,
        "byte_fallback": False,
        "vocab": [["<s>", 0.0], ["▁a", -1.5], ["b", -2]],
    }
    file = library_file(
        model, [added(0, "<s>"), added(3, "xx", special=False)], pre_tokenizer=METASPACE, decoder=METASPACE
    )
    made = LibraryTokenizer(file)
    assert made.encode("ab?xx<s>b") == [1, 2, 3, 2]
    assert (made.size, made.decode([1, 2, 0, 3])) == (4, "abxx")


def test_many_texts_are_given_to_the_library_in_batches(monkeypatch):
    monkeypatch.setattr(library, "AT_A_TIME", 10)
    texts = ["the cat", "", "sat on the mat", "小猫", "", "the"]
    assert [list(batch) for batch in library._batches(texts)] == [texts[:3], texts[3:]]
    assert list(library._batches([])) == []
    assert [row.tolist() for row in BYTE_LEVEL.encode_many(texts)] == [BYTE_LEVEL.encode(text) for text in texts]
    assert BYTE_LEVEL.encode_many([]) == []


def test_the_alphabet_of_bytes_is_the_library_s():
    id_of = {piece: id for id, piece in enumerate(BYTE_LEVEL.pieces(range(256)))}
    for byte, piece in enumerate(ByteTokenizer().pieces(range(256))):
        id = id_of[piece]
        assert BYTE_LEVEL.decode([id]) == by_the_library(BYTE_LEVEL, [id]) == bytes([byte]).decode(errors="replace")
