"""Vocabularies of GGUF files that are damaged, or of a kind that is not known: one line each."""

import random
from pathlib import Path

import pytest

from clearhead.formats.gguf.header import GgufHeader
from clearhead.formats.gguf.words import gguf_words
from clearhead.messages import UserError
from tests.formats.gguf.test_words import IDS, KINDS, MERGES, PIECES, SCORES, byte_level, header, sentence_pieces, words

NONSENSE = random.Random(3).randbytes(5_000_000).decode("latin-1")
"""Ten megabytes of it, in UTF-8."""
TOKENS = [*IDS]
V = len(TOKENS)
KEY = "tokenizer.ggml."


def refusal(found: GgufHeader, vocab: int = 1000) -> str:
    with pytest.raises(UserError) as error:
        gguf_words(found, vocab)
    line = str(error.value)
    assert "\n" not in line
    assert len(line) < 700
    assert line.startswith("words.gguf")
    return line


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (
            {"model": "bert"},
            "tokenizer.ggml.model is bert, a way of making tokens that clearhead does not know; it knows gpt2, llama",
        ),
        ({"model": 3}, "tokenizer.ggml.model is 3 and must be str"),
        ({"model": NONSENSE}, "tokenizer.ggml.model is '"),
        (
            {"pre": "falcon"},
            "tokenizer.ggml.pre is falcon, a way of making tokens that clearhead does not know; it knows default, gpt-2, smollm",
        ),
        ({"pre": NONSENSE}, "a way of making tokens"),
        ({"pre": 7}, "tokenizer.ggml.pre is 7 and must be str"),
        ({"tokens": "abc"}, "tokenizer.ggml.tokens is 'abc' and must be list"),
        ({"tokens": [1, 2]}, "tokenizer.ggml.tokens is"),
        ({"tokens": []}, f"token_type has {V} entries for 0 tokens"),
        ({"tokens": [], "token_type": []}, "eos_token_id is 1, and there are 0 tokens"),
        ({"tokens": TOKENS[:-1]}, f"token_type has {V} entries for {V - 1} tokens"),
        ({"tokens": [*TOKENS[:-1], TOKENS[5]]}, f"the tokens 5 and {V - 1} are both spelt"),
        ({"tokens": ["\ud800", *TOKENS[1:]]}, "The tokenizer cannot be read"),
        ({"token_type": [True] * len(TOKENS)}, "token_type is"),
        ({"token_type": [1.5] * len(TOKENS)}, "token_type is"),
        ({"merges": ["ab"]}, "'ab' is no merge"),
        ({"merges": ["a b c"]}, "'a b c' is no merge"),
        ({"merges": [" b"]}, "' b' is no merge"),
        ({"merges": [NONSENSE]}, "is no merge"),
        ({"merges": ["qq zz"]}, "Token `qq` out of vocabulary"),
        ({"merges": 5}, "merges is 5 and must be list"),
        ({"eos_token_id": len(TOKENS)}, f"eos_token_id is {V}, and there are {V} tokens"),
        ({"eos_token_id": -1}, "eos_token_id is -1"),
        ({"eos_token_id": "1"}, "eos_token_id is '1' and must be int"),
        ({"bos_token_id": 2**31}, "bos_token_id is 2147483648"),
        ({"bos_token_id": True}, "bos_token_id is True and must be int"),
        ({"unknown_token_id": 10**9}, "unknown_token_id is 1000000000"),
        ({"add_bos_token": 1, "bos_token_id": 0}, "add_bos_token is 1 and must be bool"),
        ({"add_eos_token": "no"}, "add_eos_token is 'no' and must be bool"),
    ],
)
def test_byte_level(changed, line):
    assert line in refusal(changed_by(byte_level("gpt-2"), changed))


def changed_by(found: GgufHeader, changed: dict) -> GgufHeader:
    return GgufHeader(found.path, {**found.fields, **{KEY + name: value for name, value in changed.items()}}, {})


def without(found: GgufHeader, key: str) -> GgufHeader:
    return GgufHeader(found.path, {name: value for name, value in found.fields.items() if name != KEY + key}, {})


def test_what_is_missing():
    assert "lacks tokenizer.ggml.merges" in refusal(without(byte_level("gpt-2"), "merges"))
    assert "lacks tokenizer.ggml.tokens" in refusal(without(byte_level("gpt-2"), "tokens"))
    assert "lacks tokenizer.ggml.scores" in refusal(without(sentence_pieces(), "scores"))


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"scores": SCORES[:-1]}, f"scores has {len(SCORES) - 1} entries for {len(SCORES)} tokens"),
        ({"scores": [*SCORES[:-1], float("nan")]}, "scores holds a number that is not finite"),
        ({"scores": [*SCORES[:-1], float("-inf")]}, "scores holds a number that is not finite"),
        ({"scores": ["1"] * len(SCORES)}, "scores is"),
        ({"tokens": [*PIECES[:-1], PIECES[300]]}, "the tokens 300 and"),
        ({"add_space_prefix": "yes"}, "add_space_prefix is 'yes' and must be bool"),
    ],
)
def test_sentence_pieces(changed, line):
    assert line in refusal(changed_by(sentence_pieces(), changed))


def test_pieces_of_nonsense():
    """A piece of ten megabytes cannot be cut everywhere: it is refused for its length."""
    assert "a token of 5,000,000 characters" in refusal(
        changed_by(sentence_pieces(), {"tokens": [*PIECES[:-1], NONSENSE]})
    )
    assert "a token of 5,000,000 characters" in refusal(
        changed_by(byte_level("gpt-2"), {"tokens": [*TOKENS[:-1], NONSENSE]})
    )


def test_a_model_that_the_vocabulary_is_not_of():
    assert f"The tokenizer has {V} tokens and the model 250 ids" in refusal(byte_level("gpt-2"), vocab=250)


def test_a_template_that_is_no_text():
    found = GgufHeader(Path("words.gguf"), {**byte_level("gpt-2").fields, "tokenizer.chat_template": ["a"]}, {})
    assert "tokenizer.chat_template is" in refusal(found)


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_is_one_line_or_none(seed):
    """Whatever the fields hold, there is a tokenizer that encodes, or one line."""
    draw = random.Random(seed)
    found = draw.choice([byte_level("llama-bpe"), byte_level("qwen2"), sentence_pieces()])
    fields = dict(found.fields)
    for _ in range(draw.randrange(1, 4)):
        key = draw.choice([*fields])
        value = fields[key]
        if isinstance(value, list):
            fields[key] = damaged_list(draw, value)
        else:
            fields[key] = draw.choice([None, -1, 0, 2**63, 0.5, "", "x", True, [], [[]], {}])
    said = ""
    try:
        made = gguf_words(GgufHeader(found.path, fields, {}), draw.choice([300, V, 1000]))
        made.tokenizer.decode(made.tokenizer.encode("the cat 小猫 <s>"))
    except UserError as error:
        said = str(error)
    assert "\n" not in said


def damaged_list(draw: random.Random, value: list) -> list:
    value = [*value]
    for _ in range(draw.randrange(1, 4) if value else 0):
        place = draw.randrange(len(value))
        match draw.randrange(5):
            case 0:
                value = value[:place]
            case 1:
                value[place] = draw.choice(["", " ", "\0", "a b", "<s>", 7, -7, 1e400, None, True])
            case 2:
                value[place] = value[draw.randrange(len(value))]
            case 3:
                value.insert(place, draw.choice(value))
            case _:
                draw.shuffle(value)
        if not value:
            return value
    return value


def test_nothing_planted():
    """What is damaged above is whole without the damage."""
    for found in (byte_level("gpt-2"), sentence_pieces()):
        assert words(found).tokenizer.encode("a")
    assert header("none").path == Path("words.gguf")
    assert len(MERGES) > 100
    assert len(KINDS) == len(PIECES)
