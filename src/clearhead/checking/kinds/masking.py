"""What a mask does: which keys vanish, whose row it is for, and what becomes of a row that may see nothing."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clearhead.checking.kinds.causality import Seen, watched_with
from clearhead.checking.kinds.claimed import fades, mask_says, words_of_mask
from clearhead.checking.kinds.empty_rows import empty_rows
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.mask_names import named
from clearhead.checking.kinds.masks_found import MaskUse
from clearhead.checking.kinds.seeing import influence, moved, ready, seen_above, size_of
from clearhead.checking.kinds.sequence_case import SequenceCase, run
from clearhead.checking.kinds.stress import ROWS, finite_mask
from clearhead.checking.report import Check, Fault
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.messages import say

NAMES = (
    "mask.polarity",
    "mask.added-as-number",
    "mask.ignored",
    "mask.query-axis",
    "mask.wrong-row",
    "mask.empty-row",
)
LENGTH = 6


def masking(case: SequenceCase, settings: Settings, seen: Seen) -> Found:
    """What is wrong with the masks of a module."""
    if not case.masks or case.length(LENGTH) < 4 or not bool(seen.found.any()):
        reason = say("attention.no_mask", tried=", ".join(case.style.names("mask")) or "-")
        return Found(tuple(Check(name, "skipped", reason) for name in NAMES))
    found = Found()
    for use in case.masks:
        found += _of(case, use, settings, seen)
    return found


def _of(case: SequenceCase, use: MaskUse, settings: Settings, seen: Seen) -> Found:
    """All about one mask."""
    if not use.acts:
        evidence = say("attention.mask_ignored", name=use.name, length=case.length(LENGTH))
        return _fault("mask.ignored", "reproduced", evidence, say("attention.mask_ignored_mend", name=use.name))
    if fades(case.case.target) and _outside(case, use):
        reason = say("attention.mask_right", name=use.name, length=case.length(LENGTH))
        return Found((Check("mask.ignored", "pass", reason),))
    if not use.vanishes:
        return _stays(case, use)
    found = _polarity(case, use, settings) + _rows(case, use, seen)
    if not found.faults and seen.causal and not use.pairs_too:
        found += _future(case, use)
    if use.values != "added":
        with Attempt():
            found += empty_rows(case, use, causal=seen.causal)
        with Attempt():
            keep = torch.zeros(ROWS, case.length(LENGTH), dtype=torch.bool)
            keep[:, 0] = True
            found += finite_mask(case, keep, use)
    return found


@torch.no_grad()
def _outside(case: SequenceCase, use: MaskUse) -> bool:
    """Whether padding at either end is not seen by real positions."""
    x, module = case.inputs(3, case.length(LENGTH), 16), ready(case)
    for pads in (slice(0, 2), slice(-2, None)):
        keep = torch.ones(x.shape[:2], dtype=torch.bool)
        keep[:, pads] = False
        seen = influence(case, module, x, keep, use) > seen_above(case)
        if bool((seen & keep[:, :, None] & ~keep[:, None]).any()):
            return False
    return True


def _fault(
    name: str, certainty: Any, evidence: str, fix: str, *, where: str = "", effect: float | None = None
) -> Found:
    return Found(
        (Check(name, "fail", evidence, effect or 0.0),), (Fault(name, certainty, evidence, where, fix, effect),)
    )


def _stays(case: SequenceCase, use: MaskUse) -> Found:
    """A mask that changes something, and a hidden key that keeps its influence: why."""
    rows, length = (3 if case.heads != 3 else 7), case.length(LENGTH)
    x, keep = case.inputs(rows, length, 11), torch.ones(rows, length, dtype=torch.bool)
    hidden = keep.clone()
    hidden[:, 1] = False
    with torch.no_grad():
        module = ready(case)
        plain, masked = run(case, module, x, keep, use=use), run(case, module, x, hidden, use=use)
    strength = influence(case, module, x, hidden, use)
    left = float(strength[:, 2:, 1].nan_to_num(posinf=1.0).max())
    apart = moved(plain, masked).amax((0, -1)) > seen_above(case) * size_of(plain)
    name, certainty, where, amount = named(
        watched_with(case, x, keep, use), watched_with(case, x, hidden, use), length, apart.tolist()
    )
    word = name.rpartition(".")[2].replace("-", "_")
    evidence = say(f"attention.mask_{word}_seen", name=use.name, change=f"{left:.2g}", amount=amount, length=length)
    return _fault(
        name, certainty, evidence, say(f"attention.mask_{word}_mend", name=use.name), where=where, effect=left
    )


def _polarity(case: SequenceCase, use: MaskUse, settings: Settings) -> Found:
    """Whether the value that keeps a key is the one that is said to."""
    said = mask_says(case.case.target, use.name) if settings.mask_true is None else settings.mask_true == "keep"
    if said is None or use.values == "added":
        return Found((Check("mask.polarity", "skipped", say("attention.polarity_unsaid", name=use.name)),))
    if use.pairs_too and settings.mask_true is None and words_of_mask(case.case.target, use.name) is None:
        # A name alone says nothing of a mask of pairs: both meanings are in use.
        return Found((Check("mask.polarity", "skipped", say("attention.polarity_unsaid", name=use.name)),))
    words = {True: say("attention.keeps"), False: say("attention.drops")}
    text = say("attention.polarity", name=use.name, said=words[said], found=words[use.keeps])
    if said == use.keeps:
        return Found((Check("mask.polarity", "pass", text),))
    record = watched_with(case, case.inputs(2, LENGTH, 1), torch.ones(2, LENGTH, dtype=torch.bool), use)
    where = next((op.where for op in record.named("masked_fill", "masked_fill_", "where") if op.where), "")
    return _fault(
        "mask.polarity",
        "reproduced",
        text,
        say("attention.polarity_fix", name=use.name, said=words[said]),
        where=where,
    )


def _different(rows: int, length: int) -> Tensor:
    """(B,S): each row hides keys of its own; the first key is kept by all."""
    keep = torch.ones(rows, length, dtype=torch.bool)
    for row in range(rows):
        keep[row, 1 + row % (length - 2)] = False
        keep[row, 1 + (row * 2 + 1) % (length - 2)] = row % 2 == 1
    return keep


def _rows(case: SequenceCase, use: MaskUse, seen: Seen) -> Found:
    """Whether each row is hidden by its own mask, and by it alone."""
    if not use.of_rows:
        return Found((Check("mask.ignored", "pass", say("attention.mask_right", name=use.name, length=LENGTH)),))
    rows, length = (3 if case.heads != 3 else 7), case.length(LENGTH)
    x, keep, module = case.inputs(rows, length, 12), _different(rows, length), ready(case)
    above = seen_above(case)
    strength = influence(case, module, x, keep, use)
    others = ~torch.eye(length, dtype=torch.bool)
    # What a hidden position itself gives counts for nothing.
    hidden = (~keep)[:, None] & keep[:, :, None] & others & (strength > above)
    foreign = _foreign(case, use, x, keep)
    if bool(hidden.any()) or foreign is not None:
        row, _, key = [int(n) for n in (hidden.nonzero()[0] if bool(hidden.any()) else torch.zeros(3))]
        if foreign is not None:
            mine, other, change = foreign
            evidence = say(
                "attention.wrong_row", name=use.name, row=mine, other=other, change=f"{change:.2g}", rows=rows
            )
            return _fault("mask.wrong-row", "reproduced", evidence, say("attention.wrong_row_fix"), effect=change)
        evidence = say("attention.mask_leaks", name=use.name, row=row, source=key, length=length)
        return _fault("mask.ignored", "consistent", evidence, say("attention.mask_ignored_mend", name=use.name))
    amount = _amount(case, use)
    if amount is not None:
        evidence = say("attention.mask_amount", name=use.name, change=f"{amount:.2g}", length=length)
        return _fault(
            "mask.ignored", "consistent", evidence, say("attention.mask_ignored_mend", name=use.name), effect=amount
        )
    passed = say("attention.mask_right", name=use.name, length=length)
    right = ("mask.ignored", "mask.wrong-row", "mask.added-as-number", "mask.query-axis")
    return Found(tuple(Check(name, "pass", passed) for name in right))


@torch.no_grad()
def _foreign(case: SequenceCase, use: MaskUse, x: Tensor, keep: Tensor) -> tuple[int, int, float] | None:
    """(row, other row, change) if a row moves when the mask of another changes and its own does not."""
    module = ready(case)
    base = run(case, module, x, keep, use=use)
    for other in range(x.shape[0]):
        marks = keep.clone()
        marks[other, 1:] = ~marks[other, 1:]
        apart = moved(base, run(case, module, x, marks, use=use)).amax((1, 2)) / size_of(base)
        apart[other] = 0.0
        if float(apart.max()) > seen_above(case):
            return int(apart.argmax()), other, min(float(apart.max()), 1e6)
    return None


@torch.no_grad()
def _amount(case: SequenceCase, use: MaskUse) -> float | None:
    """How far real positions move when padding is put behind them; None if they do not, or no other length is taken."""
    if case.fixed is not None:
        return None
    length, real = case.length(LENGTH), case.length(LENGTH) - 2
    x, module = case.inputs(2, length, 13), ready(case)
    keep = torch.ones(2, length, dtype=torch.bool)
    keep[:, real:] = False
    padded = run(case, module, x, keep, use=use)[:, :real]
    alone = run(case, module, x[:, :real], keep[:, :real], use=use)
    apart = float(moved(padded, alone).max()) / size_of(alone)
    return apart if apart > max(seen_above(case), 1e-9) else None


def _future(case: SequenceCase, use: MaskUse) -> Found:
    """Whether a causal module hides the future also when a mask is given."""
    rows, length = 3, case.length(LENGTH)
    x, keep, module = case.inputs(rows, length, 14), _different(rows, length), ready(case)
    # What a hidden position itself gives counts for nothing.
    strength = (influence(case, module, x, keep, use) * keep[:, :, None]).amax(0)
    leak = (strength > seen_above(case)) & torch.ones(length, length, dtype=torch.bool).triu(1)
    if not bool(leak.any()):
        return Found()
    query, key = [int(n) for n in leak.nonzero()[0]]
    change = float(strength[query, key].nan_to_num(posinf=1.0))
    evidence = say(
        "attention.leak_masked", name=use.name, length=length, query=query, source=key, change=f"{change:.2g}"
    )
    return _fault("causal.future-leak", "consistent", evidence, say("attention.leak_fix"), effect=change)
