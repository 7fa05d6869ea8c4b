"""All checks of a training loop."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from clearhead.checking.loop_course import groups, modes, schedule
from clearhead.checking.loop_gradients import accumulation, clipping, scaling
from clearhead.checking.loop_kinds import QUESTIONS, Loop, LoopFinding, Question, not_asked
from clearhead.checking.loop_resume import resume
from clearhead.checking.loop_subject import Subject
from clearhead.messages import say

CONSEQUENCES: dict[tuple[Question, str], tuple[str, ...]] = {
    ("clipping", "train.clip"): ("train.accumulation", "parameter.unused"),
    ("scaling", "train.clip"): ("train.accumulation", "parameter.unused", "train.clip-per-microbatch", "train.clip"),
    ("schedule", "train.schedule"): ("train.accumulation",),
    ("resume", "resume.mismatch"): ("train.gradients-kept",),
}
"""Answers without a cause -> faults that bring them about, and are found by another question."""


def check_loop(
    loop: Loop, *, subject: Subject | None = None, questions: Collection[Question] = tuple(QUESTIONS)
) -> list[LoopFinding]:
    """Let a training loop train tiny models, and say what is right about it and what is not.

    Every question is asked by itself, of a fresh model; a loop answers `not asked` by raising `NotImplementedError`
    with its reason, or by simply not doing it. What else the loop raises is the loop's own and is not caught.

    Args:
        loop: trains the model of a `LoopTask` in place.
        subject: the models and the data; a tiny model with a norm, biases and dropout if None.
        questions: what is asked.

    Returns:
        At least one finding for each question, in the order of `QUESTIONS`; several where several faults are found.

    Raises:
        UserError: if the loop never moves the model that it is given.
    """
    subject = subject or Subject()
    findings: list[LoopFinding] = []
    if {"accumulation", "clearing"} & set(questions):
        findings += accumulation(loop, subject)
    if "clipping" in questions:
        findings.append(clipping(loop, subject))
    if "scaling" in questions:
        findings.append(scaling(loop, subject))
    if "schedule" in questions:
        findings.append(schedule(loop, subject))
    if "groups" in questions:
        findings += groups(loop, subject)
    if "modes" in questions:
        findings += modes(loop, subject)
    if "resume" in questions:
        findings += resume(loop, subject)
    return _causes([finding for finding in findings if finding.question in questions])


def _causes(findings: Sequence[LoopFinding]) -> list[LoopFinding]:
    """The findings, without those that say no more than that a fault which has a name has consequences."""
    return [_cause(finding, findings) or finding for finding in findings]


def _cause(finding: LoopFinding, findings: Sequence[LoopFinding]) -> LoopFinding | None:
    """What is said in place of a finding that a fault found by another question brings about."""
    named = {other.id for other in findings if not other.passed and other.question != finding.question}
    causes = [cause for cause in CONSEQUENCES.get((finding.question, finding.id), ()) if cause in named]
    if finding.passed or not causes:
        return None
    return not_asked(finding.question, say("loops.mend_first", fault=causes[0]))
