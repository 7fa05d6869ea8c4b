"""Whether every tensor is made where the input is: a run without numbers on another device tells."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case
from clearhead.checking.common.trial import given, trial
from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Check, Fault
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.checking.watch import Record, _hooked, _Watch
from clearhead.messages import say

HARD = "device.hard-coded"
PARTED = r"on device|same device|expected device|device type|Cannot copy out of meta|is on cpu|devices"
MAKERS = (
    "tensor", "ones", "zeros", "arange", "full", "eye", "tril_indices", "triu_indices", "linspace", "empty", "from_numpy",
    "as_tensor", "randn", "rand", "randint", "outer", "tril", "triu", "logspace", "scalar_tensor",
)  # fmt: skip


def devices(case: Case) -> Found:
    """Whether the code runs where its weights and inputs are, with no tensor left behind.

    The weights and the inputs are put on the device "meta", on which nothing is computed; an operation that meets a tensor of another
    device refuses to run. Code that cannot run there for another reason (it looks at values) is skipped.

    Args:
        case: how the code is run.
    """
    size = trial(case)
    if size is None or not case.target.is_module:
        return Found()
    record = Record()
    with Attempt() as moved, Seeded(1):
        module = case.ready().to("meta")
        x = tuple(each.to("meta") for each in given(case, *size))
        with Attempt() as attempt, torch.no_grad(), _hooked(module, record) as running, _Watch(record, running):
            case.run(module, x)
        return _judged(module, record, attempt)
    return Found((Check(HARD, "skipped", say("common.no_meta", reason=moved.reason)),))


def _judged(module: nn.Module, record: Record, attempt: Attempt) -> Found:
    if attempt.error is None:
        return Found((Check(HARD, "pass", say("common.meta_runs")),))
    culprit = _culprit(module, record)
    if not re.search(PARTED, str(attempt.error)) or not culprit:
        return Found((Check(HARD, "skipped", say("common.no_meta", reason=attempt.reason)),))
    evidence = say("common.hard_coded", culprit=culprit, reason=attempt.reason)
    fault = Fault(HARD, "reproduced", evidence, culprit, say("common.fix_hard_coded"))
    return Found((Check(HARD, "fail", evidence, 1.0),), (fault,))


def _culprit(module: nn.Module, record: Record) -> str:
    """The attribute or the line that holds a tensor on the processor; "" if there is none that is the code's own."""
    for path, part in module.named_modules():
        for name, value in vars(part).items():
            if name not in ("_parameters", "_buffers", "_modules") and _left(value):
                return f"{path}.{name}".strip(".")
    made = [op for op in record.ops if op.name in MAKERS and _left(op.result) and op.where]
    return made[-1].where if made else ""


def _left(value: Any) -> bool:
    return isinstance(value, Tensor) and value.device.type == "cpu" and value.dim() > 0
