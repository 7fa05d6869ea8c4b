"""The kind `norm`: (..., D) -> (..., D), each position brought to a common size by its own features."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.common.everything import everything
from clearhead.checking.kinds.kind import Found, Kind
from clearhead.checking.kinds.norm_case import NormCase, open_norm
from clearhead.checking.kinds.norm_claims import (
    Seen,
    claimed_formula,
    failed,
    offset,
    passed,
    skipped,
    stated_epsilon,
    with_common,
)
from clearhead.checking.kinds.norm_formulas import (
    LAYER,
    RMS,
    Fit,
    affine,
    best,
    faulty,
    legal,
    other_axes,
    others,
)
from clearhead.checking.kinds.norm_places import place_of_axis, place_of_narrow, place_of_spread
from clearhead.checking.kinds.norm_words import (
    claims_layer,
    claims_other_axis,
    claims_rms,
    class_name,
    plain_name,
    words,
)
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.watch import Record, watched
from clearhead.messages import say

IDS = (
    "norm.axis", "norm.formula", "norm.unbiased-variance", "norm.offset", "norm.eps-placement", "norm.eps-value",
    "norm.low-precision",
)  # fmt: skip

SPREAD = r"x */ *(std|sqrt\(var)"
"""Words for a division by the standard deviation in which no mean is taken off, as it is meant."""
NARROW = 3e-5
"""What is left of a formula above rounding in float32."""


def check_norm(case: NormCase, settings: Settings) -> Found:
    """Statistics over the features alone, a legal formula, its constants as stated."""
    return with_common(_own(case), everything(case.case, settings))


def _own(case: NormCase) -> Found:
    target = case.case.target
    if claims_other_axis(target):
        noted = Found(notes=(say("small.norm_other", name=class_name(target)),))
        return noted + skipped(IDS, say("small.norm_other_skip"))
    axis = _axis(case)
    if axis.checks and axis.checks[0].verdict == "skipped":
        return axis + skipped(IDS[1:], say("small.norm_blind"))
    return axis + (skipped(IDS[1:], say("small.norm_after_axis")) if axis.faults else _formula(case))


@torch.no_grad()
def _axis(case: NormCase) -> Found:
    """Whether an output moves when another position or another row is changed; in evaluation, then in training."""
    for training in (False, True):
        module = case.drawn(training)
        with Attempt() as attempt:
            x = _rows(case, 1.0, 2.0)
            y = case(module, x)
            changed = x.clone()
            changed[0, 0] = -1.7 * x[0, 0] + 3
            # A fresh copy: running statistics must not stand between the two.
            moved = (case(case.drawn(training), changed) - y).abs().nan_to_num(nan=torch.inf).amax(-1)
        if attempt.error is not None:
            break
        own = float(moved[0, 0])
        size = float(y.abs().max()) + 1e-30
        moved[0, 0] = 0
        largest = float(moved.max()) / size
        if largest > 1e-9 and (case.case.dtype == torch.float64 or largest > 1e-5):
            return _wrong_axis(case, module, x, y=y, moved=moved, training=training)
        if own / size < 1e-9:
            return skipped(("norm.axis",), say("small.norm_blind"))
    return passed("norm.axis", say("small.norm_axis_pass", own=f"{own / size:.1e}"))


def _wrong_axis(case: NormCase, module: Any, x: Tensor, *, y: Tensor, moved: Tensor, training: bool) -> Found:
    largest = float(moved.max()) / (float(y.abs().max()) + 1e-30)
    large = x * 1e3
    if not training:
        y = case(module, large)
    fit = best(other_axes(large), y) if not training else best(other_axes(x), y)
    reproduced = fit.left < 1e-3
    target = case.case.target
    said = claims_layer(target) or claims_rms(target) or plain_name(target)
    if not reproduced and not said:
        return Found(notes=(say("small.norm_mixes", largest=f"{largest:.1e}"),)) + skipped(
            ("norm.axis",), say("small.norm_other_skip")
        )
    if training and not said:
        return Found(notes=(say("small.norm_other", name=class_name(target)),))
    t, b = int(moved.amax(0).argmax()), int(moved.amax(1).argmax())
    over = fit.name.strip() if reproduced else say("small.norm_axis_unknown")
    mode = say("small.training") if training else say("small.evaluation")
    evidence = say("small.norm_axis", row=b, position=t, largest=f"{largest:.1e}", over=over, mode=mode)
    record = _recorded(case, module, x)
    return failed(
        "norm.axis", reproduced, evidence, place_of_axis(record), fix=say("small.norm_axis_fix"), effect=largest
    )


def _rows(case: NormCase, low: float, high: float) -> Tensor:
    """(3,T,D) whose positions have sizes of their own, between two, and means that are not 0."""
    drawn = torch.Generator().manual_seed(2)
    shape = (3, case.length or 8, case.width)
    z = torch.randn(shape, generator=drawn, dtype=torch.float64)
    z = z + 1.5 * torch.randn(*shape[:2], 1, generator=drawn, dtype=torch.float64) + 0.3
    powers = torch.rand(*shape[:2], 1, generator=drawn, dtype=torch.float64)
    return (z * low * (high / low) ** powers).to(case.case.dtype)


def _recorded(case: NormCase, module: Any, x: Tensor) -> Record:
    return watched(module if isinstance(module, nn.Module) else None, lambda: case(module, x))


def _formula(case: NormCase) -> Found:
    """Which formula it is, and what follows from that."""
    module = case.drawn()
    x = _rows(case, 1e2, 1e4)
    record = _recorded(case, module, x)
    narrow = place_of_narrow(record)
    y = record.result.detach()
    if narrow or not bool(y.isfinite().all()):
        # Large numbers overflow in 16 bits: that is another matter than their rounding.
        x = _rows(case, 1.0, 30.0)
        with torch.no_grad():
            y = case(module, x)
    elif _spread(y) < 1e-2:
        # What falls with the size of x leaves the bias alone where x is large, and a bias fits any formula.
        x = _rows(case, 3.0, 30.0)
        with torch.no_grad():
            y = case(module, x)
    right, other, wrong = (best(each(x.double()), y) for each in (legal, others, faulty))
    if NARROW < right.left < 0.05 and narrow and wrong.left > NARROW:
        return _narrow(right, narrow)
    if right.left > NARROW:
        return _no_legal(case, (right, other, wrong), record)
    fine = case.case.dtype == torch.float64 and right.left < 1e-9
    how = affine(right.gamma, case.tensors(module), 1e-6 if fine else 3e-5)
    seen = Seen(right, right.name == RMS, how, y)
    found = passed("norm.low-precision", say("small.norm_exact", left=f"{right.left:.1e}"), right.left)
    if right.left > 1e-9 and case.case.dtype == torch.float64:
        found += Found(notes=(say("small.norm_island", left=f"{right.left:.1e}"),))
    return found + claimed_formula(case, seen, record) + offset(case, seen) + stated_epsilon(case, seen, record)


def _spread(y: Tensor) -> float:
    """How much the rows differ, beside their size."""
    rows = y.flatten(0, -2)
    return float((rows - rows.mean(0)).abs().max() / rows.abs().max().clamp(min=1e-100))


def _narrow(right: Fit, where: str) -> Found:
    evidence = say("small.norm_narrow", formula=right.name, left=f"{right.left:.1e}")
    others_skipped = tuple(id for id in IDS[1:] if id != "norm.low-precision")
    found = failed("norm.low-precision", True, evidence, where, fix=say("small.norm_narrow_fix"), effect=right.left)
    return found + skipped(others_skipped, say("small.norm_after_narrow"))


def _no_legal(case: NormCase, fits: tuple[Fit, Fit, Fit], record: Record) -> Found:
    right, other, wrong = fits
    target = case.case.target
    rest = skipped(IDS[2:], say("small.norm_after_formula"))
    where = place_of_spread(record)
    fix = say("small.norm_formula_fix", right=RMS if claims_rms(target) else LAYER)
    size = right.left if right.left < 1e3 else None
    meant = wrong.name == "x / sqrt(var)" and re.search(SPREAD, words(target), re.IGNORECASE) and not plain_name(target)
    if wrong.left < NARROW and wrong.left < other.left and not meant:
        id = "norm.eps-placement" if "(1 / sqrt" in wrong.name else "norm.formula"
        rest = skipped(tuple(each for each in IDS[1:] if each != id), say("small.norm_after_formula"))
        evidence = say("small.norm_formula", found=wrong.name, left=f"{wrong.left:.1e}", right=f"{right.left:.1e}")
        return failed(id, True, evidence, where, fix=fix, effect=size) + rest
    if other.left < NARROW or not plain_name(target):
        shown = wrong.name if meant else other.name if other.left < NARROW else say("small.norm_unknown")
        return Found(notes=(say("small.norm_named", found=shown),)) + skipped(IDS[1:], say("small.norm_named_skip"))
    evidence = say("small.norm_formula_none", right=f"{right.left:.1e}", name=right.name)
    return failed("norm.formula", False, evidence, where, fix=fix, effect=size) + rest


KIND = Kind("norm", open_norm, check_norm)
