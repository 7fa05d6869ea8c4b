"""A small decoder and texts to score, and the slow way to do it: a forward for each token."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from clearhead.formats.load import Loaded
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer, Tokenizer
from clearhead.text.bpe_training import train_bpe

CONTEXT = 7
# Documents of several windows, of one, of a part of one, and of almost nothing.
TEXTS = ["abba cab 猫 dad bead abbacab.", "bad cab!", "dad", "é", "", "ab"]
CHARACTERS, BYTES = CharacterTokenizer.of("".join(TEXTS)), ByteTokenizer()
# "ab", "猫" and others are one token each, and "é" is two.
JOINED = train_bpe([*TEXTS, "猫 猫"], vocab=262)
EXACT = {"rel": 1e-12, "abs": 0.0}


def loaded_with(tokenizer: Tokenizer, dtype: torch.dtype = torch.float64) -> Loaded:
    """A small decoder that has learnt nothing, with weights large enough to have opinions."""
    config = DecoderConfig(layers=2, heads=2, width=8, context=CONTEXT, vocab=tokenizer.size, dropout=0.3)
    model = build(config, seed=0).to(dtype)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3)
    return Loaded(model, tokenizer, config, Path("nowhere"))


def sequences(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """The ids that are read and scored, marks among them."""
    if isinstance(tokenizer, MarkedTokenizer):
        return [[tokenizer.begin, *tokenizer.encode(text), tokenizer.end] for text in texts]
    return [tokenizer.encode(text) for text in texts]


def one_by_one(loaded: Loaded, texts: Sequence[str], stride: int, limit: int | None = None) -> list[float]:
    """-ln p of every token, each by a forward of its own on the very ids that may be seen, and nothing else."""
    model, losses = loaded.model.eval(), []
    for ids in sequences(loaded.tokenizer, texts):
        for place in range(1, len(ids)):
            # The first of the windows, `stride` apart, whose T inputs and one more reach this far.
            begin = next(start for start in range(0, place + 1, stride) if start + CONTEXT >= place)
            with torch.no_grad():
                logits = model(torch.tensor([ids[begin:place]]))[0, -1].double()
            losses.append(-(logits - logits.exp().sum().log())[ids[place]].item())
    return losses[:limit]


TOKENIZERS = pytest.mark.parametrize(
    "tokenizer",
    [CHARACTERS, BYTES, JOINED, MarkedTokenizer(CHARACTERS), MarkedTokenizer(BYTES), MarkedTokenizer(JOINED)],
    ids=["characters", "bytes", "joined", "marked characters", "marked bytes", "marked joined"],
)
