"""Changes of how a model knows the order of its tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.diff.choice_words import called
from clearhead.checking.diff.variation import Change, Variation, changed, looks_in, set_looks, stacks
from clearhead.layers.look import RotaryTurn, Turn
from clearhead.layers.positions import LearnedPositions, SinusoidalPositions
from clearhead.messages import say
from clearhead.models import choices
from clearhead.models.config import DecoderConfig, StackConfig
from clearhead.ops.masks import Positions
from clearhead.ops.rotary import Rotate
from clearhead.ops.tap import NO_TAP, Tap

BASES = (10_000.0, 500_000.0, 1_000_000.0, 100_000.0, 1_000.0, 5_000_000.0, 160_000.0, 8_000_000.0, 10_000_000.0, 100.0)
"""What is usual for rotary's base, the commonest first."""

FRACTIONS = (1.0, 0.5, 0.25, 0.75, 0.4, 0.2)
"""Which parts of a head are usually turned."""

SCALINGS = (
    choices.Unscaled(),
    choices.Llama3(),
    choices.Llama3(factor=32.0),
    *(choices.Linear(factor) for factor in (2.0, 4.0, 8.0)),
)


def of_positions(config: StackConfig, length: int | None) -> Iterator[Variation]:
    """Changes of positions; `length` tokens are read, any number if None."""
    turning = dict.fromkeys(each for each in _every(config) if isinstance(each, choices.Rotary))
    for rotary in turning:
        yield from _of_rotary(config, rotary)
    positions = config.positions
    if isinstance(positions, choices.Sinusoidal):
        yield from _of_sinusoids(config, positions)
    yield from _of_kinds(config)
    if isinstance(positions, choices.Learned | choices.Sinusoidal):
        once = say("variations.added", value=say("variations.word.once"))
        yield Variation(
            "position.twice", config, once, say("variations.added", value=say("variations.word.twice")), twice
        )
        again = say("variations.added", value=say("variations.word.each_block"))
        yield Variation("position.every-block", config, once, again, before_each(first=False))
        yield Variation("position.every-block", config, once, again, before_each(first=True))
    if turning or isinstance(positions, choices.Learned | choices.Sinusoidal):
        yield from _of_offsets(config, length, bool(turning))


def _every(config: StackConfig) -> list[choices.Positions]:
    """The positions of the model and those of its sights."""
    return [config.positions, *(config.positions_of(sight) for sight in config.sights)]


def _with(config: StackConfig, before: choices.Positions, after: choices.Positions) -> dict[str, Any]:
    """The fields with `after` wherever `before` is."""
    fields: dict[str, Any] = {"positions": after} if config.positions == before else {}
    if isinstance(config, DecoderConfig) and config.cycle:
        fields["cycle"] = tuple(replace(s, positions=after) if s.positions == before else s for s in config.cycle)
    return fields


def _of_rotary(config: StackConfig, rotary: choices.Rotary) -> Iterator[Variation]:
    pairs = say("variations.word.pairs")
    halves = say("variations.word.halves")
    other = replace(rotary, interleaved=not rotary.interleaved)
    texts = tuple(say("variations.pairing", value=pairs if each.interleaved else halves) for each in (rotary, other))
    yield from changed(config, "rotary.pairing", (texts[0], texts[1]), _with(config, rotary, other))
    for base in BASES:
        both = (say("variations.base", value=f"{rotary.theta:g}"), say("variations.base", value=f"{base:g}"))
        yield from changed(config, "rotary.base", both, _with(config, rotary, replace(rotary, theta=base)))
    for fraction in FRACTIONS:
        both = (
            say("variations.partial", value=f"{rotary.fraction:g}"),
            say("variations.partial", value=f"{fraction:g}"),
        )
        yield from changed(config, "rotary.partial", both, _with(config, rotary, replace(rotary, fraction=fraction)))
    for scaling in SCALINGS:
        both = (_scaling(rotary.scaling), _scaling(scaling))
        yield from changed(config, "rotary.scaling", both, _with(config, rotary, replace(rotary, scaling=scaling)))
    both = (
        say("variations.direction", value=say("variations.word.forth")),
        say("variations.direction", value=say("variations.word.back")),
    )
    yield Variation("rotary.direction", config, *both, turning_back)


def _scaling(scaling: choices.Scaling) -> str:
    none = isinstance(scaling, choices.Unscaled)
    return say("variations.scaling", value=say("variations.word.identity") if none else repr(scaling))


def _of_sinusoids(config: StackConfig, sinusoids: choices.Sinusoidal) -> Iterator[Variation]:
    for other in (replace(sinusoids, halves=not sinusoids.halves), *(replace(sinusoids, base=b) for b in BASES[:4])):
        texts = (_sinusoid(sinusoids), _sinusoid(other))
        yield from changed(config, "sinusoid.frequency", texts, {"positions": other})


def _sinusoid(sinusoids: choices.Sinusoidal) -> str:
    return say("variations.sinusoid", value=repr(sinusoids))


def _of_kinds(config: StackConfig) -> Iterator[Variation]:
    """None at all, and those that have no weights."""
    before = called(config.positions)
    for other in (
        choices.NoPositions(),
        choices.Sinusoidal(),
        choices.Sinusoidal(halves=True),
        choices.Rotary(),
        choices.Rotary(interleaved=True),
        choices.ALiBi(),
    ):
        if type(other) is type(config.positions):
            continue
        id = "position.missing" if isinstance(other, choices.NoPositions) else "position.kind"
        texts = (
            say("variations.positions", value=before),
            say("variations.positions", value=_detailed(other)),
        )
        fields = {"positions": other}
        if isinstance(config, DecoderConfig) and any(sight.positions is not None for sight in config.cycle):
            continue
        yield from changed(config, id, texts, fields)


def _detailed(positions: choices.Positions) -> str:
    """Positions in words; of those that come in two forms, which."""
    if isinstance(positions, choices.Rotary):
        pairs = say("variations.word.pairs") if positions.interleaved else say("variations.word.halves")
        return f"{called(positions)}, {pairs}"
    if isinstance(positions, choices.Sinusoidal):
        return f"{called(positions)}, {'sin | cos' if positions.halves else 'sin, cos, sin, cos'}"
    return called(positions)


def _of_offsets(config: StackConfig, length: int | None, turning: bool) -> Iterator[Variation]:
    learned = isinstance(config.positions, choices.Learned)
    for by in (1, 2) if learned else (1, -1):
        if learned and (length or 1) + by > config.context:
            continue
        texts = (say("variations.first", value=0), say("variations.first", value=by))
        yield Variation("rotary.offset" if turning else "position.offset", config, *texts, shifted(by))


class TwicePositions(nn.Module):
    """Positions added twice.

    Args:
        positions: what adds them once.
    """

    def __init__(self, positions: nn.Module) -> None:
        super().__init__()
        self.positions = positions

    def forward(self, x: Tensor, positions: Positions, *, tap: Tap = NO_TAP) -> Tensor:
        """(B,T,D) -> (B,T,D)."""
        made: Tensor = self.positions(self.positions(x, positions, tap=tap), positions)
        return made


class ShiftedPositions(nn.Module):
    """Positions that do not begin at 0.

    Args:
        positions: what adds them.
        by: the position of the first token.
    """

    def __init__(self, positions: nn.Module, by: int) -> None:
        super().__init__()
        self.positions, self.by = positions, by

    def forward(self, x: Tensor, positions: Positions, *, tap: Tap = NO_TAP) -> Tensor:
        """(B,T,D) -> (B,T,D)."""
        made: Tensor = self.positions(x, _moved(positions, self.by), tap=tap)
        return made


@dataclass(frozen=True)
class ShiftedTurn:
    """A turn of positions that do not begin at 0.

    Args:
        turn: of positions.
        by: the position of the first token.
    """

    turn: Turn
    by: int

    def __call__(self, positions: Positions, dtype: torch.dtype, device: torch.device) -> Rotate:
        """The turn of the moved positions."""
        return self.turn(_moved(positions, self.by), dtype, device)


def _moved(positions: Positions, by: int) -> Positions:
    if isinstance(positions, range):
        # A table has no row below its first; sines and angles have.
        return range(positions.start + by, positions.stop + by)
    return positions + by


def twice(model: nn.Module) -> None:
    """Add positions twice."""
    for stack in stacks(model):
        stack.positions = TwicePositions(_module(stack, "positions"))


def before_each(*, first: bool) -> Change:
    """Add positions again before each block, the first one only if that is said."""

    def change(model: nn.Module) -> None:
        for stack in stacks(model):
            blocks, positions = _module(stack, "blocks"), _module(stack, "positions")
            for block in list(blocks.children())[0 if first else 1 :]:
                block.register_forward_pre_hook(_adding(positions))

    return change


def _adding(positions: nn.Module) -> Any:
    def add(_: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        x, *others = arguments
        return positions(x, range(x.shape[1])), *others

    return add


def shifted(by: int) -> Change:
    """Let positions begin at `by`, those that are added and those that turn."""

    def change(model: nn.Module) -> None:
        for stack in stacks(model):
            positions = _module(stack, "positions")
            if isinstance(positions, LearnedPositions | SinusoidalPositions):
                stack.positions = ShiftedPositions(positions, by)
            turn_otherwise(stack, lambda turn: ShiftedTurn(turn, by))

    return change


def turning_back(model: nn.Module) -> None:
    """Turn by the negative angle."""
    for stack in stacks(model):
        turn_otherwise(stack, lambda turn: replace(turn, scaled=_Negated(turn.scaled)))


@dataclass(frozen=True)
class _Negated:
    """Frequencies below zero."""

    scaled: Callable[[Tensor], Tensor]

    def __call__(self, frequencies: Tensor) -> Tensor:
        return -self.scaled(frequencies)


def turn_otherwise(stack: nn.Module, other: Callable[[RotaryTurn], Turn]) -> None:
    """Give the looks of a stack that turn another turn, made of their own."""
    looks = looks_in(stack)
    set_looks(stack, [replace(x, turn=other(x.turn)) if isinstance(x.turn, RotaryTurn) else x for x in looks])


def _module(stack: nn.Module, name: str) -> nn.Module:
    return stack.get_submodule(name)
