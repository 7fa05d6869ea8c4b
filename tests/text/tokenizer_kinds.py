"""Tokenizers that look around in different ways, each trained on one text with everything in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from tokenizers import Regex, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Library

from clearhead.text.bpe_training import train_bpe
from clearhead.text.library import LibraryTokenizer

TEXT = (
    "It's a question that they'd asked: why, 1,234,567 times?\nBecause 3.14159 isn't 22/7!\n\n\n"
    "    Indented   text\twith tabs \n , and café naïve e\u0301t\u0301 ①②③.\r\n'twas'nt\n"
    "小猫趴在窗台上，看着外面的雨。它想：「今天2024年，天气不好。」\n吾輩は猫である。名前はまだ無い。안녕하세요 세계\n"
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nhahahahahahahahahahaha ha\n 🙂🙃 x_y_z == a->b; \u3000末"
) * 3
PIECES = [
    "it",
    "'s",
    "'ll",
    " ",
    "  ",
    "\n",
    "\n\n",
    "a",
    "aa",
    "1",
    "23",
    "456",
    ",",
    "。",
    "小猫",
    "猫",
    "e\u0301",
    "🙂",
    "\t",
    "x_y",
]
WRITTEN = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


@dataclass(frozen=True)
class Wrapped:
    """A tokenizer of the library, with what encoding asks of one."""

    library: Library

    def encode(self, text: str) -> list[int]:
        return list(self.library.encode(text, add_special_tokens=False).ids)

    def encode_array(self, text: str) -> NDArray[np.int64]:
        return np.array(self.encode(text), dtype=np.int64)

    def encode_many(self, texts: list[str]) -> list[NDArray[np.int64]]:
        found = self.library.encode_batch_fast(texts, add_special_tokens=False)
        return [np.array(each.ids, dtype=np.int64) for each in found]


def bpe(split: pre_tokenizers.PreTokenizer | None, normalizer: normalizers.Normalizer | None = None) -> Library:
    """Trained on the text above until every frequent string is a token, so that a wrong cut shows."""
    tokenizer = Library(models.BPE(unk_token="?"))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if split is not None:
        tokenizer.pre_tokenizer = split
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        max_token_length=4,
        special_tokens=["?"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT, "".join(PIECES) * 5], trainer)
    return tokenizer


def byte_level(pattern: str) -> Library:
    return bpe(
        pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(pattern), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    )


def word_piece() -> Library:
    tokenizer = Library(models.WordPiece(unk_token="?"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=["?"], show_progress=False)
    tokenizer.train_from_iterator([TEXT], trainer)
    return tokenizer


def unigram() -> Library:
    tokenizer = Library(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    trainer = trainers.UnigramTrainer(vocab_size=250, special_tokens=["?"], unk_token="?", show_progress=False)
    tokenizer.train_from_iterator([TEXT], trainer)
    return tokenizer


KINDS = {
    "gpt2": lambda: byte_level(GPT2),
    "llama3": lambda: byte_level(LLAMA3),
    "prefix space": lambda: bpe(pre_tokenizers.ByteLevel(add_prefix_space=True)),
    "metaspace always": lambda: bpe(pre_tokenizers.Metaspace(prepend_scheme="always")),
    "metaspace first": lambda: bpe(pre_tokenizers.Metaspace(prepend_scheme="first")),
    "metaspace never": lambda: bpe(pre_tokenizers.Metaspace(prepend_scheme="never")),
    "one word": lambda: bpe(None, normalizers.Replace(" ", "▁")),
    "one word, prepended": lambda: bpe(
        None, normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    ),
    "composed": lambda: bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.NFC()),
    "stripped": lambda: bpe(pre_tokenizers.Whitespace(), normalizers.Strip()),
    "sentences": lambda: bpe(pre_tokenizers.Split(Regex(r"[^.。?!]+[.。?!]*"), "isolated")),
    "word piece": word_piece,
    "unigram": unigram,
}


@cache
def library(kind: str) -> Library:
    return KINDS[kind]()


@cache
def our_own() -> LibraryTokenizer:
    return train_bpe([TEXT], vocab=500, specials=["<|end|>"])
