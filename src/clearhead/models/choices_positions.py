"""How a model may know the order of its tokens. Imports without torch."""

from __future__ import annotations

from dataclasses import dataclass

from clearhead.messages import UserError, say
from clearhead.models.checked import Choice, in_order, positive


class Scaling(Choice):
    """How rotary frequencies are stretched for contexts longer than the trained one."""


@dataclass(frozen=True)
class Unscaled(Scaling):
    """Frequencies as they are."""


class Stretched(Scaling):
    """Frequencies are divided, some or all of them."""

    factor: float

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("scaling.factor", self.factor)


@dataclass(frozen=True)
class Linear(Stretched):
    """All frequencies divided.

    Args:
        factor: how many times longer the context becomes.
    """

    factor: float


@dataclass(frozen=True)
class YaRN(Stretched):
    """Slow frequencies divided, fast ones kept, scores made a little steeper.

    Args:
        factor: how many times longer the context becomes.
        original_context: the context of the training.
        fast: turns within it above which a pair is kept.
        slow: turns within it below which a pair is divided.
    """

    factor: float
    original_context: int
    fast: float = 32.0
    slow: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("scaling.original_context", self.original_context)
        positive("scaling.slow", self.slow)
        in_order("scaling.slow", self.slow, "scaling.fast", self.fast)


@dataclass(frozen=True)
class Llama3(Stretched):
    """Llama 3.1's mixture of kept and divided frequencies.

    Args:
        factor: how many times longer the context becomes.
        low: turns within the original context below which a pair is divided.
        high: turns within it above which a pair is kept.
        original_context: the context of the training.
    """

    factor: float = 8.0
    low: float = 1.0
    high: float = 4.0
    original_context: int = 8192

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("scaling.original_context", self.original_context)
        positive("scaling.low", self.low)
        in_order("scaling.low", self.low, "scaling.high", self.high)


class Positions(Choice):
    """How the model knows the order of its tokens."""


@dataclass(frozen=True)
class NoPositions(Positions):
    """Nothing tells the order; in a decoder, the causal mask tells something of it."""


@dataclass(frozen=True)
class Learned(Positions):
    """A trained vector for each position, added to the token embedding once."""


@dataclass(frozen=True)
class Sinusoidal(Positions):
    """The original Transformer's sines and cosines, added to the token embedding once.

    Args:
        base: of the frequencies.
        halves: all sines, then all cosines, in place of interleaved columns.
    """

    base: float = 10_000.0
    halves: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("positions.base", self.base)


@dataclass(frozen=True)
class Rotary(Positions):
    """Queries and keys turned by an angle that grows with the position.

    Args:
        theta: base of the frequencies.
        fraction: which part of a head's features is turned.
        interleaved: pairs of neighbours (the paper, GPT-J) in place of halves (Llama, NeoX).
        scaling: for contexts longer than the trained one.
    """

    theta: float = 10_000.0
    fraction: float = 1.0
    interleaved: bool = False
    scaling: Scaling = Unscaled()

    def __post_init__(self) -> None:
        super().__post_init__()
        in_order("1", 1.0, "positions.theta", self.theta)
        if not 0 < self.fraction <= 1:
            raise UserError(
                say("models.out_of_range", field="positions.fraction", value=self.fraction, wanted="0 < x ≤ 1")
            )

    def turned(self, head_width: int) -> int:
        """How many features of a head are turned: the even number at or below fraction · d."""
        return int(self.fraction * head_width) // 2 * 2


@dataclass(frozen=True)
class ALiBi(Positions):
    """A bias on the scores that falls with the distance, steeper in some heads than in others."""


@dataclass(frozen=True)
class Relative(Positions):
    """T5's: a trained bias on the scores for each head and range of distances, one table for all blocks of a stack.

    Args:
        buckets: how many ranges of distances there are; an encoder has half of them for each side.
        farthest: the distance from which on all share the last range.
    """

    buckets: int = 32
    farthest: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.buckets < 4 or self.buckets % 4:
            raise UserError(
                say("models.out_of_range", field="positions.buckets", value=self.buckets, wanted="4, 8, 12 ...")
            )
        in_order("positions.buckets / 2", self.buckets // 2, "positions.farthest", self.farthest)
