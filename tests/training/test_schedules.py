"""The learning rate: by hand, and what holds for every schedule, length and number."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.messages import UserError
from clearhead.training.schedules import SCHEDULES, schedule

Rate = Callable[..., float]

BY_HAND = {
    # With a warm-up of 4 of 20 updates, to a tenth: 16 updates of falling, or the last 4.
    "cosine": {8: 0.1 + 0.45 * (1 + math.sqrt(0.5)), 12: 0.55, 19: 0.1 + 0.45 * (1 - math.cos(math.pi / 16))},
    "linear": {8: 0.775, 12: 0.55, 19: 0.15625},
    "wsd": {8: 1.0, 12: 1.0, 16: 1.0, 17: 0.55, 18: 1 - 0.9 * math.sqrt(0.5), 19: 1 - 0.9 * math.sqrt(0.75)},
    "constant": {8: 1.0, 19: 1.0, 20: 1.0, 99: 1.0},
}


def check_by_hand(kind: str, rate: Rate) -> None:
    same = {0: 0.2, 1: 0.4, 3: 0.8, 4: 1.0} | ({} if kind == "constant" else {20: 0.1, 99: 0.1})
    for step, wanted in (same | BY_HAND[kind]).items():
        found = rate(step, lr=3.0, steps=20, warmup=4, final=0.1)
        assert found == pytest.approx(3 * wanted, abs=1e-12), (kind, step)


@pytest.mark.parametrize("kind", SCHEDULES)
def test_by_hand(kind: str) -> None:
    check_by_hand(kind, SCHEDULES[kind])


@pytest.mark.parametrize("kind", SCHEDULES)
@pytest.mark.parametrize("other", SCHEDULES)
def test_another_schedule_is_caught(kind: str, other: str) -> None:
    if kind != other:
        with pytest.raises(AssertionError):
            check_by_hand(kind, SCHEDULES[other])


def check_always(kind: str, rate: Rate, *, lr: float, steps: int, warmup: int, final: float) -> None:
    """Above 0 and never above lr; up by equal parts to lr; never up again; final · lr where the training ends."""
    values = [rate(step, lr=lr, steps=steps, warmup=warmup, final=final) for step in range(steps + 2)]
    assert all(0 < value <= lr * (1 + 1e-12) for value in values[:steps])
    rise = values[: min(warmup, steps) + 1]
    for step, value in enumerate(rise):
        assert value == pytest.approx(lr * (step + 1) / (warmup + 1), rel=1e-12)
    fall = values[warmup:]
    assert all(later <= before * (1 + 1e-12) for before, later in pairwise(fall))
    if warmup < steps:
        assert values[warmup] == pytest.approx(lr, rel=1e-12)
        end = lr if kind == "constant" else final * lr
        assert values[steps] == pytest.approx(end, abs=1e-12 * lr)
        assert values[steps + 1] == values[steps]


Number = st.floats(1e-6, 10.0)
Part = st.floats(0.0, 1.0)


@pytest.mark.parametrize("kind", SCHEDULES)
@settings(max_examples=60, deadline=None)
@given(lr=Number, steps=st.integers(1, 60), warmup=st.integers(0, 70), final=Part)
def test_always(kind: str, *, lr: float, steps: int, warmup: int, final: float) -> None:
    check_always(kind, SCHEDULES[kind], lr=lr, steps=steps, warmup=warmup, final=final)


FAULTY: dict[str, Rate] = {
    "one late": lambda step, **given: SCHEDULES["linear"](step - 1, **given),
    "one early": lambda step, **given: SCHEDULES["linear"](step + 1, **given),
    "from 0": lambda step, lr, steps, warmup, final: lr * min(1.0, step / warmup, (steps - step) / steps),
    "no warm-up": lambda step, lr, steps, warmup, final: SCHEDULES["linear"](
        step, lr=lr, steps=steps, warmup=0, final=final
    ),
    "to 0": lambda step, lr, steps, warmup, final: SCHEDULES["linear"](
        step, lr=lr, steps=steps, warmup=warmup, final=0.0
    ),
    "goes on falling": lambda step, lr, steps, warmup, final: (
        lr * (1 - (1 - final) * (step - warmup) / (steps - warmup)) if step > warmup else lr * (step + 1) / (warmup + 1)
    ),
    "up at the end": lambda step, lr, steps, warmup, final: (
        SCHEDULES["wsd"](step, lr=lr, steps=steps, warmup=warmup, final=final) * (1.0 + 0.01 * (step == steps - 1))
    ),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_schedule_is_caught(name: str) -> None:
    with pytest.raises(AssertionError):
        check_always("linear", FAULTY[name], lr=0.5, steps=20, warmup=4, final=0.99 if name == "up at the end" else 0.1)


@pytest.mark.parametrize("kind", SCHEDULES)
def test_a_schedule_is_a_function_of_the_number_alone(kind: str) -> None:
    """Any order, any number of times; and two halves of a training are the whole."""
    rate = schedule(kind, lr=0.3, steps=31, warmup=5, final=0.2)
    forwards = [rate(step) for step in range(31)]
    assert [rate(step) for step in reversed(range(31))] == forwards[::-1]
    assert forwards == [SCHEDULES[kind](step, lr=0.3, steps=31, warmup=5, final=0.2) for step in range(31)]


def test_before_its_fall_a_stable_training_does_not_know_how_long_it_will_be() -> None:
    short, long = (schedule("wsd", lr=0.3, steps=steps, warmup=5, final=0.0) for steps in (100, 200))
    assert [short(step) for step in range(81)] == [long(step) for step in range(81)]
    assert short(81) < long(81)
    cosine, longer = (schedule("cosine", lr=0.3, steps=steps, warmup=5, final=0.0) for steps in (100, 200))
    assert cosine(50) != longer(50)


def test_a_schedule_that_is_not_known_is_said_in_one_line() -> None:
    with pytest.raises(UserError, match="schedule") as found:
        schedule("cosin", lr=0.1, steps=10, warmup=1, final=0.1)
    assert all(kind in str(found.value) for kind in SCHEDULES)
    assert "\n" not in str(found.value)
