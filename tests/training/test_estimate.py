"""What a training is said to take: before, after twenty updates, at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.training.ceiling import forward_flops, update_flops
from clearhead.training.estimate import Estimate, Forecast, corrected, duration, estimated, percent, size
from clearhead.training.fit import Update
from clearhead.training.needed import needed_memory
from clearhead.training.run import Evaluated, Event, Saved
from tests.training.toy import SETTINGS, TINY, objective, training

PLAN = Estimate(
    updates=100,
    tokens=3_000,
    update_seconds=0.5,
    evaluations=4,
    evaluation_seconds=3.0,
    checkpoints=5,
    checkpoint_seconds=1.0,
    memory=2_000_000_000,
)


def update(step: int, seconds: float = 0.25) -> Update:
    return Update(step, loss=2.5, lr=0.25, grad_norm=1.5, terms=30, seconds=seconds)


def followed(
    steps: int, seconds: Callable[[int], float], *, evaluation: float = 2.0, plan: Estimate = PLAN
) -> tuple[Forecast, list[tuple[int, str]]]:
    """A training by a clock of its own: an evaluation and a checkpoint every 25 updates; and what was said, at which step."""
    now, said = [100.0], list[tuple[int, str]]()
    forecast = Forecast(plan, memory=lambda: 1_600_000_000, clock=lambda: now[0])

    def give(event: Event, taken: float) -> None:
        now[0] += taken
        line = forecast.take(event)
        if line is not None:
            said.append((event.step, line))

    for step in range(1, steps + 1):
        give(update(step, seconds(step)), seconds(step))
        if step % 25 == 0:
            give(Evaluated(step, 2.0), evaluation)
            give(Saved(step), 0.5)
    return forecast, said


def test_the_time_has_updates_evaluations_and_checkpoints() -> None:
    assert PLAN.seconds == 100 * 0.5 + 4 * 3.0 + 5 * 1.0


def test_the_estimate_of_a_training_counts_what_it_will_do(tmp_path: Path) -> None:
    """The events of the training itself are the measure."""
    events = list(training(tmp_path / "run").events())
    counts = {kind: sum(isinstance(event, kind) for event in events) for kind in (Update, Evaluated, Saved)}
    found = estimated(TINY, SETTINGS, objective(), tokens_per_second=60.0, tokens_per_step=30.0)
    assert (found.updates, found.evaluations) == (counts[Update], counts[Evaluated])
    # Every evaluation may find the lowest loss.
    assert counts[Saved] <= found.checkpoints <= counts[Saved] + counts[Evaluated]
    assert found.tokens == sum(event.terms for event in events if isinstance(event, Update))
    assert found.update_seconds == 0.5
    forwards = sum(forward_flops(TINY, batch) for batch in objective().validation())
    assert found.evaluation_seconds == pytest.approx(0.5 * forwards / update_flops(TINY, objective()))
    assert found.memory is None


def test_a_training_that_goes_on_has_less_to_do() -> None:
    whole = estimated(TINY, SETTINGS, objective(), tokens_per_second=60.0, tokens_per_step=30.0)
    rest = estimated(TINY, SETTINGS, objective(), tokens_per_second=60.0, tokens_per_step=30.0, done=8)
    assert (whole.updates, whole.evaluations, whole.checkpoints) == (14, 4, 7)
    assert (rest.updates, rest.evaluations, rest.checkpoints) == (6, 2, 3)


def test_memory_stands_on_what_is_there_already() -> None:
    needed = needed_memory(TINY, SETTINGS.batch)
    found = estimated(
        TINY, SETTINGS, objective(), tokens_per_second=60.0, tokens_per_step=30.0, needed=needed, present=1_000
    )
    assert found.memory == 1_000 + needed.peak


def test_it_is_corrected_after_twenty_updates_by_those_that_have_settled() -> None:
    """The first five are slow, and do not count."""
    forecast, said = followed(20, lambda step: 4.0 if step <= 5 else 0.25)
    assert [step for step, _ in said] == [20]
    assert forecast.corrected == replace(PLAN, update_seconds=0.25, evaluation_seconds=1.5)
    assert duration(forecast.corrected.seconds) in said[0][1]
    assert percent(PLAN.seconds, forecast.corrected.seconds) in said[0][1]


def test_what_evaluations_and_checkpoints_took_is_known_then() -> None:
    forecast, _ = followed(26, lambda _: 0.25, evaluation=7.0)
    assert forecast.corrected is not None
    assert (forecast.corrected.evaluation_seconds, forecast.corrected.checkpoint_seconds) == (7.0, 0.5)


def test_at_the_end_it_says_how_far_off_it_was() -> None:
    forecast, _ = followed(100, lambda _: 0.25)
    real = 100 * 0.25 + 4 * 2.0 + 4 * 0.5
    time, memory = forecast.closing()
    assert percent(PLAN.seconds, real) == "+91%"
    assert "+91%" in time and duration(real) in time and duration(PLAN.seconds) in time  # noqa: PT018 - one line
    assert "+25%" in memory and "1.6 GB" in memory and "2.0 GB" in memory  # noqa: PT018 - one line


def test_an_estimate_that_is_right_is_not_off() -> None:
    plan = replace(PLAN, update_seconds=0.25, evaluation_seconds=2.0, checkpoints=4, checkpoint_seconds=0.5)
    forecast, said = followed(100, lambda _: 0.25, plan=plan)
    assert "+0%" in said[0][1]
    assert "+0%" in forecast.closing()[0]


def test_a_training_that_was_stopped_or_is_short_says_nothing() -> None:
    assert followed(99, lambda _: 0.25)[0].closing() == []
    assert followed(0, lambda _: 0.25)[0].closing() == []
    assert followed(20, lambda _: 0.25, plan=replace(PLAN, updates=20))[1] == []


def test_without_a_known_memory_only_time_is_compared() -> None:
    forecast, _ = followed(100, lambda _: 0.25, plan=replace(PLAN, memory=None))
    assert len(forecast.closing()) == 1


@given(seconds=st.lists(st.floats(0.001, 10), min_size=20, max_size=20), factor=st.floats(0.1, 10))
def test_the_correction_follows_the_machine(seconds: list[float], factor: float) -> None:
    """A machine so many times as slow has everything that many times as long, but for the disk."""
    first, second = (
        corrected(PLAN, [update(step, each * times) for step, each in enumerate(seconds, start=1)])
        for times in (1.0, factor)
    )
    assert second.update_seconds == pytest.approx(factor * first.update_seconds)
    assert second.evaluation_seconds == pytest.approx(factor * first.evaluation_seconds)
    assert second.checkpoint_seconds == first.checkpoint_seconds
    assert first.evaluation_seconds / first.update_seconds == pytest.approx(3.0 / 0.5)


@pytest.mark.parametrize(
    ("available", "warned"), [(1_999_999_999, True), (2_000_000_000, False), (None, False)], ids=str
)
def test_too_little_memory_is_said_before_it_starts(available: int | None, *, warned: bool) -> None:
    line = PLAN.warning(available)
    assert (line is not None) == warned
    assert line is None or ("2.0 GB" in line and "--micro-batch" in line and "\n" not in line)
    assert replace(PLAN, memory=None).warning(available) is None


@pytest.mark.parametrize("language", ["en", "zh"])
def test_words_in_both_languages(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", language)
    line = PLAN.words()
    assert "3,000" in line and duration(PLAN.seconds) in line and "2.0 GB" in line  # noqa: PT018 - one line
    assert ("内存" in line) == (language == "zh")
    assert ("未知" in replace(PLAN, memory=None).words()) == (language == "zh")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (7.25, "7.2 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (67, "1 min 7 s"),
        (7_261, "2 h 1 min"),
        (360_000, "100 h 0 min"),
    ],
)
def test_durations_as_people_say_them(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_sizes_and_percentages() -> None:
    assert [size(count) for count in (38_400_000, 999_000_000, 1_340_000_000)] == ["38 MB", "999 MB", "1.3 GB"]
    assert [percent(3, 4), percent(4, 4), percent(5, 4)] == ["-25%", "+0%", "+25%"]
