"""Models of the grid with tokenizers, as `load` would give them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from clearhead.formats.load import Loaded
from clearhead.text import CharacterTokenizer
from clearhead.text.marked import MarkedTokenizer
from tests.equalities.variants import VARIANTS, model_of
from tests.equalities.variants_encoders import ENCODERS, PAIRS, encoder_of, pair_of

LETTERS = CharacterTokenizer.of("abcdefg小猫!")
"""As many ids as the grid's vocabulary, 11."""
MARKED = MarkedTokenizer(CharacterTokenizer.of("abcdef小猫"))
TEXT = "abc小猫abcab!"
TARGET = "猫ab猫c"


@cache
def decoder(variant: str = "learned") -> Loaded:
    """A decoder of the grid, in float64."""
    return Loaded(model_of(variant), LETTERS, VARIANTS[variant], Path("runs/x"))


@cache
def encoder(variant: str = "BERT") -> Loaded:
    """An encoder of the grid, with marks around a text."""
    model = encoder_of(variant)
    return Loaded(model, MARKED, ENCODERS[variant], Path("runs/x"), opening=(MARKED.begin,), closing=(MARKED.end,))


@cache
def pair(variant: str = "original") -> Loaded:
    """An encoder-decoder of the grid, with one vocabulary for both texts."""
    config = replace(PAIRS[variant], source_vocab=None)
    return Loaded(pair_of(variant, source_vocab=None), MARKED, config, Path("runs/x"))


DECODERS = ("learned", "learned, fused, MQA", "rotary, fused", "window, ALiBi", "ALiBi, MQA", "soft-cap", "sinks",
            "rotary partial, parallel", "around, QK-norm", "sinusoidal, post-norm", "untied, biases")  # fmt: skip
READERS = ("BERT", "relative, fused, MHA", "learned, blockwise, MQA", "first, dense", "sinks, blockwise")
WRITERS = ("original", "T5", "soft-cap", "sinks", "relative, fused")
ALL = [
    *(("decoder", each) for each in DECODERS),
    *(("encoder", each) for each in READERS),
    *(("pair", each) for each in WRITERS),
]


def loaded_of(kind: str, variant: str) -> Loaded:
    """The model of a kind and a variant."""
    return {"decoder": decoder, "encoder": encoder, "pair": pair}[kind](variant)


def target_of(kind: str) -> str | None:
    """What an encoder-decoder has written; None elsewhere."""
    return TARGET if kind == "pair" else None
