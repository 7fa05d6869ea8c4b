"""Small `tokenizer.json` files of many kinds, made by hand."""

from __future__ import annotations

import json
from typing import Any

from clearhead.text.bpe_training import train_bpe
from clearhead.text.library import LibraryTokenizer

ENGLISH = "The cat sat on the mat. The cats sat, and the cat's hat was on the mat: 12345 mats! "
CHINESE = "小猫趴在窗台上，小猫看着月亮。\n"
END, START = "<|end|>", "<|im_start|>"


def library_file(model: dict[str, Any], added: list[dict[str, Any]] | None = None, **rest: Any) -> str:
    """A whole file around a model."""
    parts = dict.fromkeys(("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"))
    return json.dumps({"version": "1.0", **parts, "added_tokens": added or [], "model": model, **rest})


def added(id: int, content: str, *, special: bool = True) -> dict[str, Any]:
    """One added token."""
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": id, "content": content, "special": special, **flags}


def numbered(*tokens: str) -> dict[str, int]:
    return {token: id for id, token in enumerate(tokens)}


BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
# As those of Llama: white space becomes ▁, and one of them is taken away at the beginning of a text.
LLAMA_DECODER = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ],
}
SPLIT_AT_SPACE = {"type": "WhitespaceSplit"}

WORD_PIECE = library_file(
    {
        "type": "WordPiece",
        "vocab": numbered(
            "[UNK]", "[CLS]", "[MASK]", "the", "cat", "##s", "sat", "c", "##a", "##t", ".", "don", "'", "t", "小", "猫"
        ),
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 20,
    },
    [added(0, "[UNK]"), added(1, "[CLS]"), added(2, "[MASK]"), added(16, "plain", special=False)],
    pre_tokenizer=SPLIT_AT_SPACE,
    decoder={"type": "WordPiece", "prefix": "##", "cleanup": True},
)
UNIGRAM = library_file(
    {
        "type": "Unigram",
        "unk_id": 0,
        "byte_fallback": True,
        "vocab": [
            *(["<unk>", 0.0], ["<s>", 0.0], ["</s>", 0.0], ["▁", -2.0], ["▁the", -3.5], ["▁cat", -4.25], ["s", -5.0]),
            *(["小", -6.0], ["a", -7.5], ["t", -7.75]),
            *([token, -12.0] for token in BYTE_TOKENS),
        ],
    },
    [added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")],
    pre_tokenizer=METASPACE,
    decoder={"type": "Sequence", "decoders": [{"type": "ByteFallback"}, METASPACE]},
)
LLAMA = library_file(
    {
        "type": "BPE",
        "unk_token": "<unk>",
        "byte_fallback": True,
        "fuse_unk": True,
        "ignore_merges": False,
        "vocab": numbered("<unk>", "<s>", "</s>", *BYTE_TOKENS, "▁", "c", "a", "t", "s", "小", "ca", "cat", "▁cat"),
        "merges": [["c", "a"], ["ca", "t"], ["▁", "cat"]],
    },
    [added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")],
    normalizer={
        "type": "Sequence",
        "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ],
    },
    decoder=LLAMA_DECODER,
)
# The end of a word is written, and no unknown token is there: what the model does not know is left out.
SUFFIX = library_file(
    {
        "type": "BPE",
        "end_of_word_suffix": "</w>",
        "vocab": numbered("c", "a", "t", "t</w>", "s</w>", "ca", "cat</w>", "<|x|>"),
        "merges": [["c", "a"], ["ca", "t</w>"]],
    },
    [added(7, "<|x|>")],
    pre_tokenizer=SPLIT_AT_SPACE,
    decoder={"type": "BPEDecoder", "suffix": "</w>"},
)
WORDS = library_file(
    {"type": "WordLevel", "vocab": {"cat": 0, "sat": 2, "<eos>": 5}, "unk_token": "[UNK]"},
    [added(5, "<eos>"), added(6, "mat", special=False)],
    pre_tokenizer=SPLIT_AT_SPACE,
)

BYTE_LEVEL = train_bpe([ENGLISH * 3 + CHINESE * 3], vocab=330, specials=[START, END])
OTHERS = {name: LibraryTokenizer(text) for name, text in {
    "WordPiece": WORD_PIECE, "Unigram": UNIGRAM, "Llama": LLAMA, "suffix": SUFFIX, "words": WORDS
}.items()}  # fmt: skip
ALL = {"byte-level": BYTE_LEVEL, **OTHERS}
