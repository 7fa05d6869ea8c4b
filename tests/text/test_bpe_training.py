"""Training BPE: nothing is lost, the same text gives the same tokens, and no token crosses a cut."""

import json
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.text import bpe_training
from clearhead.text.bpe_training import BYTES, train_bpe
from clearhead.text.corpus import write
from tests.text.library_files import BYTE_LEVEL, CHINESE, END, ENGLISH, START

CLAUSES = "床前明月光，疑是地上霜。\n举头望明月，低头思故乡。\n" * 4
FAMILY = "👨‍👩‍👧❤️"
SCRIPTS = f"{FAMILY} é é สวัสดี مَرحبًا 안녕하세요 こんにちは コンピューター 々〇 Ⅷ½\r\n\t\0﷐x\u3000 ﻿"


def cut(text):
    """The pieces that no token crosses."""
    found = BYTE_LEVEL.tokenizer.pre_tokenizer.pre_tokenize_str(text)
    return [text[start:end] for _, (start, end) in found]


def all_pieces(tokenizer):
    return tokenizer.pieces(range(tokenizer.size))


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello world, you see", ["Hello", " world", ",", " you", " see"]),
        ("don't you’re rock'n'roll", ["don", "'t", " you", "’re", " rock", "'n", "'", "roll"]),
        ("in 1234567 years", ["in", " ", "123", "456", "7", " years"]),
        ("兰叶春葳蕤，桂华。「秋」", ["兰叶春葳", "蕤", "，", "桂华", "。「", "秋", "」"]),
        ("猫cat猫 2月", ["猫", "cat", "猫", " ", "2", "月"]),
        ("こんにちは世界コンピューターです", ["こんにち", "は", "世界", "コンピューター", "です"]),
        ("안녕하세요 세계", ["안녕하세", "요", " 세계"]),
        ("x;\r\n\r\n  y\n\tz", ["x", ";\r\n\r\n", " ", " y", "\n", "\t", "z"]),
        ("a   b  ", ["a", "  ", " b", "  "]),
        (f"so {FAMILY}!", ["so", f" {FAMILY}!"]),
        ("naïve naïve", ["naïve", " naïve"]),
    ],
)
def test_where_texts_are_cut(text, pieces):
    assert cut(text) == pieces


@settings(max_examples=60)
@given(st.text(st.characters(exclude_categories=["Cs"])) | st.text(st.sampled_from(SCRIPTS + ENGLISH)))
@example(SCRIPTS)
@example(f"{END}{START} \r\n")
def test_there_and_back(text):
    assert BYTE_LEVEL.decode(BYTE_LEVEL.encode(text)) == text
    assert "".join(cut(text)) == text


def test_no_token_holds_a_clause(monkeypatch):
    made = train_bpe([CLAUSES], vocab=BYTES + 300)
    assert "床前明月" in all_pieces(made)
    assert max(sum("一" <= c <= "鿿" for c in piece) for piece in all_pieces(made)) == 4
    assert not any({*"，。"} & {*piece} and len(piece.strip()) > 1 for piece in all_pieces(made))
    # The planted fault: Han without an end, and the same text gives whole lines.
    monkeypatch.setattr(bpe_training, "PIECES", bpe_training.PIECES.replace(r"\p{Han}{1,4}", r"\p{Han}+"))
    assert "疑是地上霜" in all_pieces(train_bpe([CLAUSES], vocab=BYTES + 300))


def test_digits_stand_in_groups_of_three():
    made = train_bpe(["12345678 12345678 12345678 "], vocab=400)
    assert max(len(piece) for piece in all_pieces(made) if piece.isdigit()) == 3


def test_ids_are_bytes_then_merges_then_specials():
    made = train_bpe([ENGLISH * 3], vocab=280, specials=[START, END])
    assert made.size == 280
    assert made.specials == {START: 278, END: 279}
    assert {len(piece) for piece in made.pieces(range(BYTES))} <= {1, len("<0xE4>")}
    assert all(len(piece) > 1 for piece in made.pieces(range(BYTES, 278)))
    assert (made.begin, made.end) == (None, None)


def test_bytes_alone_are_a_vocabulary():
    made = train_bpe(["the the"], vocab=BYTES)
    assert (made.size, len(made.encode("the 猫"))) == (BYTES, 7)


def test_a_small_text_gives_fewer_ids():
    made = train_bpe(["the the"], vocab=5000, specials=[END])
    # Two merges repeat: th, the. " the" stands there once.
    assert made.size == BYTES + 2 + 1


def test_the_same_text_gives_the_same_tokens():
    program = (
        "from clearhead.text.bpe_training import train_bpe; from clearhead.text.corpus import write;"
        "print(ascii(train_bpe([write(20_000, seed=3)], vocab=900, specials=['<|x|>']).json))"
    )
    here = ascii(train_bpe([write(20_000, seed=3)], vocab=900, specials=["<|x|>"]).json)
    elsewhere = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert elsewhere.stdout.strip() == here
    assert here != ascii(train_bpe([write(20_000, seed=4)], vocab=900, specials=["<|x|>"]).json)


def test_parts_may_come_from_a_call_and_are_counted():
    told = []
    parts = ["the cat ", "sat on\ud800 ", "the mat"]
    made = train_bpe(lambda: iter(parts), vocab=300, progress=told.append)
    assert told == [8, 8, 7]
    assert made == train_bpe(["the cat ", "sat on\ufffd ", "the mat"], vocab=300)


def test_what_is_spelt_as_a_special_token_is_not_learnt():
    texts = ["the cat the cats ", f"{END} the{END}the " * 9]
    made = train_bpe(texts, vocab=400, specials=["the", END])
    assert made.pieces(made.encode("the")) == ["t", "h", "e"]
    assert not any("the" in piece for piece in made.pieces(range(made.size - 2)))
    # The planted fault: of the same texts without special tokens it is one.
    assert "the" in all_pieces(train_bpe(texts, vocab=400))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"parts": []}, "no text to learn tokens from"),
        ({"parts": ["", ""]}, "no text to learn tokens from"),
        ({"vocab": 1}, "A vocabulary of 1 is too small: 256 ids are needed, 256 for bytes and 0 for special"),
        ({"vocab": 257, "specials": ["<a>", "<b>"]}, "257 is too small: 258 ids are needed, 256 for bytes and 2"),
        ({"specials": [""]}, "cannot be spelt ''"),
        ({"specials": ["!"]}, "cannot be spelt '!'"),
        ({"specials": ["<a>", "<a>"]}, "cannot be spelt '<a>'"),
        ({"specials": ["<\ud800>"]}, "cannot be spelt"),
        ({"specials": ["<\ufdd0>"]}, "cannot be spelt"),
        ({"specials": ["<\ufdd1>"]}, "cannot be spelt"),
        ({"specials": ["Ġthe"]}, "cannot be spelt 'Ġthe'"),
    ],
)
def test_what_cannot_be_trained_is_one_line(arguments, line):
    with pytest.raises(UserError, match=line) as refusal:
        train_bpe(**{"parts": ["the the the the"], "vocab": 300, **arguments})
    assert "\n" not in str(refusal.value)


def test_an_error_of_the_texts_is_the_caller_s():
    def torn():
        yield "the cat"
        raise UserError("line 7 is broken")

    with pytest.raises(UserError, match="line 7 is broken"):
        train_bpe(torn, vocab=300)


def test_long_runs_are_no_trouble():
    for character in ("a", " ", "\n", "猫", "1", "!"):
        text = character * 100_000
        assert BYTE_LEVEL.decode(BYTE_LEVEL.encode(text)) == text


def test_tang_poems_are_written_in_fewer_tokens_than_characters(texts):
    poems = (texts / "tang-song.txt").read_text(encoding="utf-8")
    seen, held_out = poems[: len(poems) * 9 // 10], poems[len(poems) * 9 // 10 :]
    made = train_bpe([seen], vocab=4096)
    assert len(held_out) > 1000
    assert len(made.encode(held_out)) < 0.9 * len(held_out)
    assert made.decode(made.encode(held_out)) == held_out


def test_the_file_is_a_tokenizer_json():
    kept = json.loads(BYTE_LEVEL.json)
    assert kept["pre_tokenizer"]["pretokenizers"][0]["pattern"] == {"Regex": bpe_training.PIECES}
    assert len(kept["model"]["vocab"]) + 2 == BYTE_LEVEL.size
    assert CHINESE[:2] in all_pieces(BYTE_LEVEL)
