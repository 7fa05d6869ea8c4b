"""Rounding or fault: the same weights in float64, float32 and bfloat16, and operations that run in less than was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case
from clearhead.checking.claims import stated
from clearhead.checking.common.trial import Trial, apart, run, trial
from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Check, Fault
from clearhead.checking.rounding import GROWTH, UNIT
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.checking.watch import Op, Record, watched
from clearhead.messages import say

HALVES = (torch.float16, torch.bfloat16)
ANGLES = ("cos", "sin", "polar", "outer", "cos_", "sin_")
SCORES = ("softmax", "log_softmax", "exp", "scaled_dot_product_attention", "multi_head_attention_forward")
NORMS = ("var", "std", "var_mean", "rsqrt", "layer_norm", "rms_norm", "mean", "rsqrt_", "norm", "group_norm")
PRODUCTS = ("matmul", "__matmul__", "bmm", "baddbmm", "einsum", "linear")
PRECISIONS = ("norm.low-precision", "rotary.low-precision", "score.precision")


class Narrow(NamedTuple):
    """An operation that ran in a narrower type than its module.

    Args:
        what: "norm", "rotary", "softmax" or "product".
        kind: its type.
        where: its line, or its module.
    """

    what: str
    kind: torch.dtype
    where: str


def precision(case: Case, settings: Settings) -> Found:
    """Which operations run in float32 inside a float64 run (legal, a note) or in 16 bit (a fault), and the table of number types.

    Args:
        case: how the code is run.
        settings: `rounding` asks for the table.
    """
    size = trial(case)
    if size is None:
        return Found()
    notes = () if case.dtype is torch.float64 else (say("common.refuses_float64"),)
    record = _record(case, size)
    found = _narrow(case, record) + Found(notes=notes)
    return found + Found(rounding=tuple(_table(case, size, record))) if settings.rounding else found


def _record(case: Case, size: Trial) -> Record:
    module = case.ready()
    x = case.inputs(*size, 0, case.dtype)
    with torch.no_grad(), Seeded(1):
        return watched(module if isinstance(module, nn.Module) else None, lambda: run(case, module, x))


def _narrow(case: Case, record: Record) -> Found:
    """Notes for float32 islands, faults for 16 bit."""
    seen = list(dict.fromkeys(each for each in _narrowed(case, record)))
    halves = [each for each in seen if each.kind in HALVES]
    islands = [each for each in seen if each.kind not in HALVES]
    notes = [say("common.island", what=each.what, line=each.where) for each in islands]
    if halves and stated(case.target, "dtype", "compute_dtype", "attn_dtype", "softmax_dtype") in HALVES:
        return Found(notes=(*notes, say("common.half_stated", line=halves[0].where)))
    faults: dict[str, Fault] = {}
    for each in halves:
        name = _name(each, halves)
        evidence = say("common.half", what=each.what, kind=_short(each.kind), line=each.where, run=_short(case.dtype))
        faults.setdefault(
            name, Fault(name, "reproduced", evidence, each.where, say("common.fix_half"), UNIT[each.kind])
        )
    asked = say("common.types_watched", count=len(record.ops), run=_short(case.dtype))
    checks = [
        Check(name, "fail", faults[name].evidence, faults[name].effect or 0.0)
        if name in faults
        else Check(name, "pass" if record.ops else "skipped", asked)
        for name in PRECISIONS
    ]
    return Found(tuple(checks), tuple(faults.values()), tuple(dict.fromkeys(notes)))


def _narrowed(case: Case, record: Record) -> Iterator[Narrow]:
    """Operations of real numbers narrower than the run that do more than hold a constant."""
    for op in record.ops:
        what = _what(op, record)
        given = [each for each in (*op.arguments, *op.keywords.values()) if isinstance(each, Tensor)]
        kinds = [each.dtype for each in _results(op.result) if each.is_floating_point() or each.is_complex()]
        kinds = [torch.float32 if kind is torch.complex64 else kind for kind in kinds]
        if not what or not kinds or kinds[0] not in UNIT or not given:
            continue
        if UNIT[kinds[0]] > UNIT[case.dtype]:
            yield Narrow(what, kinds[0], op.where or op.module)


def _what(op: Op, record: Record) -> str:
    """What an operation is for; "" if it may well hold a mask or an index."""
    if op.name in ANGLES:
        return "rotary"
    if op.name in SCORES:
        return "softmax"
    if op.name in NORMS:
        return "norm"
    if op.name in ("pow", "square", "sqrt") and re.search(r"norm", op.module, re.IGNORECASE):
        return "norm"
    return "product" if op.name in PRODUCTS else ""


def _name(each: Narrow, halves: list[Narrow]) -> str:
    """The fault of an operation in 16 bit."""
    names = {"norm": "norm.low-precision", "rotary": "rotary.low-precision"}
    return names.get(each.what, "score.precision")


def _results(value: object) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [each for each in value if isinstance(each, Tensor)] if isinstance(value, tuple | list) else []


def _short(kind: torch.dtype) -> str:
    return str(kind).removeprefix("torch.")


def _table(case: Case, size: Trial, record: Record) -> Iterator[tuple[str, str, str, str]]:
    """Rows of (what, float32, bfloat16, verdict): the differences to float64 of the output and of the parts."""
    if case.dtype is not torch.float64:
        return
    runs = {kind: _run_in(case, size, kind) for kind in (torch.float32, torch.bfloat16)}
    parts = [ran.module for ran in record.runs if ran.module and ran.module.count(".") <= 1 and ran.outputs]
    for name in [*dict.fromkeys(parts), ""]:
        wanted = _of(record, name)
        gaps = {kind: apart(wanted, _of(found, name)) if found else None for kind, found in runs.items()}
        shown = [f"{gaps[kind]:.1e}" if gaps[kind] is not None else "-" for kind in runs]
        yield (name or say("common.output"), shown[0], shown[1], _verdict(gaps))


def _run_in(case: Case, size: Trial, kind: torch.dtype) -> Record | None:
    """What is seen of a run with inputs and weights in a type; None if the code refuses it."""
    module = case.ready(kind)
    x = tuple(each.to(kind) if each.is_floating_point() else each for each in case.inputs(*size, 0, case.dtype))
    with Attempt(), torch.no_grad(), Seeded(1):
        return watched(module if isinstance(module, nn.Module) else None, lambda: run(case, module, x))
    return None


def _of(record: Record, name: str) -> Tensor:
    """The output of a part, of the whole if it has no name."""
    if not name:
        found: Tensor = record.result
        return found
    return next(ran.outputs[0] for ran in record.of(name) if ran.outputs)


def _verdict(gaps: dict[torch.dtype, float | None]) -> str:
    """Rounding if each difference is one of its type; with the size that was expected."""
    for kind, gap in gaps.items():
        if gap is not None and gap > GROWTH[kind] * UNIT[kind]:
            return say("common.more_than_rounding", kind=_short(kind), gap=f"{gap:.1e}", expected=f"{UNIT[kind]:.1e}")
    return say("common.rounding", single=f"{UNIT[torch.float32]:.1e}", half=f"{UNIT[torch.bfloat16]:.1e}")
