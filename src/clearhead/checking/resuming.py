"""Is resumption exact? The question of `loops` alone, with a report."""

from __future__ import annotations

from clearhead.checking.accumulating import reported
from clearhead.checking.loop_kinds import Loop, Question
from clearhead.checking.loop_subject import Subject
from clearhead.checking.loops import check_loop
from clearhead.checking.report import Report


def check_resume(run_fn: Loop, *, subject: Subject | None = None) -> Report:
    """Whether N updates = k updates, a kill, a restart and N - k more, bit for bit.

    Args:
        run_fn: `run_fn(task)` trains `task.model` for `task.updates` updates of `task.batches`, saves everything into `task.folder` after
            every `task.save_every` updates, and with `task.resume` goes on from there (see `LoopTask`).
        subject: the models and the data; a tiny model with dropout if None.

    Returns:
        A report of the kind "resume": `resume.rng`, `resume.data`, `resume.optimizer`, `resume.schedule`, `resume.weights` or, with no
        cause found, `resume.mismatch`; skipped if nothing was saved.

    Raises:
        UserError: if no optimiser moves the model. What `run_fn` raises is not caught.
    """
    asked: tuple[Question, ...] = ("resume",)
    findings = check_loop(run_fn, subject=subject, questions=asked)
    return reported(getattr(run_fn, "__name__", type(run_fn).__name__), "resume", findings)
