"""The verdict on made-up courses: each finding where it belongs, none where all is well, and rules that are broken are found."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from clearhead.messages import say
from clearhead.training import course, standing, verdict
from clearhead.training.standing import Known
from clearhead.training.verdict import Verdict, judged

Line = dict[str, Any]
Judge = Callable[[Sequence[Line], Known], Verdict]

KNOWN = Known(4.0, {"unigram": 3.0, "bigram": 2.4}, epochs=2.0, usual_lr=3e-3, clip=1.0, dropout=0.1)


def lines(
    *, steps: int = 300, start: float = 4.1, end: float = 1.6, speed: float = 12.0, apart: float = 0.05, every: int = 50
) -> list[Line]:
    """A loss that falls from start to end, half of it in the first (steps / speed · ln 2) updates, with noise; validation above."""
    noise = np.random.default_rng(7).normal(0, 0.04, steps)
    falling = end + (start - end) * np.exp(-speed * np.arange(steps) / steps)
    made = [
        {"step": step, "loss": loss, "lr": 3e-3, "grad_norm": 0.5, "tokens_per_second": 9.0}
        for step, loss in enumerate((falling + noise).tolist(), start=1)
    ]
    for line in made[every - 1 :: every]:
        line["val_loss"] = float(falling[line["step"] - 1]) + apart
    return made


def ending(loss: float) -> list[Line]:
    """A course that stands at that validation loss from its middle on."""
    return lines(end=loss, apart=0.0, speed=40.0)


def changed(course: list[Line], **at: Callable[[int, float], float]) -> list[Line]:
    """The course with some columns made anew from (step, value)."""
    for line in course:
        line |= {name: make(line["step"], line[name]) for name, make in at.items() if name in line}
    return course


def swapped(course: Sequence[Line]) -> list[Line]:
    """Training and validation losses in each other's place."""
    level = [(line["step"], line["val_loss"]) for line in course if "val_loss" in line]
    steps, values = zip(*level, strict=True)
    return [
        line
        | {"loss": float(np.interp(line["step"], steps, values))}
        | ({"val_loss": line["loss"]} if "val_loss" in line else {})
        for line in course
    ]


class Case(NamedTuple):
    """A course, what it is measured against, and what is to be said."""

    course: list[Line]
    names: tuple[str, ...]
    known: Known = KNOWN


def overfitting() -> list[Line]:
    """After step 100 the validation loss rises while the training loss falls."""
    course = lines(speed=4.0, end=0.9)
    return changed(course, val_loss=lambda step, value: 2.2 - 0.002 * step if step <= 100 else 1.7 + 0.003 * step)


ENTROPY = replace(KNOWN, entropy=1.0)
HIDDEN = replace(KNOWN, levels={"unigram": 3.0})
ALONE = replace(KNOWN, levels={})
HEALTHY = ("beyond", "healthy")

CASES = {
    "healthy": Case(ending(1.6), HEALTHY),
    "healthy, a little apart": Case(lines(apart=0.2, speed=40.0), HEALTHY),
    "healthy, with dropout": Case(lines(apart=-0.15, speed=40.0), HEALTHY),
    "healthy, nothing but ln V": Case(ending(1.6), ("learnt", "healthy"), ALONE),
    "healthy, hidden tokens": Case(ending(1.6), ("beyond_single", "healthy"), HIDDEN),
    "healthy, learnt wholly": Case(
        changed(
            lines(end=0.0, speed=60.0, apart=0.004), loss=lambda step, value: max(0.0, value) if step < 99 else 0.001
        ),
        ("learnt", "healthy"),
        ALONE,
    ),
    "near": Case(ending(1.1), ("near", "healthy"), ENTROPY),
    "above the entropy": Case(ending(1.3), HEALTHY, ENTROPY),
    "below the entropy": Case(ending(0.9), ("impossible",), ENTROPY),
    "a hair below the entropy": Case(ending(0.97), ("near", "healthy"), ENTROPY),
    "seen itself": Case(ending(0.1), ("too_good",)),
    "broken": Case(ending(4.02), ("broken",)),
    "broken after a few": Case(lines(steps=20, end=4.05, every=20), ("begun",)),
    "guessing": Case(ending(3.5), ("guessing",)),
    "unigram": Case(ending(3.05), ("unigram",)),
    "unigram, hidden tokens": Case(ending(2.95), ("unigram",), HIDDEN),
    "between": Case(ending(2.7), ("between",)),
    "pairs too rare to count": Case(ending(2.9), HEALTHY, replace(KNOWN, levels={"unigram": 3.0, "bigram": 3.1})),
    "no number": Case(changed(ending(1.6), val_loss=lambda *_: math.nan), ("no_number",)),
    "skipped": Case(
        changed(ending(1.6), loss=lambda step, value: math.nan if step == 150 else value), ("beyond", "nonfinite")
    ),
    "a loss scale is found": Case(
        changed(ending(1.6), grad_norm=lambda step, value: math.inf if step < 6 else value), HEALTHY
    ),
    "gradients without a number": Case(
        changed(ending(1.6), grad_norm=lambda step, value: math.inf if step % 9 == 0 else value),
        ("beyond", "nonfinite"),
    ),
    "climbed": Case(changed(ending(1.6), loss=lambda step, value: value + 5 * (20 < step < 60)), ("beyond", "climbed")),
    "diverged": Case(
        changed(ending(1.6), **dict.fromkeys(("loss", "val_loss"), lambda step, value: value + 0.7 * (step > 200))),
        ("beyond", "diverged"),
    ),
    "jumps": Case(
        changed(ending(1.6), loss=lambda step, value: value + (step in (121, 122, 180, 240))), ("beyond", "jumps")
    ),
    "one odd document": Case(changed(ending(1.6), loss=lambda step, value: value + (step in (121, 122))), HEALTHY),
    "norms": Case(changed(ending(1.6), grad_norm=lambda step, _: 30.0 if step % 3 else 0.5), ("beyond", "norms")),
    "norms near the clip": Case(changed(ending(1.6), grad_norm=lambda *_: 3.0), HEALTHY),
    "far above the usual": Case(changed(ending(2.7), lr=lambda *_: 0.1), ("between", "rate")),
    "overfitting": Case(overfitting(), ("beyond", "overfitting")),
    "overfitting, small text": Case(overfitting(), ("beyond", "overfitting", "little_data"), replace(KNOWN, epochs=90)),
    "gap": Case(lines(apart=0.6, speed=40.0), ("beyond", "gap")),
    "gap, smoothed labels": Case(lines(apart=0.6, speed=40.0), HEALTHY, replace(KNOWN, comparable=False)),
    "easier": Case(lines(apart=-0.6, speed=40.0), ("beyond", "easier")),
    "unfinished": Case(lines(speed=2.0, end=1.0), ("beyond", "unfinished")),
    "unfinished, low": Case(changed(lines(speed=2.0, end=1.0), lr=lambda *_: 1e-4), ("beyond", "lr_low")),
}


def wrong(judge: Judge) -> list[str]:
    """The cases that are judged otherwise than they should be."""
    return [name for name, case in CASES.items() if judge(case.course, case.known).names != case.names]


def test_every_course_is_judged_as_it_should_be() -> None:
    assert {name: judged(case.course, case.known).names for name, case in CASES.items()} == {
        name: case.names for name, case in CASES.items()
    }


def test_every_finding_has_a_case_and_a_rule() -> None:
    seen = {name for case in CASES.values() for name in case.names}
    documented = {
        line.split("|")[1].strip(" `") for line in (verdict.__doc__ or "").splitlines() if line.startswith("| `")
    }
    assert seen == documented | {"beyond_single", "healthy"}


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (lambda course, known: judged(swapped(course), known), "overfitting"),
        (lambda course, known: judged(course[: len(course) // 2], known), "diverged"),
        (lambda course, known: judged([line | {"lr": 3e-3} for line in course], known), "unfinished, low"),
        (lambda course, known: judged(course, replace(known, entropy=None)), "below the entropy"),
        (lambda course, known: judged(course, replace(known, epochs=0.0)), "overfitting, small text"),
        (lambda course, known: judged(course, replace(known, uniform=math.inf)), "broken"),
    ],
)
def test_a_planted_mistake_in_what_is_handed_over_is_found(broken: Judge, found: str) -> None:
    assert found in wrong(broken)


def test_train_and_validation_in_each_others_place_are_named() -> None:
    """By the sentence that says so, where the validation loss was the higher one."""
    course = lines(apart=0.6, speed=40.0)
    assert judged(course, KNOWN).names == ("beyond", "gap")
    assert "easier" in judged(swapped(course), KNOWN).names


@pytest.mark.parametrize(
    ("room", "constant", "value", "found"),
    [
        (verdict, "JUMPS", 1, "one odd document"),
        (verdict, "JUMP", 9.0, "jumps"),
        (course, "DEVIATIONS", 1e9, "jumps"),
        (verdict, "RISEN", 9.0, "climbed"),
        (verdict, "SKIPPED", 0.0, "a loss scale is found"),
        (verdict, "FAR", 1.0, "norms near the clip"),
        (verdict, "ROSE", 9.0, "overfitting"),
        (verdict, "APART", 0.0, "healthy, a little apart"),
        (verdict, "SMALL", 0.0, "healthy, learnt wholly"),
        (verdict, "EASIER", 0.0, "healthy, with dropout"),
        (verdict, "MANY", 1, "gap"),
        (verdict, "WORTH", 9.0, "unfinished"),
        (verdict, "HIGH", 1e9, "far above the usual"),
        (verdict, "LOW", 0.0, "unfinished, low"),
        (standing, "BELOW", 1.0, "a hair below the entropy"),
        (standing, "NEAR", 0.0, "near"),
        (standing, "TOO_GOOD", 0.0, "seen itself"),
        (standing, "SAME", 0.0, "unigram"),
        (standing, "ENOUGH", 1, "broken after a few"),
    ],
)
def test_each_number_of_the_rules_matters(
    monkeypatch: pytest.MonkeyPatch, room: Any, constant: str, value: float, found: str
) -> None:
    monkeypatch.setattr(room, constant, value)
    assert found in wrong(judged)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_sentences_hold_their_numbers_and_what_to_type(monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", language)
    said = {name: " ".join(each.sentence for each in judged(*case[::2]).findings) for name, case in CASES.items()}
    assert "--resume --steps 600" in said["unfinished"]
    assert "--resume --steps 1000" in said["broken after a few"]
    assert "--lr 0.003" in said["climbed"] or "--lr 0.0003" in said["climbed"]
    assert "--model.dropout 0.3" in said["overfitting"]
    assert "100" in said["overfitting"]
    assert "90" in said["overfitting, small text"]
    assert "1.000" in said["below the entropy"]
    assert "nan" not in " ".join(said.values())


def test_a_model_whose_dropout_is_not_to_be_chosen_wants_text() -> None:
    (_, gap) = judged(overfitting(), replace(KNOWN, dropout=None)).findings
    assert gap.sentence.endswith(say("closing.add_text"))


def test_what_is_gained_by_doubling_is_the_slope_in_the_logarithm() -> None:
    """a - k ln s has k ln 2 still to come, exactly."""
    made = [{"step": step, "loss": 5.0 - 0.3 * math.log(step)} for step in range(1, 101)]
    gain, error = course.course_of(made).gain_of_doubling()
    assert gain == pytest.approx(0.3 * math.log(2), rel=1e-12)
    assert error < 1e-7


def test_nothing_is_made_of_nothing() -> None:
    """No lines, lines of nothing but nulls, a line that is no update."""
    assert judged([], KNOWN).names == ("no_number",)
    nulls = [{"step": step, "loss": None, "grad_norm": None, "lr": None, "val_loss": None} for step in range(1, 60)]
    assert judged(nulls, KNOWN).names == ("no_number", "nonfinite")
    assert judged([{"kind": "header"}, *CASES["healthy"].course], KNOWN).names == HEALTHY
