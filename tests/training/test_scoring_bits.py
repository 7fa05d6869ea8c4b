"""Bits per byte and per character: of exactly the text that is scored."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch

from clearhead.text import CharacterTokenizer, MarkedTokenizer, Tokenizer
from clearhead.training.scoring import score
from tests.training.toy_scores import (
    BYTES,
    CHARACTERS,
    CONTEXT,
    EXACT,
    JOINED,
    TEXTS,
    TOKENIZERS,
    loaded_with,
    one_by_one,
)


def scored_bytes(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[int, int]:
    """Bytes and characters of what is scored, counted on the text itself."""
    if isinstance(tokenizer, MarkedTokenizer):
        return sum(len(text.encode()) for text in texts), sum(map(len, texts))
    if isinstance(tokenizer, CharacterTokenizer):
        return sum(len(text[1:].encode()) for text in texts), sum(len(text[1:]) for text in texts)
    skipped = [len(JOINED.tokenizer.id_to_token(tokenizer.encode(text)[0])) if text else 0 for text in texts]
    skipped = skipped if tokenizer is JOINED else [1] * len(texts)
    left = [text.encode()[count:] for text, count in zip(texts, skipped, strict=True)]
    # The last byte of a character is not followed by one that goes on with it.
    last = [sum(byte & 0xC0 != 0x80 for byte in [*data[1:], 0x20]) if data else 0 for data in left]
    return sum(map(len, left)), sum(last)


@TOKENIZERS
def test_bits_are_those_of_the_scored_text(tokenizer: Tokenizer) -> None:
    loaded = loaded_with(tokenizer)
    found = score(loaded, TEXTS)
    assert (found.bytes, found.characters) == scored_bytes(tokenizer, TEXTS)
    total = sum(one_by_one(loaded, TEXTS, CONTEXT))
    assert found.bits_per_byte == pytest.approx(total / math.log(2) / found.bytes, **EXACT)
    assert found.bits_per_character == pytest.approx(total / math.log(2) / found.characters, **EXACT)
    assert found.unknown == 0
    # With a limit that cuts nothing the ids are counted, not the text: the same.
    limited = score(loaded, TEXTS, limit=found.tokens)
    assert (limited.bytes, limited.characters) == (found.bytes, found.characters)


@pytest.mark.parametrize("limit", range(1, 12))
def test_bits_of_the_first_bytes(limit: int) -> None:
    """A limit falls into the middle of a character: its bytes so far count, the character not yet."""
    text = "a猫b😀c"
    found = score(loaded_with(BYTES), text, limit=limit)
    data = text.encode()[: min(limit, 10) + 1]
    whole = data.decode(errors="ignore")
    assert (found.bytes, found.characters) == (len(data) - 1, len(whole) - 1)


def test_guessing_has_the_bits_of_the_vocabulary() -> None:
    """A model whose logits are all equal: 8 bits a byte, whatever the text; by hand."""
    loaded = loaded_with(BYTES)
    with torch.no_grad():
        for weight in loaded.model.parameters():
            weight.zero_()
    found = score(loaded, "猫ab")
    assert (found.tokens, found.bytes, found.characters) == (4, 4, 3)
    assert found.loss == pytest.approx(math.log(256), **EXACT)
    assert found.bits_per_byte == pytest.approx(8, **EXACT)
    assert found.bits_per_character == pytest.approx(32 / 3, **EXACT)
    assert found.perplexity == pytest.approx(256, **EXACT)


def test_characters_that_are_not_known_are_counted() -> None:
    loaded = loaded_with(CHARACTERS)
    # The first one is not scored, so neither it nor its bytes count.
    found = score(loaded, ["ßa狗b", "a\ufffd"])
    assert (found.unknown, found.tokens, found.characters, found.bytes) == (2, 4, 4, 1 + 3 + 1 + 3)
    assert score(loaded, "abba").unknown == 0
    assert score(loaded_with(BYTES), "ßa狗b").unknown == 0
