"""One dial: from minutes and a machine's speed to a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.models.cost import flops_per_token, parameters
from clearhead.training.sizing import (
    FOR_UPDATES,
    MOST_EPOCHS,
    MOST_UPDATES,
    RUNGS,
    TOKENS_A_NUMBER,
    Size,
    Sized,
    sized,
)

VOCAB = 65


@cache
def work(size: Size) -> int:
    """Operations of a token's forward."""
    return sum(flops_per_token(replace(size.config(), vocab=VOCAB)).values())


@cache
def numbers(size: Size) -> int:
    parts = parameters(replace(size.config(), vocab=VOCAB))
    return parts["attention"] + parts["feedforward"]


def machine(flops: float, asked: list[Size] | None = None) -> Callable[[Size], float]:
    """A machine that computes so many FLOP/s at any size."""

    def speed(size: Size) -> float:
        if asked is not None:
            asked.append(size)
        return flops / (3 * work(size))

    return speed


def seconds(found: Sized) -> float:
    """How long the updates take."""
    return found.steps * found.size.batch * found.size.context / found.tokens_per_second


def faults(found: Sized, minutes: float, tokens: int, speed: Callable[[Size], float]) -> list[str]:
    """What of the rule does not hold."""
    wrong = []
    place = next(index for index, size in enumerate(RUNGS) if size.width == found.size.width)

    def seen(size: Size) -> float:
        return min(FOR_UPDATES * 60 * minutes * speed(size), MOST_EPOCHS * tokens)

    if place and seen(RUNGS[place]) < TOKENS_A_NUMBER * numbers(RUNGS[place]):
        wrong.append("too large")
    if place + 1 < len(RUNGS) and seen(RUNGS[place + 1]) >= TOKENS_A_NUMBER * numbers(RUNGS[place + 1]):
        wrong.append("too small")
    if found.steps > 20 and seconds(found) > FOR_UPDATES * 60 * minutes:
        wrong.append("too long")
    return wrong


@given(minutes=st.floats(0.1, 600), flops=st.floats(1e9, 1e13), tokens=st.integers(1_000, 10**9))
@settings(max_examples=40)
def test_it_is_the_largest_model_that_sees_enough(minutes: float, flops: float, tokens: int) -> None:
    speed = machine(flops)
    found = sized(minutes, tokens=tokens, vocab=VOCAB, speed_of=speed)
    assert faults(found, minutes, tokens, speed) == []
    assert found.steps <= MOST_UPDATES or found.size.batch > 8
    assert (found.size.dropout > 0) == (found.steps * found.size.batch * found.size.context / tokens > 4)


def test_the_next_sizes_would_be_found_out() -> None:
    """The planted fault: the rung above, the rung below, more updates."""
    speed, tokens = machine(2e11), 10**9
    found = sized(5, tokens=tokens, vocab=VOCAB, speed_of=speed)
    place = next(index for index, size in enumerate(RUNGS) if size.width == found.size.width)
    assert 0 < place < len(RUNGS) - 1
    assert faults(found._replace(size=RUNGS[place + 1]), 5, tokens, speed) == ["too large"]
    assert faults(found._replace(size=RUNGS[place - 1]), 5, tokens, speed) == ["too small"]
    assert faults(found._replace(steps=2 * found.steps), 5, tokens, speed) == ["too long"]


@given(minutes=st.floats(0.1, 600), flops=st.floats(1e9, 1e12))
@settings(max_examples=20)
def test_more_time_never_brings_a_smaller_model_nor_fewer_tokens(minutes: float, flops: float) -> None:
    less, more = (sized(each, tokens=10**10, vocab=VOCAB, speed_of=machine(flops)) for each in (minutes, 2 * minutes))
    assert numbers(more.size) >= numbers(less.size)


def test_at_most_three_sizes_are_measured_and_none_twice() -> None:
    for flops in (1e9, 1e10, 1e11, 1e12):
        asked = list[Size]()
        sized(3, tokens=10**9, vocab=VOCAB, speed_of=machine(flops, asked))
        assert len(asked) == len(set(asked))
        assert len({size.width for size in asked}) <= 3


def test_a_small_text_is_not_given_a_large_model() -> None:
    found = sized(600, tokens=10_000, vocab=VOCAB, speed_of=machine(1e12))
    assert found.size == replace(RUNGS[0], dropout=0.2, batch=found.size.batch)
    assert found.steps * found.size.batch * found.size.context <= MOST_EPOCHS * 10_000


def test_a_slow_machine_keeps_the_time_and_its_smallest_model() -> None:
    found = sized(0.1, tokens=10**9, vocab=VOCAB, speed_of=lambda _: 1024 * 10)
    assert found.size == RUNGS[0]
    assert found.steps == 51


def test_a_quick_machine_gets_larger_batches() -> None:
    found = sized(600, tokens=10**12, vocab=VOCAB, speed_of=lambda _: 1e6)
    assert found.size.batch > 8
    assert found.steps <= MOST_UPDATES


def test_a_machine_slower_at_larger_sizes_is_believed() -> None:
    """Sizes that were measured count as measured, not as their arithmetic says."""
    quick = machine(2e11)
    first = sized(5, tokens=10**9, vocab=VOCAB, speed_of=quick)
    found = sized(
        5, tokens=10**9, vocab=VOCAB, speed_of=lambda size: quick(size) / (8 if size.width >= first.size.width else 1)
    )
    assert numbers(found.size) < numbers(first.size)


def test_each_size_is_larger_and_can_be_built() -> None:
    counts = [numbers(size) for size in RUNGS]
    ratios = [after / before for before, after in pairwise(counts)]
    assert all(1.6 < ratio < 3.5 for ratio in ratios)
    assert all(size.width % size.heads == 0 and size.width // size.heads in (24, 32, 64) for size in RUNGS)


@pytest.mark.parametrize("minutes", [0.5, 90])
def test_the_reason_has_the_numbers(minutes: float) -> None:
    found = sized(minutes, tokens=10**7, vocab=VOCAB, speed_of=machine(1e11))
    for part in (f"{minutes:g} min", f"{found.size.layers} blocks", f"{found.steps:,}", f"width {found.size.width}"):
        assert part in found.reason
