"""Files of words that are damaged: one line each."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from clearhead.formats.hugging_face.words import folder_words
from clearhead.messages import UserError
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig
from tests.formats.word_texts import small_vocabulary
from tests.text.library_files import BYTE_LEVEL, UNIGRAM, WORD_PIECE

NONSENSE = random.Random(3).randbytes(10_000_000)
WHOLE: dict[str, Any] = json.loads(BYTE_LEVEL.json)
IDS, MERGES = small_vocabulary(300, "<|endoftext|>")


def write(folder: Path, files: dict[str, object]) -> None:
    for name, content in files.items():
        raw = (
            content
            if isinstance(content, bytes)
            else content.encode()
            if isinstance(content, str)
            else json.dumps(content).encode()
        )
        (folder / name).write_bytes(raw)


def refusal(
    folder: Path, files: dict[str, object], fields: dict[str, object] | None = None, config: object = None
) -> str:
    write(folder, files)
    with pytest.raises(UserError) as error:
        folder_words(folder, config or DecoderConfig(vocab=400), fields or {"model_type": "gpt2"})
    line = str(error.value)
    assert "\n" not in line
    assert len(line) < 900
    assert line.startswith(str(folder))
    return line


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json"]
)
@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "cannot be read as a JSON object"),
        (b"{", "cannot be read as a JSON object"),
        (b"[1, 2]", "cannot be read as a JSON object (JSON list)"),
        (b"[" * 100_000, "cannot be read as a JSON object"),
        (NONSENSE, "cannot be used as a part of a tokenizer ('utf-8' codec"),
        (NONSENSE.replace(b"\n", b"").decode("latin-1").encode()[:10_000_000], "cannot be"),
    ],
    ids=["empty", "cut", "list", "deep", "bytes", "text"],
)
def test_files_of_nonsense(tmp_path, name, content, line):
    found = refusal(tmp_path, {"tokenizer.json": WHOLE, name: content})
    assert line in found
    assert name in found


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"model": None}, "tokenizer.json cannot be used as a part of a tokenizer (model)"),
        ({"model": {"type": "BPE"}}, "(model)"),
        ({"model": {"type": "BPE", "vocab": 7}}, "(model)"),
        ({"model": {"type": "Cat", "vocab": {}}}, "The tokenizer cannot be read"),
        ({"model": {"type": "BPE", "vocab": {"a": 0}}}, "The tokenizer cannot be read"),
        ({"model": {"type": "BPE", "vocab": {"a": "0"}, "merges": []}}, "The tokenizer cannot be read"),
        ({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}, "The tokenizer cannot be read"),
        ({"model": {"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []}, "added_tokens": []}, "share one id"),
        ({"model": {"type": "BPE", "vocab": {"a": 2**31}, "merges": []}}, "16,777,216 ids are the most"),
        ({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "q"]]}}, "The tokenizer cannot be read"),
        ({"model": {"type": "Unigram", "vocab": [1, [], ["a"], [2, 0.0]]}}, "The tokenizer cannot be read"),
        ({"model": {"type": "BPE", "vocab": {"\ud800": 0}, "merges": []}}, "The tokenizer cannot be read"),
        ({"added_tokens": 5}, "(added_tokens)"),
        ({"added_tokens": [5]}, "(added_tokens)"),
        ({"added_tokens": [{"id": "1", "content": "a"}]}, "(added_tokens)"),
        ({"added_tokens": [{"id": 1, "content": "a", "special": "yes"}]}, "The tokenizer cannot be read"),
        ({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}}}, "The tokenizer cannot be read"),
        ({"post_processor": {"type": "TemplateProcessing"}}, "The tokenizer cannot be read"),
        ({"post_processor": [1]}, "The tokenizer cannot be read"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "The tokenizer cannot be read"),
    ],
)
def test_a_damaged_tokenizer(tmp_path, changed, line):
    assert line in refusal(tmp_path, {"tokenizer.json": {**WHOLE, **changed}})


def test_what_stands_around_a_text_is_no_token(tmp_path):
    around = {
        **{
            "type": "TemplateProcessing",
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        },
        "single": [{"SpecialToken": {"id": "<x>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {"<x>": {"id": "<x>", "ids": [4000], "tokens": ["<x>"]}},
    }
    assert "post_processor is 4000, and there are 400 tokens" in refusal(
        tmp_path, {"tokenizer.json": {**WHOLE, "post_processor": around}}
    )


def test_what_stands_around_a_text_cannot_be_put_there(tmp_path):
    single = [{"SpecialToken": {"id": "<x>", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}]
    around = {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": {}}
    assert "The tokenizer cannot be read" in refusal(tmp_path, {"tokenizer.json": {**WHOLE, "post_processor": around}})
    around["special_tokens"] = {"<x>": {"id": "<x>", "ids": [4], "tokens": ["<x>"]}}
    assert "The tokenizer cannot be read" in refusal(tmp_path, {"tokenizer.json": {**WHOLE, "post_processor": around}})


def test_another_model_s_tokenizer(tmp_path):
    line = refusal(tmp_path, {"tokenizer.json": WHOLE}, config=DecoderConfig(vocab=100))
    assert "The tokenizer has 321 tokens and the model 100 ids" in line


@pytest.mark.parametrize(
    ("declared", "line"),
    [
        ({"bos_token": 5}, "tokenizer_config.json cannot be used as a part of a tokenizer (bos_token: 5)"),
        ({"eos_token": {"content": 5}}, "(eos_token: {'content': 5})"),
        ({"eos_token": ["a"]}, "(eos_token: ['a'])"),
        ({"additional_special_tokens": "a"}, "(additional_special_tokens: 'a')"),
        ({"extra_special_tokens": [5]}, "(extra_special_tokens: 5)"),
        ({"chat_template": 5}, "(chat_template: 5)"),
        ({"chat_template": [{"name": "default", "template": 5}]}, "(chat_template: 5)"),
        (
            {"chat_template": [{"name": ["default"], "template": 5}, {"name": "default", "template": [5]}]},
            "(chat_template: [5])",
        ),
        ({"chat_template": {"default": ["a"]}}, "(chat_template: ['a'])"),
    ],
)
def test_damaged_declarations(tmp_path, declared, line):
    assert line in refusal(tmp_path, {"tokenizer.json": WHOLE, "tokenizer_config.json": declared})


@pytest.mark.parametrize("files", [{"tokenizer.json": WHOLE}, {}])
@pytest.mark.parametrize("wrong", ["1", True, [1, None], 1.5, {"a": 1}])
def test_damaged_ids(tmp_path, files, wrong):
    line = refusal(tmp_path, files, {"model_type": "llama", "eos_token_id": wrong})
    assert "config.json cannot be used as a part of a tokenizer (eos_token_id: " in line


OLDER: dict[str, object] = {"vocab.json": IDS, "merges.txt": "#version: 0.2\n" + "\n".join(map(" ".join, MERGES))}


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"vocab.json": {"a": "0"}}, "vocab.json cannot be used as a part of a tokenizer ('a': '0')"),
        ({"vocab.json": {"a": -1}}, "('a': -1)"),
        ({"vocab.json": {"a": True}}, "('a': True)"),
        ({"vocab.json": [1]}, "vocab.json cannot be read as a JSON object"),
        ({"vocab.json": {"a": 10**30}}, "The tokenizer cannot be read"),
        ({"vocab.json": {}}, "out of vocabulary"),
        ({"merges.txt": "a b c\n"}, "'a b c' is no merge"),
        ({"merges.txt": "qq zz\n"}, "Token `qq` out of vocabulary"),
        ({"merges.txt": NONSENSE}, "merges.txt cannot be used as a part of a tokenizer"),
        ({"merges.txt": NONSENSE.decode("latin-1")}, "is no merge"),
        ({"added_tokens.json": {"<a>": "1"}}, "added_tokens.json cannot be used"),
        ({"tokenizer_config.json": {"added_tokens_decoder": [1]}}, "(added_tokens_decoder)"),
        ({"tokenizer_config.json": {"added_tokens_decoder": {"x": {}}}}, "(added_tokens_decoder 'x')"),
        ({"tokenizer_config.json": {"added_tokens_decoder": {"7": {"content": ""}}}}, "(added_tokens_decoder 7)"),
        ({"tokenizer_config.json": {"add_bos_token": "yes"}}, "(add_bos_token: 'yes')"),
    ],
)
def test_damaged_older_files(tmp_path, changed, line):
    assert line in refusal(tmp_path, {**OLDER, **changed})


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"tokenizer_config.json": {"do_lower_case": "yes"}}, "(do_lower_case: 'yes')"),
        ({"tokenizer_config.json": {"strip_accents": 1}}, "(strip_accents: 1)"),
        ({"vocab.txt": NONSENSE}, "vocab.txt cannot be used as a part of a tokenizer"),
        ({"vocab.txt": "a\n" * 500 + "b\n"}, "The tokenizer has 501 tokens and the model 400 ids"),
    ],
)
def test_damaged_words_of_bert(tmp_path, changed, line):
    files = {"vocab.txt": "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n", **changed}
    assert line in refusal(tmp_path, files, {"model_type": "bert"}, EncoderConfig(vocab=400))


def test_a_folder_in_a_file_s_place(tmp_path):
    (tmp_path / "tokenizer.json").mkdir()
    assert "tokenizer.json is not there, or is no file" in refusal(tmp_path, {})


@pytest.mark.parametrize("whole", [WHOLE, json.loads(UNIGRAM), json.loads(WORD_PIECE)], ids=["bpe", "unigram", "words"])
def test_random_damage_is_one_line_or_none(tmp_path, whole):
    """Whatever is written into a tokenizer.json, there is a tokenizer that encodes, or one line."""
    for seed in range(60):
        draw = random.Random(seed)
        data = json.loads(json.dumps(whole))
        for _ in range(draw.randrange(1, 4)):
            damage(draw, data)
        said = ""
        write(tmp_path, {"tokenizer.json": data})
        try:
            made = folder_words(
                tmp_path, DecoderConfig(vocab=400), {"model_type": "llama", "eos_token_id": 3}
            ).tokenizer
            made.decode(made.encode("the cat 小猫 <s> [CLS]"))
        except UserError as error:
            said = str(error)
        assert "\n" not in said


def damage(draw: random.Random, data: Any) -> None:
    """Something in it is another thing, gone, or twice there."""
    while isinstance(data, dict | list) and data:
        key = draw.choice([*data]) if isinstance(data, dict) else draw.randrange(len(data))
        if not isinstance(data[key], dict | list) or not data[key] or draw.random() < 0.2:
            break
        data = data[key]
    else:
        return
    match draw.randrange(4):
        case 0:
            data[key] = draw.choice([None, -1, 0, 5, 2**40, 0.5, "", "x", True, [], [[]], {}, "\ud800"])
        case 1:
            del data[key]
        case 2 if isinstance(data, list):
            data.insert(key, data[draw.randrange(len(data))])
        case _:
            data[key] = data[draw.choice([*data])] if isinstance(data, dict) else data[draw.randrange(len(data))]
