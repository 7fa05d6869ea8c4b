"""Checks of training loops: each planted fault is named by its id, and by no other."""

from __future__ import annotations

import pytest

from clearhead.checking.loop_kinds import QUESTIONS, Loop, LoopFinding
from clearhead.checking.loops import check_loop
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


@pytest.mark.parametrize(("loop", "ids"), PLANTED, ids=lambda value: type(value).__name__)
def test_a_planted_fault_is_named_and_nothing_else(loop: Loop, ids: set[str]) -> None:
    findings = check_loop(loop)
    assert faults(findings) == ids, findings
    assert all(finding.largest > 0 for finding in findings if not finding.passed)
