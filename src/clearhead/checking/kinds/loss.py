"""The kind `loss`: which targets are scored, on which positions, by which formula, and what they are divided by."""

from __future__ import annotations

import re

import torch

from clearhead.checking.kinds.kind import Found, Kind
from clearhead.checking.kinds.loss_calling import LENGTH, ROWS, LossCase, constants, opened
from clearhead.checking.kinds.loss_marks import LENGTHS, SAME, Mark, division, hidden, ids_of, marks
from clearhead.checking.kinds.loss_reading import (
    NEAR,
    Formula,
    aligned,
    counted,
    formula,
    gradient,
    logits_of,
    offsets,
)
from clearhead.checking.report import Certainty, Check, Fault
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.watch import watched
from clearhead.messages import say

UNSHIFTED, TWICE = "loss.unshifted", "loss.shifted-twice"
SOFTMAX, MEANS, PADS, EOS = "loss.double-softmax", "loss.mean-of-means", "loss.pads-counted", "loss.eos-masked"
ENDS = r"eos|eot|end_?(id|token|of)|^end$"
SCORING = (
    "cross_entropy",
    "nll_loss",
    "gather",
    "take_along_dim",
    "__getitem__",
    "log_softmax",
    "logsumexp",
    "softmax",
)


def check(case: LossCase, settings: Settings) -> Found:
    """Everything that is asked of a loss."""
    avoid = set(constants(case.target).values())
    logits, ids = logits_of(case, ROWS, LENGTH), ids_of(case, avoid)
    seen = offsets(case, logits, ids)
    if not seen:
        reason = say("loss.no_target")
        return Found(tuple(Check(id, "skipped", reason) for id in (UNSHIFTED, TWICE, SOFTMAX, MEANS, PADS, EOS)))
    shift = seen.most_common(1)[0][0]
    read = formula(gradient(case, logits, ids), logits, ids, shift)
    ignored = hidden(case, shift)
    found = _shifted(case, shift) + _formula(case, read)
    found += _marked(case, shift, ignored, _even(case, read, ids, shift))
    return found + _end(case, shift, ignored) + _one_row(case)


def _even(case: LossCase, read: Formula, ids: torch.Tensor, shift: int) -> bool:
    """Whether all positions weigh the same where there is no padding."""
    weights = read.weights[(aligned(ids, shift) >= 0) & (read.weights != 0)]
    return weights.numel() > 0 and float(weights.max() - weights.min()) <= NEAR * float(weights.abs().max())


def line(case: LossCase) -> str:
    """The line that scores."""
    with Attempt():
        logits, ids = logits_of(case, ROWS, LENGTH), ids_of(case)
        record = watched(None, lambda: case.run(logits, ids, {}))
        for name in SCORING:
            ops = [op for op in record.named(name) if op.where]
            if ops:
                return ops[-1].where
    return ""


def _failed(
    case: LossCase, id: str, evidence: str, fix: str, size: float = 1.0, *, certainty: Certainty = "reproduced"
) -> Found:
    return Found((Check(id, "fail", evidence, size),), (Fault(id, certainty, evidence, line(case), fix, size),))


def _shifted(case: LossCase, shift: int) -> Found:
    """Which token a position is scored on: the next one, or what the caller put there."""
    wanted = case.shift
    right = shift in (0, 1) if wanted is None else shift == wanted
    if right:
        said = say("loss.shift", name=case.named, shift=shift)
        notes = (say("loss.shift_unsaid", name=case.named, shift=shift),) if wanted is None else ()
        return Found((Check(UNSHIFTED, "pass", said), Check(TWICE, "pass", said)), notes=notes)
    expected = 1 if wanted is None else wanted
    evidence = say("loss.shift_wrong", name=case.named, shift=shift, wanted=expected, length=LENGTH)
    fix = (
        say("loss.fix_shift_inside", name=case.named)
        if expected == 1
        else say("loss.fix_shift_outside", name=case.named)
    )
    return _failed(case, TWICE if shift > expected else UNSHIFTED, evidence, fix, abs(shift - expected))


def _formula(case: LossCase, read: Formula) -> Found:
    """Logits go in once."""
    if read.name == "once":
        weights = read.weights[read.weights != 0]
        if bool((weights < 0).all()):
            return _failed(case, "loss.sign", say("loss.sign"), say("loss.fix_sign"))
        notes = (say("loss.smoothed", smoothing=f"{read.smoothing:.3g}"),) if read.smoothing else ()
        return Found((Check(SOFTMAX, "pass", say("loss.once", positions=int((read.weights != 0).sum()))),), notes=notes)
    if read.name == "twice":
        return _failed(case, SOFTMAX, say("loss.twice"), say("loss.fix_twice"))
    if read.name == "no-log":
        return _failed(case, "loss.log-missing", say("loss.no_log"), say("loss.fix_no_log"))
    return Found((Check(SOFTMAX, "skipped", say("loss.own_formula")),))


def _marked(case: LossCase, shift: int, ignored: list[int], even: bool) -> Found:
    """Marked targets do not count, real ones do, and their sum is divided by their number."""
    tried = list(marks(case, shift, ignored))
    if not tried:
        reason = say("loss.no_mark")
        return Found((Check(PADS, "skipped", reason), Check(MEANS, "skipped", reason)))
    own = [mark for mark in tried if mark.role != "ignored"]
    found = Found()
    # A loss that has a mask of its own need not know -100.
    for mark in own or tried:
        found += _counted(case, mark) if not mark.right else _divided(case, mark, even, shift)
    return found


def _counted(case: LossCase, mark: Mark) -> Found:
    """A mark of which something counts, or that hides what is real."""
    lengths = ", ".join(map(str, LENGTHS.tolist()))
    if bool(mark.wrong.any()):
        row, place = mark.wrong.nonzero()[0].tolist()
        evidence = say(
            "loss.counted", name=mark.name, lengths=lengths, wrong=int(mark.wrong.sum()), real=int(mark.real.sum()), row=row, place=place
        )  # fmt: skip
        return _failed(
            case, PADS, evidence, say("loss.fix_counted", name=mark.name), float(mark.wrong.sum() / mark.real.sum())
        )
    row, place = mark.lost.nonzero()[0].tolist()
    evidence = say("loss.lost", name=mark.name, lengths=lengths, lost=int(mark.lost.sum()), row=row, place=place)
    return _failed(
        case, EOS, evidence, say("loss.fix_lost"), float(mark.lost.sum() / mark.real.sum()), certainty="consistent"
    )


def _divided(case: LossCase, mark: Mark, even: bool, shift: int) -> Found:
    """What the sum is divided by."""
    count, lengths = int(mark.real.sum()), ", ".join(map(str, LENGTHS.tolist()))
    notes: tuple[str, ...] = (say("loss.reverse", name=mark.name),) if mark.reverse else ()
    if mark.reverse and mark.name == "attention_mask":
        return _failed(case, "mask.polarity", say("loss.polarity", name=mark.name), say("loss.fix_polarity"))
    counted_right = Check(PADS, "pass", say("loss.not_counted", name=mark.name, real=count))
    made = division(mark, even, case, shift)
    if made is None or not made.name:
        return Found((counted_right, Check(MEANS, "skipped", say("loss.own_division", name=mark.name))), notes=notes)
    if made.name == "means":
        shown = ", ".join(f"{w:.4f}" for w in made.weights)
        evidence = say(
            "loss.means", name=mark.name, lengths=lengths, weights=shown, count=count, wanted=f"{1 / count:.4f}"
        )
        effect = max(abs(w * count - 1) for w in made.weights)
        return Found((counted_right,)) + _failed(case, MEANS, evidence, say("loss.fix_means"), effect)
    if made.name == "positions":
        evidence = say("loss.all_positions", name=mark.name, number=f"{made.number:.0f}", count=count)
        fix = say("loss.fix_all_positions")
        return _failed(case, PADS, evidence, fix, abs(made.number / count - 1))
    notes += (say("loss.summed", number=f"{made.number:.3g}"),) if made.name != "count" else ()
    right = Check(MEANS, "pass", say("loss.divided", name=mark.name, count=count, number=f"{made.number:.4g}"))
    return Found((counted_right, right), notes=notes)


def _end(case: LossCase, shift: int, ignored: list[int]) -> Found:
    """The end of a text is learnt, also where its id is the padding's."""
    ends = {
        v: name for name, v in constants(case.target, everywhere=True).items() if re.search(ENDS, name, re.IGNORECASE)
    }
    same = re.search(SAME, case.target.source, re.IGNORECASE) is not None
    masked = [v for v in ignored if v in ends or same]
    if masked:
        name = ends.get(masked[0], case.roles.get("pad", "pad"))
        return _failed(case, EOS, say("loss.end_masked", name=name, id=masked[0]), say("loss.fix_end"))
    if "eos" not in case.roles and not (same and "pad" in case.roles):
        if ends:
            return Found((Check(EOS, "pass", say("loss.end_counts", name=", ".join(ends.values()))),))
        return Found((Check(EOS, "skipped", say("loss.no_end")),))
    return _end_told(case, shift, ignored)


def _end_told(case: LossCase, shift: int, ignored: list[int]) -> Found:
    """The same of a loss that is told the id: the first of the row is real."""
    end = next(v for v in range(case.vocab - 1, 0, -1) if v not in ignored)
    ids, logits = ids_of(case, {end, *ignored}), logits_of(case, ROWS, LENGTH)
    name = case.roles.get("eos", case.roles.get("pad", ""))
    pads = [{"eos": end}, {"eos": end, "pad": end}] if "pad" in case.roles else [{"eos": end}]
    ids[torch.arange(ROWS), LENGTHS - 1] = end
    told = False
    for options in pads:
        given = ids.clone()
        if "pad" in options:
            given[torch.arange(LENGTH) >= LENGTHS[:, None]] = end
        with Attempt():
            counts = counted(gradient(case, logits, given, options))
            places = LENGTHS - 1 - shift
            told = True
            if not bool(counts[torch.arange(ROWS), places].any()) and bool(counts.any()):
                return _failed(case, EOS, say("loss.end_masked", name=name, id=end), say("loss.fix_end"))
    if not told:
        return Found((Check(EOS, "skipped", say("loss.no_end")),))
    return Found((Check(EOS, "pass", say("loss.end_counts", name=name)),))


def _one_row(case: LossCase) -> Found:
    """A batch of one is a batch."""
    logits, ids = logits_of(case, ROWS, LENGTH)[:1], ids_of(case, set(constants(case.target).values()))[:1]
    with Attempt() as attempt:
        case.run(logits, ids, {})
        return Found((Check("shape.squeezed", "pass", say("loss.one_row")),))
    evidence = say("loss.one_row_raises", reason=attempt.reason)
    if not isinstance(attempt.error, RuntimeError | IndexError):
        return Found((Check("shape.squeezed", "skipped", evidence),))
    return _failed(case, "shape.squeezed", evidence, say("loss.fix_one_row"), 1.0, certainty="consistent")


KIND = Kind("loss", opened, check)
