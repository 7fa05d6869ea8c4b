"""Checks of training loops: each planted fault is named by its id, and by no other."""

from __future__ import annotations

import random
import re

import pytest
import torch
from torch.optim.optimizer import _global_optimizer_pre_hooks

from clearhead.checking.loop_kinds import QUESTIONS, Loop, LoopFinding, LoopTask, Question
from clearhead.checking.loop_subject import Subject
from clearhead.checking.loops import check_loop
from clearhead.messages import UserError
from tests.checking import loop_examples as examples
from tests.checking import right_loops as right
from tests.checking import wrong_loops as wrong
from tests.checking import wrong_loops_course as course


def faults(findings: list[LoopFinding]) -> set[str]:
    return {finding.id for finding in findings if not finding.passed}


def test_a_sound_loop_is_right_in_everything() -> None:
    findings = check_loop(wrong.Sound())
    assert [finding.question for finding in findings] == list(QUESTIONS)
    assert {finding.verdict for finding in findings} == {"yes"}, findings
    assert [finding.id for finding in findings] == list(QUESTIONS.values())
    assert max(finding.largest for finding in findings) < 1e-12
    assert all(finding.evidence and "\n" not in finding.evidence for finding in findings)


PLANTED: list[tuple[Loop, set[str]]] = [
    (wrong.MeanOfMeans(), {"loss.mean-of-means"}),
    (wrong.SumOfMeans(), {"train.accumulation"}),
    (wrong.LastOnly(), {"train.accumulation"}),
    (wrong.PadsCounted(), {"loss.pads-counted"}),
    (wrong.DividedTwice(), {"train.accumulation"}),
    (wrong.HalfTheLoss(), {"train.accumulation"}),
    (wrong.ClearsTooEarly(), {"train.accumulation", "parameter.unused"}),
    (wrong.StepEachPart(), {"train.accumulation"}),
    (wrong.GradientsKept(), {"train.gradients-kept"}),
    (wrong.MeanOfMeansKept(), {"loss.mean-of-means", "train.gradients-kept"}),
    (wrong.ClipsParts(), {"train.clip-per-microbatch"}),
    (wrong.ClipsEachAlone(), {"train.clip-per-microbatch"}),
    (wrong.ClipsEachParameter(), {"train.clip"}),
    (wrong.ClipsBeforeUnscale(), {"train.clip-before-unscale"}),
    (wrong.NeverUnscales(), {"train.unscale-missing"}),
    (course.ScheduleOfParts(), {"train.schedule-per-microbatch"}),
    (course.ScheduleOfPartsAfter(), {"train.schedule-per-microbatch"}),
    (course.ScheduleOfTokens(), {"train.schedule"}),
    (course.DecaysAll(), {"train.decay-on-norms"}),
    (course.DecaysNorms(), {"train.decay-on-norms"}),
    (course.ForgetsParameter(), {"parameter.unused"}),
    (course.FreezesParameter(), {"parameter.unused"}),
    (course.HoldsTwice(), {"parameter.twice"}),
    (course.EvalLeftOn(), {"train.eval-left-on"}),
    (course.OnePartLeftInEval(), {"train.eval-left-on"}),
    (course.EvaluatesInTraining(), {"dropout.active-in-eval"}),
    (course.NeverTrains(), {"dropout.never-active"}),
    (course.WithoutRandom(), {"resume.rng"}),
    (course.SeedsAtStart(), {"resume.rng"}),
    (course.WithoutOptimizer(), {"resume.optimizer"}),
    (course.WithoutSchedule(), {"resume.schedule"}),
    (course.WithoutWeights(), {"resume.weights"}),
    (course.DataFromTheStart(), {"resume.data"}),
    (course.RestartsNowhere(), {"resume.mismatch"}),
    (course.Unrepeatable(), {"resume.mismatch"}),
]


# A planted fault is held against the questions of its kind and the nearest others, not each against all: that takes too long.
GRADIENTS: tuple[Question, ...] = ("accumulation", "clearing", "clipping", "scaling", "groups")
COURSE: tuple[Question, ...] = ("accumulation", "schedule", "groups", "modes", "resume")


@pytest.mark.parametrize(("loop", "ids"), PLANTED, ids=lambda value: type(value).__name__)
def test_a_planted_fault_is_named_and_nothing_else(loop: Loop, ids: set[str]) -> None:
    findings = check_loop(loop, questions=COURSE if type(loop).__module__ == course.__name__ else GRADIENTS)
    assert faults(findings) == ids, findings
    assert all(finding.largest > 0 for finding in findings if not finding.passed)


@pytest.mark.parametrize(
    ("loop", "question", "cause"),
    [
        (wrong.GradientsKept(), "resume", "train.gradients-kept"),
        (wrong.StepEachPart(), "schedule", "train.accumulation"),
        (wrong.ClipsParts(), "scaling", "train.clip-per-microbatch"),
        (wrong.ClipsEachParameter(), "scaling", "train.clip"),
        (course.ForgetsParameter(), "scaling", "parameter.unused"),
    ],
)
def test_a_consequence_is_not_named_beside_its_cause(loop: Loop, question: Question, cause: str) -> None:
    findings = check_loop(loop)
    assert faults(findings) == {cause}
    (finding,) = [finding for finding in findings if finding.question == question]
    assert finding.verdict == "not asked"
    assert cause in finding.evidence


LEGAL: list[Loop] = [
    right.Concatenated(),
    right.RowByRow(),
    right.Shuffles(),
    right.DividesGradients(),
    right.ClearsAfter(),
    right.ClipsByHand(),
    right.FusedWithScaler(),
    right.OwnSchedule(),
    right.EvaluatesFirst(),
    right.TrainsEachTime(),
    right.SeedsEachUpdate(),
    right.SavesWhenKilled(),
]


@pytest.mark.parametrize("loop", LEGAL, ids=lambda loop: type(loop).__name__)
def test_nothing_is_said_against_a_loop_that_does_it_in_another_way(loop: Loop) -> None:
    findings = check_loop(loop)
    assert {finding.verdict for finding in findings} == {"yes"}, findings
    assert max(finding.largest for finding in findings) < 1e-12


def test_a_loss_in_float32_is_legal_and_said() -> None:
    findings = check_loop(right.LossInFloat32())
    assert {finding.verdict for finding in findings} == {"yes"}
    assert 1e-10 < findings[0].largest < 1e-6
    assert ["float32" in finding.evidence for finding in findings[:4]] == [True, False, True, True]


def test_a_mistake_is_named_through_the_rounding_of_float32_too() -> None:
    class Both(right.LossInFloat32, wrong.MeanOfMeans):
        pass

    assert faults(check_loop(Both())) == {"loss.mean-of-means"}


def verdicts(loop: Loop) -> dict[str, str]:
    findings = check_loop(loop)
    assert faults(findings) == set(), findings
    return {finding.question: finding.evidence for finding in findings if not finding.asked}


def test_what_a_loop_cannot_do_is_not_asked_and_the_reason_is_said() -> None:
    said = verdicts(right.Plain())
    assert list(said) == ["accumulation", "clipping", "scaling", "schedule", "modes", "resume"]
    assert said["accumulation"] == said["schedule"] == "the loop says that it cannot: one batch an update"
    assert "does not clip" in said["clipping"]
    assert "one update" not in said["resume"]
    assert said["resume"].endswith("no checkpoints")
    assert "evaluated nothing" in said["modes"]
    said = verdicts(right.TwoOptimizers())
    assert list(said) == ["scaling", "resume"]
    said = verdicts(right.SavesNothing())
    assert said == {"resume": "asked to save, the loop wrote nothing into the folder"}
    said = verdicts(right.ConstantRate())
    assert said == {"schedule": "the learning rate stays at 0.001: there is no schedule"}


def test_rows_that_nobody_gave_cannot_be_judged() -> None:
    said = verdicts(right.OtherRows())
    assert list(said) == ["accumulation", "clearing", "clipping", "scaling", "modes"]
    assert all("other rows" in reason for reason in said.values())


def test_a_loop_that_trains_something_else_is_told_so() -> None:
    with pytest.raises(UserError, match=r"task\.model itself, in place"):
        check_loop(right.TrainsACopy())


def test_a_loop_in_the_style_of_a_script() -> None:
    """The first example of `Loop`: a mean of means, right in what else it does."""
    findings = check_loop(examples.script)
    assert faults(findings) == {"loss.mean-of-means"}
    assert [finding.question for finding in findings if not finding.asked] == ["scaling", "modes", "resume"]


@pytest.mark.parametrize("counted", [True, False], ids=["counted", "not counted"])
def test_a_loop_in_the_style_of_a_trainer(counted: bool) -> None:
    """The second: a module around the model, keyword arguments, and a count of the targets that it is given or not."""
    findings = check_loop(examples.trainer_loop(counted))
    assert faults(findings) == (set() if counted else {"loss.mean-of-means"})
    assert [finding.question for finding in findings if not finding.asked] == ["scaling"]


def test_questions_can_be_chosen() -> None:
    asked: list[LoopTask] = []

    def loop(task: LoopTask) -> None:
        asked.append(task)
        wrong.Sound()(task)

    (finding,) = check_loop(loop, questions=["clearing"])
    assert (finding.question, finding.id, len(asked)) == ("clearing", "train.gradients-kept", 1)
    assert [finding.question for finding in check_loop(loop, questions={"modes", "groups"})] == ["groups", "modes"]


def test_the_process_is_left_as_it_was() -> None:
    torch.manual_seed(3)
    random.seed(3)
    before = torch.get_rng_state(), random.getstate()
    check_loop(course.SeedsAtStart(), questions=["resume"])
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert not _global_optimizer_pre_hooks


def test_what_a_loop_raises_is_its_own() -> None:
    def broken(task: LoopTask) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        check_loop(broken)
    assert not _global_optimizer_pre_hooks


def test_rows_that_are_alike_are_refused() -> None:
    with pytest.raises(UserError, match="larger vocab"):
        check_loop(wrong.Sound(), subject=Subject(vocab=1))


def test_other_data_and_other_weights_give_the_same_answers() -> None:
    for seed in range(1, 4):
        subject = Subject(seed=seed)
        assert faults(check_loop(wrong.Sound(), subject=subject, questions=GRADIENTS)) == set()
        assert faults(check_loop(wrong.ClipsParts(), subject=subject, questions=GRADIENTS)) == {
            "train.clip-per-microbatch"
        }


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_words_are_in_the_users_language(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", language)
    findings = check_loop(wrong.MeanOfMeans(), questions=["accumulation", "groups"])
    assert all(
        (re.search(r"[\u4e00-\u9fff]", finding.evidence) is not None) == (language == "zh") for finding in findings
    )
    assert "13+3+8" in findings[0].evidence
