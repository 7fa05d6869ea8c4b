"""Sizes for those who give none: a model that fits the text, and as many updates as fit the time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from clearhead.messages import say
from clearhead.models.choices import Rotary
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.cost import flops_per_token

CORPUS_SECONDS = 66.0
"""How long the demo's training aims to take; with evaluations and samples it stays under 90."""
CORPUS_FEWEST_STEPS = 1200
"""What the stories need, however slow or busy the machine: with fewer their grammar is not learnt (docs/log.md)."""
TEXT_SECONDS = 225.0
"""How long a training on a user's text aims to take; with evaluations it stays under 5 minutes."""
MOST_EPOCHS = 30
"""A small text is not read more often than this; it would be learnt by heart."""
FEWEST_STEPS = 200
LEAST_STEPS = 20
"""Where the time is given, it is kept, however little is learnt in it."""


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


MUON_FASTER = 3.0
"""How much higher a learning rate Muon wants than AdamW (docs/log.md)."""


def pick_lr(width: int, optimizer: str = "adamw") -> float:
    """The highest learning rate: 3e-3 up to width 128, beyond it falling with the width, 3e-3 · 128 / D; of Muon, thrice that."""
    return 3e-3 * min(1.0, 128 / width) * (MUON_FASTER if optimizer == "muon" else 1.0)


def _rung(layers: int, heads: int) -> Size:
    """Blocks of width 32 times their number, with 12·L·D² = 12,288·L³ numbers."""
    return Size(layers=layers, heads=heads, width=32 * layers, context=128 if layers < 8 else 256, batch=8)


RUNGS = (
    Size(layers=2, heads=2, width=48, context=128, batch=8),
    *(_rung(layers, layers) for layers in (2, 3, 4, 5, 6)),
    *(_rung(layers, layers // 2) for layers in (8, 10, 12, 16, 20, 24)),
)
"""The sizes that the dial chooses from, each two to three times the one before; heads of 24 and 32 features, then of 64."""
TOKENS_A_NUMBER = 20
"""How many tokens each number of the blocks is to see; fewer, and a smaller model is better at equal time (docs/log.md).

Source: Hoffmann et al. 2022 (arXiv:2203.15556), for models a thousand times as large; measured here."""
FOR_UPDATES = 0.85
"""Of the time given; the rest is for measuring, evaluations, samples and checkpoints."""
MEASURED = 3
"""How many sizes are measured at most."""
NEW_PASSES = 4
"""So often a text can be read nearly as well as a new one (Muennighoff et al. 2023, arXiv:2305.16264); dropout from there on."""
MOST_UPDATES = 20_000
"""A machine that would do more gets larger batches."""


class Sized(NamedTuple):
    """What one dial chose."""

    size: Size
    steps: int
    tokens_per_second: float
    """As measured for this size."""
    reason: str


def sized(minutes: float, *, tokens: int, vocab: int, speed_of: Callable[[Size], float]) -> Sized:
    """The model for so many minutes on this machine, and how many updates it gets.

    It is the largest of `RUNGS` whose blocks see 20 tokens for each of their numbers in the time given,

        min(0.85 · 60 · minutes · tokens/s, MOST_EPOCHS · tokens of the text) ≥ 20 · N,

    and the smallest if none does. At most three sizes are measured: the second smallest, then twice the one that this holds
    for, if sizes not measured compute as many FLOP/s as the nearest that was. A text that is read more than four times
    gets dropout; where there would be more than 20,000 updates, batches are doubled.

    Args:
        minutes: of the whole training, evaluations included.
        tokens: of the training text.
        vocab: V.
        speed_of: measures tokens per second of an update at this size.
    """
    seconds, speeds, place = FOR_UPDATES * 60 * minutes, dict[int, float](), 1
    work = [sum(flops_per_token(replace(size.config(), vocab=vocab)).values()) for size in RUNGS]
    for _ in range(MEASURED):
        if place in speeds:
            break
        speeds[place] = speed_of(RUNGS[place])
        place = _affordable(speeds, seconds, tokens, work)
    if place not in speeds:
        place = max((each for each in speeds if each <= place), default=min(speeds))
    size, speed = RUNGS[place], speeds[place]
    while min(seconds * speed, MOST_EPOCHS * tokens) / (size.batch * size.context) > MOST_UPDATES:
        size = replace(size, batch=2 * size.batch)
        speed = speed_of(size)
    step = size.batch * size.context
    steps = pick_steps(
        tokens_per_second=speed, seconds=seconds, tokens_per_step=step, train_tokens=tokens, fewest=LEAST_STEPS
    )
    passes = steps * step / tokens
    if passes > NEW_PASSES:
        # Dropout takes time, too.
        size = replace(size, dropout=0.2)
        speed = speed_of(size)
        steps = pick_steps(
            tokens_per_second=speed, seconds=seconds, tokens_per_step=step, train_tokens=tokens, fewest=LEAST_STEPS
        )
        passes = steps * step / tokens
    reason = say(
        "sizing.dial",
        minutes=f"{minutes:g}",
        layers=size.layers,
        width=size.width,
        numbers=f"{_numbers(size):,}",
        steps=f"{steps:,}",
        each=f"{steps * step / _numbers(size):.0f}",
        speed=f"{speed:,.0f}",
        passes=f"{passes:.1f}",
    )
    return Sized(size, steps, speed, reason)


def _affordable(speeds: Mapping[int, float], seconds: float, tokens: int, work: Sequence[int]) -> int:
    """The largest rung whose blocks see enough tokens; the speeds of rungs not measured follow from their arithmetic."""

    def seen(place: int) -> float:
        nearest = min(speeds, key=lambda known: (abs(known - place), known))
        return min(seconds * speeds[nearest] * work[nearest] / work[place], MOST_EPOCHS * tokens)

    return max(
        (place for place, size in enumerate(RUNGS) if seen(place) >= TOKENS_A_NUMBER * _numbers(size)), default=0
    )


def _numbers(size: Size) -> int:
    """Trained numbers of the blocks' matrices, 12·L·D²."""
    return 12 * size.layers * size.width**2
