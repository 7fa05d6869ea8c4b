"""The masks of a memory: a position of it that is hidden must have no influence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from clearhead.checking.kinds.claimed import mask_says
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.masks_found import MaskUse
from clearhead.checking.kinds.masks_tried import SHAPES, VALUES
from clearhead.checking.kinds.seeing import changed, moved, ready, seen_above, size_of
from clearhead.checking.kinds.sequence import SequenceCase, run
from clearhead.checking.report import Check, Fault
from clearhead.checking.strangers import Attempt
from clearhead.messages import say

ROWS, LENGTH, MEMORY = 2, 5, 9
HIDDEN = 3
"""The position of the memory that is hidden."""
OF_MEMORY = r"^(memory|mem|context|ctx|encoder|enc|cross|src|source|kv)_"


def memory_masks(case: SequenceCase) -> Found:
    """What is wrong with the masks of a memory."""
    found = Found()
    for name in case.style.names("memory_mask"):
        found += _of(_alone(case, name), name)
    return found


def _alone(case: SequenceCase, name: str) -> SequenceCase:
    """The case with one mask of a memory; others are left to what they are without."""
    roles = ((n, "mask" if role == "memory_mask" and n != name else role) for n, role in case.style.roles)
    return replace(case, style=replace(case.style, roles=tuple(roles)))


@torch.no_grad()
def _of(case: SequenceCase, name: str) -> Found:
    """All about one mask."""
    module, x = ready(case), case.inputs(ROWS, case.length(LENGTH), 15)
    drawn = torch.Generator().manual_seed(16)
    memory = torch.randn(ROWS, MEMORY, case.width, generator=drawn, dtype=torch.float64).to(case.case.dtype)
    said = _said(case, name)
    tried = [(use, seen) for use in _uses(name, said) if (seen := _tried(case, module, (x, memory), use)) is not None]
    above = seen_above(case)
    alive = [(use, seen) for use, seen in tried if seen[1] > above]
    if not alive:
        return Found((Check("mask.ignored", "skipped", say("block.no_memory_mask", name=name)),))
    hiding = [use for use, (hidden, _) in alive if hidden <= above]
    # Numbers that are added have one meaning, whatever is said; they tell nothing where marks are taken.
    right = next(iter(sorted(hiding, key=lambda use: use.values == "added")), None)
    if right is not None and (said is None or right.keeps == said or right.values == "added"):
        return Found((Check("mask.ignored", "pass", say("attention.mask_right", name=name, length=MEMORY)),))
    words = {True: say("attention.keeps"), False: say("attention.drops")}
    if right is not None and said is not None:
        text = say("attention.polarity", name=name, said=words[said], found=words[right.keeps])
        return _fault("mask.polarity", text, say("attention.polarity_fix", name=name, said=words[said]), None)
    hidden = min(seen[0] for _, seen in alive)
    evidence = say("block.memory_mask", name=name, position=HIDDEN, length=MEMORY, change=f"{hidden:.2g}")
    return _fault("mask.ignored", evidence, say("attention.mask_ignored_mend", name=name), hidden)


def _said(case: SequenceCase, name: str) -> bool | None:
    """What True or 1 is said to mean: by words about the mask, by its name, or by its name without what says of what it is."""
    said = mask_says(case.case.target, name)
    return said if said is not None else mask_says(case.case.target, re.sub(OF_MEMORY, "", name.lower()))


def _fault(name: str, evidence: str, fix: str, effect: float | None) -> Found:
    fault = Fault(name, "reproduced", evidence, "", fix, effect)
    return Found((Check(name, "fail", evidence, effect or 0.0),), (fault,))


def _uses(name: str, said: bool | None) -> Iterator[MaskUse]:
    """Ways to give a mask, those with the stated meaning first."""
    for keeps in (said is not False, said is False):
        for shape in SHAPES:
            yield from (MaskUse(name, shape, values, keeps) for values in VALUES)


def _tried(case: SequenceCase, module: Any, given: tuple[Tensor, Tensor], use: MaskUse) -> tuple[float, float] | None:
    """How far the output moves with a hidden position of the memory and with a kept one; None if the mask is not taken so."""
    x, memory = given
    keep = torch.ones(memory.shape[:2], dtype=torch.bool)
    keep[:, HIDDEN] = False

    def out(other: Tensor) -> Tensor:
        return run(case, module, x, memory=other, memory_keep=keep, use=use)

    with Attempt():
        base = out(memory)
        if base.shape[:2] != x.shape[:2] or not bool(base.isfinite().all()):
            return None
        hidden, kept = (
            float(moved(base, out(changed(replace(case, ids=False), memory, at))).max()) / size_of(base)
            for at in (HIDDEN, 1)
        )
        return hidden, kept
    return None
