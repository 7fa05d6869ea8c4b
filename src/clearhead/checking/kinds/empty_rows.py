"""A row that may see nothing: zeros and finite gradients, not NaN."""

from __future__ import annotations

import re
from dataclasses import replace

import torch
from torch import Tensor, nn

from clearhead.checking.kinds.claimed import DOCUMENTS
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.masks_found import MaskUse
from clearhead.checking.kinds.seeing import moved, ready, seen_above, size_of
from clearhead.checking.kinds.sequence_case import SequenceCase, run
from clearhead.checking.report import Check, Fault
from clearhead.checking.target import Target
from clearhead.checking.watch import Record, watched
from clearhead.messages import say

NAME = "mask.empty-row"
EMPTY = (
    r"\b(rows?|texts?|sequences?|samples?|examples?|batch elements?) (may|can|might|could) (also )?"
    r"(be (all |wholly |entirely |fully |completely )?(empty|padding|padded|hidden|masked)|see nothing)|"
    r"(all|nothing but)[- ]padding|(fully|wholly|entirely|completely)[- ](masked|padded|hidden) (rows?|texts?|sequences?|quer(y|ies))|"
    r"\b(rows?|quer(y|ies)|positions?) (that|which) sees? nothing|\bempty (rows?|texts?|sequences?)"
)
"""Words about rows that may see nothing."""


def expects_empty(target: Target) -> bool:
    """Whether the code says that a row may see nothing. Only then is the mean of all values, which a finite constant leaves, wrong."""
    words = " ".join(piece for found in re.findall(DOCUMENTS, target.source, re.DOTALL) for piece in found)
    return re.search(EMPTY, words, re.IGNORECASE) is not None


def empty_rows(case: SequenceCase, use: MaskUse, *, causal: bool) -> Found:
    """What comes of a row whose keys are all hidden, and of one whose first keys are, forward and back."""
    length = case.length(6)
    whole = torch.ones(3, length, dtype=torch.bool)
    whole[0] = False
    first = torch.ones(3, length, dtype=torch.bool)
    first[0, :2] = False
    for keep, said in ((whole, "all"), *(((first, "first"),) if causal else ())):
        problem = _problem(case, use, keep)
        if problem:
            evidence = say(
                f"attention.empty_row_{problem}", name=use.name, what=say(f"attention.hidden_{said}"), length=length
            )
            if not _problem(_narrower(case), use, keep):
                return Found((Check(NAME, "pass", evidence),), notes=(say("attention.empty_narrow", name=use.name),))
            if _delegated(case, use, keep):
                return Found((Check(NAME, "skipped", evidence),), notes=(say("attention.empty_theirs"),))
            fault = Fault(NAME, "reproduced", evidence, "", say("attention.empty_fix"), None)
            return Found((Check(NAME, "fail", evidence),), (fault,))
    passed = say("attention.empty_passed", name=use.name, length=length)
    notes = (say("attention.empty_mean", name=use.name),) if _sees(case, use, whole) else ()
    if notes and expects_empty(case.case.target):
        fault = Fault(NAME, "consistent", notes[0], "", say("attention.empty_fix"), None)
        return Found((Check(NAME, "fail", notes[0]),), (fault,))
    return Found((Check(NAME, "pass", passed),), notes=notes)


def _narrower(case: SequenceCase) -> SequenceCase:
    """The same in float32, the type in which modules are made."""
    return replace(case, case=replace(case.case, dtype=torch.float32))


def fused_gives_nan(record: Record) -> bool:
    """Whether PyTorch's fused attention, given numbers, gave what is none."""
    for op in record.named("scaled_dot_product_attention"):
        given = [op.argument(index, name) for index, name in enumerate(("query", "key", "value"))]
        if not bool(op.result.isfinite().all()) and all(bool(each.isfinite().all()) for each in given):
            return True
    return False


def _problem(case: SequenceCase, use: MaskUse, keep: Tensor) -> str:
    """Which is not a number, forward or gradient; "" if both are finite."""
    module, x = ready(case), case.inputs(keep.shape[0], keep.shape[1], 15)
    if case.ids:
        out = run(case, module, x, keep, use=use)
    else:
        x.requires_grad_()
        out = run(case, module, x, keep, use=use)
    if not bool(out.isfinite().all()):
        return "forward"
    if out.requires_grad:
        torch.autograd.backward(out.pow(2).sum())
    held = list(module.parameters()) if isinstance(module, nn.Module) else []
    gradients = [each.grad for each in (x, *held) if each.grad is not None]
    return "" if all(bool(gradient.isfinite().all()) for gradient in gradients) else "gradient"


@torch.no_grad()
def _sees(case: SequenceCase, use: MaskUse, keep: Tensor) -> bool:
    """Whether the first row, which may see nothing, moves with keys of its own: the mean of the values."""
    module, x = ready(case), case.inputs(keep.shape[0], keep.shape[1], 15)
    base = run(case, module, x, keep, use=use)
    other = x.clone()
    other[0, -1] = x[0, 0]
    apart = moved(base, run(case, module, other, keep, use=use))[0, :-1]
    return float(apart.max()) > seen_above(case) * size_of(base)


def _delegated(case: SequenceCase, use: MaskUse, keep: Tensor) -> bool:
    """Whether PyTorch's own code does the attention: what it makes of such a row is not the user's line."""
    module, x = ready(case), case.inputs(keep.shape[0], keep.shape[1], 15)
    record = watched(module if isinstance(module, nn.Module) else None, lambda: run(case, module, x, keep, use=use))
    theirs = record.named("multi_head_attention_forward", "_native_multi_head_attention")
    return (
        bool(theirs)
        or fused_gives_nan(record)
        or any(
            isinstance(part, nn.MultiheadAttention)
            for part in (module.modules() if isinstance(module, nn.Module) else ())
        )
    )
