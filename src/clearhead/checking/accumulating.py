"""Is the gradient of an update made of several micro-batches the right one? Asked of one function, not of a whole loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.optim import Optimizer

from clearhead.checking.loop_kinds import LoopFinding, LoopTask
from clearhead.checking.loop_subject import Subject
from clearhead.checking.loops import check_loop
from clearhead.checking.report import Check, Fault, Report
from clearhead.messages import say
from clearhead.training.batches import Batch

Step = Callable[[nn.Module, Optimizer, Sequence[Batch]], object]
"""Does one update: forward, backward, `optimizer.step()` and clearing, over all micro-batches that it is given."""


def check_accumulation(step_fn: Step, *, subject: Subject | None = None) -> Report:
    """Whether k micro-batches with unequal numbers of real targets give the gradient of one batch.

    The gradient must be that of (sum of all losses) / (number of all real targets), and each update begins from nothing.

    Args:
        step_fn: `step_fn(model, optimizer, batches)` does one update of `model` (ids (B,T) -> logits (B,T,V)) from a list of
            micro-batches `(inputs, targets)`; a target of -100 does not count.
        subject: the models and the data; a tiny model if None.

    Returns:
        A report of the kind "accumulation": `train.accumulation`, `loss.mean-of-means`, `loss.pads-counted` and `train.gradients-kept`.

    Raises:
        UserError: if no optimiser moves the model. What `step_fn` raises is not caught.
    """

    def loop(task: LoopTask) -> None:
        optimizer = torch.optim.AdamW(task.model.parameters(), lr=task.lr(0), weight_decay=0.0)
        for update in range(task.updates):
            first = update * task.accumulation
            step_fn(task.model, optimizer, list(task.batches[first : first + task.accumulation]))

    findings = check_loop(loop, subject=subject, questions=("accumulation", "clearing"))
    return reported(getattr(step_fn, "__name__", type(step_fn).__name__), "accumulation", findings)


def reported(name: str, kind: str, findings: Sequence[LoopFinding]) -> Report:
    """The answers about a loop as a report.

    Args:
        name: what was checked, as the user calls it.
        kind: as what.
        findings: the answers.
    """
    verdicts = {"yes": "pass", "no": "fail", "not asked": "skipped"}
    checks = tuple(
        Check(each.id, verdicts[each.verdict], each.evidence, each.largest)  # type: ignore[arg-type]
        for each in findings
    )
    faults = tuple(
        Fault(each.id, "reproduced", each.evidence, "", _fix(each.id), each.largest)
        for each in findings
        if not each.passed
    )
    return Report(name, kind, False, checks, faults)


def _fix(id: str) -> str:
    if id in ("train.accumulation", "loss.mean-of-means", "loss.pads-counted"):
        return say("functions.fix_accumulation")
    return say("functions.fix_kept") if id == "train.gradients-kept" else say("functions.fix_resume")
