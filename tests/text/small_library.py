"""Small tokenizers of the library, and which characters their tokens complete, counted the slow way."""

from __future__ import annotations

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from clearhead.text import tokenizer as text_tokenizer
from clearhead.text.library import LibraryTokenizer


def byte_level(*texts: str, merges: int) -> LibraryTokenizer:
    """Byte-level BPE with so many merges."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=256 + merges, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(texts, trainer)
    return LibraryTokenizer(made.to_str())


MERGED = byte_level("the the cat 猫猫狗 ça", merges=8)


def small_letters() -> LibraryTokenizer:
    """A tokenizer of whole words that makes capitals small: texts do not come out as they went in."""
    made = Tokenizer(models.WordLevel({"cat": 0, "the": 1, "[UNK]": 2}, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return LibraryTokenizer(made.to_str())


def words_behind_spaces() -> LibraryTokenizer:
    """A tokenizer whose words bring the space before them, the first of a text aside."""
    made = Tokenizer(models.WordLevel({"▁cat": 0, "▁the": 1, "▁": 2}, unk_token="▁"))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    return LibraryTokenizer(made.to_str())


def completed_slowly(tokenizer: text_tokenizer.Tokenizer, text: str) -> list[int]:
    """How many characters each token completes, from the beginnings of the ids, decoded."""
    ids = tokenizer.encode(text)
    ends = [len(tokenizer.decode(ids[: n + 1]).removesuffix("\ufffd")) for n in range(len(ids))]
    return np.diff(ends, prepend=0).tolist()
