"""Whether each row of a batch is what it is alone, and axes of length one are kept."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case, Inputs
from clearhead.checking.claims import says
from clearhead.checking.common.trial import Trial, apart, given, output, same, tolerance, trial
from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Check, Fault
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.checking.watch import watched
from clearhead.messages import say

MIXED, SQUEEZED = "batch.mixing", "shape.squeezed"
BATCHES = ("batchnorm", "batch_norm", "batch norm", "batch statistics", "capacity")
"""Words of code whose rows depend on each other on purpose."""

ISLAND = 2.0**-20
"""How far a part that stays in float32 may move a row with the number of rows: products are then summed in another order. Where no
part does, nothing but the rounding of the case's own type is let pass."""


def rows(case: Case) -> Found:
    """Whether rows are independent, by value and by gradient, and a batch or a length of one keeps its axis.

    Args:
        case: how the code is run.
    """
    size = trial(case)
    if size is None:
        reason = say("common.no_trial")
        return Found((Check(MIXED, "skipped", reason), Check(SQUEEZED, "skipped", reason)))
    full = output(case, case.ready(), given(case, *size), seed=1)
    if full.dim() == 0 or full.shape[0] != size.rows:
        reason = say("common.no_rows", shape=tuple(full.shape), rows=size.rows)
        return Found((Check(MIXED, "skipped", reason), Check(SQUEEZED, "skipped", reason)))
    mixed = _mixing(case, size, full)
    return mixed + _squeezing(case, size, full, alone_tells=mixed.checks[0].verdict == "pass")


def _mixing(case: Case, size: Trial, full: Tensor) -> Found:
    """Whether changing one row moves another, or the number of rows does."""
    x, other = given(case, *size), given(case, size.rows, size.length, 9)
    moves, crossed = 0.0, (0.0, 0, 0)
    for row in (0, size.rows - 1, 1):
        changed = output(case, case.ready(), _with_row(x, other, row), seed=1)
        if changed.shape != full.shape:
            continue
        moves = max(moves, apart(full[row], changed[row]))
        for seen in (index for index in range(size.rows) if index != row):
            crossed = max(crossed, (apart(full[seen], changed[seen]), row, seen))
    if moves <= tolerance(case) and crossed[0] <= tolerance(case):
        return Found((Check(MIXED, "skipped", say("common.no_influence")),))
    gap, row, seen = crossed
    evidence = say(
        "common.rows", rows=size.rows, length=size.length, row=row, seen=seen, gap=f"{gap:.1e}", own=f"{moves:.1e}"
    )
    if gap > tolerance(case):
        return _mixed(case, evidence, gap)
    gradient = _crossing(case, x)
    if gradient is not None and gradient[0] > tolerance(case):
        return _mixed(case, say("common.rows_gradient", row=gradient[1], gap=f"{gradient[0]:.1e}"), gradient[0])
    pair = output(case, case.ready(), tuple(each[:2] for each in x), seed=1)
    gap = apart(pair, full[:2]) if pair.shape[1:] == full.shape[1:] else 0.0
    if not same(case, pair, full[:2]) and (gap > ISLAND or not _narrow(case, x)):
        return _mixed(case, say("common.rows_count", rows=size.rows, gap=f"{gap:.1e}"), gap)
    return Found((Check(MIXED, "pass", evidence, gap),))


def _narrow(case: Case, x: Inputs) -> bool:
    """Whether some part stays in float32 though the code runs in float64."""
    module = case.ready()
    record = watched(module if isinstance(module, nn.Module) else None, lambda: output(case, module, x, seed=1))
    return any(op.result is not None and op.result.dtype == torch.float32 for op in record.ops)


def _with_row(x: Inputs, other: Inputs, row: int) -> Inputs:
    """The inputs with one row of others."""
    changed = tuple(each.clone() for each in x)
    for mine, theirs in zip(changed, other, strict=True):
        if mine.dim() and mine.shape == theirs.shape and mine.shape[0] > row:
            mine[row] = theirs[row]
    return changed


def _crossing(case: Case, x: Inputs) -> tuple[float, int] | None:
    """The largest gradient of the first row's output at another row's input, beside its own, and that row; None if there are none."""
    inputs = tuple(each.clone().requires_grad_(each.is_floating_point()) for each in x)
    with Attempt(), torch.enable_grad(), Seeded(1):
        found = case.run(case.ready(), inputs)
        wanted = [each for each in inputs if each.requires_grad and each.dim()]
        if not wanted or not found.requires_grad:
            return None
        drawn = torch.Generator().manual_seed(4)
        weights = torch.randn(found[0].shape, generator=drawn, dtype=torch.float64).to(found.dtype)
        gradients = torch.autograd.grad((found[0] * weights).sum(), wanted, allow_unused=True)
        sizes = [each.detach().abs().flatten(1).amax(1) for each in gradients if each is not None and each.dim() > 1]
        if not sizes:
            return None
        total = torch.stack(sizes).amax(0)
        if not bool(total.isfinite().all()) or float(total[0]) == 0:
            return None
        row = int(total[1:].argmax()) + 1
        return float(total[row] / total[0]), row
    return None


def _mixed(case: Case, evidence: str, gap: float) -> Found:
    """The fault, unless the code says that rows depend on each other."""
    made = case.target.make()
    parts = made.modules() if isinstance(made, nn.Module) else ()
    if any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in parts) or says(case.target, *BATCHES):
        note = say("common.batch_statistics")
        return Found((Check(MIXED, "skipped", note),), notes=(note,))
    fault = Fault(MIXED, "consistent", evidence, "", say("common.fix_mixing"), gap)
    return Found((Check(MIXED, "fail", evidence, gap),), (fault,))


def _squeezing(case: Case, size: Trial, full: Tensor, *, alone_tells: bool) -> Found:
    """Whether one row, or one position, keeps its axis and its values."""
    wrong = _one_row(case, size, full, alone_tells=alone_tells) or _one_position(case, size, full)
    if not wrong:
        return Found((Check(SQUEEZED, "pass", say("common.axes_kept", rows=size.rows, length=size.length)),))
    fault = Fault(SQUEEZED, "consistent", wrong, "", say("common.fix_squeezed"))
    return Found((Check(SQUEEZED, "fail", wrong, 1.0),), (fault,))


def _one_row(case: Case, size: Trial, full: Tensor, *, alone_tells: bool) -> str:
    """What is wrong with a batch of one; "" if nothing is."""
    x = given(case, *size)
    wanted = (1, *full.shape[1:])
    with Attempt() as attempt:
        alone = output(case, case.ready(), tuple(each[:1] for each in x), seed=1)
        if tuple(alone.shape) != wanted:
            return say("common.squeezed", axis="B", found=tuple(alone.shape), wanted=wanted)
        narrow = apart(alone, full[:1]) <= ISLAND and _narrow(case, x)
        if alone_tells and not same(case, alone, full[:1]) and not narrow:
            return say("common.alone_differs", gap=f"{apart(alone, full[:1]):.1e}")
        return ""
    return _raised(attempt.error, "B", attempt.reason)


def _one_position(case: Case, size: Trial, full: Tensor) -> str:
    """What is wrong with a length of one; "" if nothing is, or lengths are not free."""
    axis = case.length_axis
    if axis is None or axis >= full.dim() or full.shape[axis] != size.length:
        return ""
    for length in (2, 3):
        with Attempt() as shorter:
            found = output(case, case.ready(), given(case, size.rows, length), seed=1)
            if found.dim() != full.dim() or found.shape[axis] != length:
                return ""
        if shorter.error is not None:
            return ""
    wanted = tuple(1 if index == axis else n for index, n in enumerate(full.shape))
    with Attempt() as attempt:
        one = output(case, case.ready(), given(case, size.rows, 1), seed=1)
        if tuple(one.shape) != wanted:
            return say("common.squeezed", axis="T", found=tuple(one.shape), wanted=wanted)
        return ""
    return _raised(attempt.error, "T", attempt.reason)


def _raised(error: Exception | None, axis: str, reason: str) -> str:
    """A lost axis shows as an error about shapes, too; what the code refuses by itself is no fault."""
    return (
        say("common.squeezed_raises", axis=axis, reason=reason) if isinstance(error, RuntimeError | IndexError) else ""
    )
