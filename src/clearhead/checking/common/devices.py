"""Whether every tensor is made where the input is: a run without numbers on another device tells."""

from __future__ import annotations

import inspect
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
WRITTEN = r"device\s*=\s*(torch\.device\()?[\"'](cpu|cuda|mps)"
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
        with Attempt() as attempt, torch.no_grad(), _hooked(module, record) as running, _Watch(record, running, False):
            case.run(module, x)
        return _judged(module, record, attempt)
    return Found((Check(HARD, "skipped", say("common.no_meta", reason=moved.reason)),))


def _judged(module: nn.Module, record: Record, attempt: Attempt) -> Found:
    parted = _looked_up(record)
    if attempt.error is None and not parted:
        return Found((Check(HARD, "pass", say("common.meta_runs")),))
    reason = attempt.reason if attempt.error is not None else parted
    skipped = Check(HARD, "skipped", say("common.no_meta", reason=reason))
    if not parted and not re.search(PARTED, str(attempt.error)):
        return Found((skipped,))
    culprit = _attribute(module) or _line(module, record)
    if not culprit:
        # Without a device, a tensor is made on the default one, which a user can set; that is no fixed device.
        made = _made(record)
        return Found((skipped,), notes=(say("common.default_device", line=made),) if made else ())
    evidence = say("common.hard_coded", culprit=culprit, reason=reason)
    fault = Fault(HARD, "consistent", evidence, culprit, say("common.fix_hard_coded"))
    return Found((Check(HARD, "fail", evidence, 1.0),), (fault,))


def _looked_up(record: Record) -> str:
    """Where rows of a table are looked up by numbers of another device, which "meta" lets pass and no real device does; "" if nowhere."""
    for op in record.named("embedding"):
        index, table = (op.argument(at, name) for at, name in ((0, "input"), (1, "weight")))
        if isinstance(index, Tensor) and isinstance(table, Tensor) and index.device != table.device:
            return f"embedding: {index.device.type}, {table.device.type}"
    return ""


def _attribute(module: nn.Module) -> str:
    """The plain attribute of a part that holds a tensor on the processor; "" if there is none."""
    for path, part in module.named_modules():
        for name, value in vars(part).items():
            if name not in ("_parameters", "_buffers", "_modules") and _left(value):
                return f"{path}.{name}".strip(".")
    return ""


def _made(record: Record) -> str:
    """The last line that made a tensor on the processor."""
    return next((op.where for op in reversed(record.ops) if op.name in MAKERS and _left(op.result) and op.where), "")


def _line(module: nn.Module, record: Record) -> str:
    """The line that made a tensor on a device that is written down; "" if none was."""
    told = [op for op in record.ops if op.name in MAKERS and op.keywords.get("device") is not None and _left(op.result)]
    if not told or not any(re.search(WRITTEN, source_of(type(part))) for part in module.modules()):
        return ""
    return told[-1].where


def source_of(kind: type) -> str:
    """The text of a class; "" if it is PyTorch's, or cannot be read."""
    if kind.__module__.split(".")[0] == "torch":
        return ""
    with Attempt():
        return inspect.getsource(kind)
    return ""


def _left(value: Any) -> bool:
    return isinstance(value, Tensor) and value.device.type == "cpu" and value.dim() > 0
