"""Sizes for those who give none: a model that fits the text, and as many updates as fit the time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from clearhead.models.choices import Rotary
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig

CORPUS_SECONDS = 66.0
"""How long the demo's training aims to take; with evaluations and samples it stays under 90."""
CORPUS_FEWEST_STEPS = 1200
"""What the stories need, however slow or busy the machine: with fewer their grammar is not learnt (docs/log.md)."""
TEXT_SECONDS = 225.0
"""How long a training on a user's text aims to take; with evaluations it stays under 5 minutes."""
MOST_EPOCHS = 30
"""A small text is not read more often than this; it would be learnt by heart."""
FEWEST_STEPS = 200


@dataclass(frozen=True)
class Size:
    """A model's size and how many windows an update learns from."""

    layers: int
    heads: int
    width: int
    context: int
    batch: int
    dropout: float = 0.0

    def config(self) -> DecoderConfig:
        """A decoder of this size; the vocabulary is still to come. Rotary positions learn soonest (docs/log.md)."""
        return DecoderConfig(**self._fields())

    def encoder(self) -> EncoderConfig:
        """An encoder of this size."""
        return EncoderConfig(**self._fields())

    def _fields(self) -> dict[str, Any]:
        sizes = asdict(self)
        del sizes["batch"]
        return sizes | {"positions": Rotary()}


STORIES = Size(layers=4, heads=4, width=128, context=128, batch=6)
"""For the built-in corpus, of which a new window is never the same story."""
SMALL = Size(layers=4, heads=4, width=128, context=128, batch=6, dropout=0.2)
"""For texts short enough to be learnt by heart; dropout delays that."""
LARGE = Size(layers=4, heads=6, width=192, context=128, batch=8)
LARGE_FROM = 300_000
"""Characters of text from which the larger model pays."""


def pick_size(characters: int | None) -> Size:
    """The size for a text of so many characters; None is the built-in corpus."""
    if characters is None:
        return STORIES
    return LARGE if characters >= LARGE_FROM else SMALL


LEAST_VOCAB, MOST_VOCAB = 1024, 32_768
"""Between these is the vocabulary of a tokenizer that is trained."""
CHARACTERS_A_TOKEN = 256
"""How much text each id of a trained vocabulary should have to be learnt from."""


def pick_vocab(characters: int, alphabet: str) -> int:
    """How many ids a tokenizer trained on so much text gets.

    max(1024, N / 256), and two for each character beyond ASCII: its bytes are joined by about two merges.
    """
    wide = sum(character > "\x7f" for character in set(alphabet))
    return min(MOST_VOCAB, max(LEAST_VOCAB, characters // CHARACTERS_A_TOKEN) + 2 * wide)


LONGEST_WINDOW = 512
"""Tokens of a window where a model is continued whose context may be far longer than is needed or can be paid for."""

PAIRS_BATCH = 64
"""How many pairs an update learns from, unless they are long."""
MOST_WEIGHTS = 2**25
"""Attention weights that an update may keep; with what is kept beside them, that is under 1.5 GB (docs/log.md)."""
FEW_PAIRS = 10_000
"""So few are soon learnt by heart; dropout delays that."""


def pick_pairs_config(pairs: int) -> EncoderDecoderConfig:
    """The encoder-decoder for so many pairs; its vocabulary and contexts are still to come."""
    return EncoderDecoderConfig(layers=2, heads=4, width=128, dropout=0.1 if pairs < FEW_PAIRS else 0.0)


def pick_pairs_batch(config: EncoderDecoderConfig, source: int, target: int) -> int:
    """How many pairs an update learns from, if the longest source has M and the longest target T positions.

    With dropout and padding every attention keeps its weights for the backward, and each row of a batch is as long as
    the longest: H · (L_encoder · M² + L_decoder · (T² + T · M)) weights a pair.
    """
    weights = config.encoder.layers * source**2 + config.layers * (target**2 + target * source)
    return max(1, min(PAIRS_BATCH, MOST_WEIGHTS // (config.heads * weights)))


def pick_steps(
    *, tokens_per_second: float, seconds: float, tokens_per_step: float, train_tokens: int, fewest: int = FEWEST_STEPS
) -> int:
    """Updates that take about `seconds`, but no more than `MOST_EPOCHS` passes over the text.

    steps = min(seconds · tokens/s, MOST_EPOCHS · N) / (B · T), rounded down to two digits, at least `fewest`.
    """
    affordable = min(seconds * tokens_per_second, MOST_EPOCHS * train_tokens) / tokens_per_step
    digits: int = 10 ** max(0, len(str(int(affordable))) - 2)
    return max(fewest, int(affordable) // digits * digits)


def pick_lr(width: int) -> float:
    """The highest learning rate: 3e-3 up to width 128, beyond it falling with the width, 3e-3 · 128 / D."""
    return 3e-3 * min(1.0, 128 / width)
