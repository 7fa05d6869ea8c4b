"""Windows: how many keys a query sees, held against what is claimed."""

from __future__ import annotations

import re

import torch
from torch import Tensor

from clearhead.checking.kinds.claimed import beside_itself
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.sequence_case import SequenceCase
from clearhead.checking.report import Check, Fault
from clearhead.messages import say


def band(found: Tensor) -> int | None:
    """W if query t sees the keys t-W+1 .. t of the past and itself everywhere, T if it sees all of them; None if it is no window."""
    length = found.shape[0]
    past = torch.ones_like(found).tril()
    for width in range(1, length + 1):
        if bool((found[past] == (past & ~torch.ones_like(found).tril(-width))[past]).all()):
            return width
    return None


LAYERS = r"(layer|attention|attn)_?types?\b|is_(local|global|sliding)|==\s*[\"'](local|sliding|global|full)\w*[\"']"


def _left_to_others(case: SequenceCase) -> bool:
    """Whether the window may be another's business: of a mask of pairs that is given, or of layers of another type."""
    given = any(use.pairs_too and use.vanishes for use in case.masks)
    return given or re.search(LAYERS, case.case.target.source) is not None


def window_faults(case: SequenceCase, found: Tensor, causal: bool) -> Found:
    """Whether exactly as many keys are seen as the code claims, where it claims a window."""
    name, claim, length = "window.off-by-one", case.window, found.shape[0]
    if claim is None or not causal:
        return Found((Check(name, "skipped", say("attention.no_window")),))
    width = band(found)
    if claim + 1 >= length or width is None:
        reason = say("attention.window_short", window=claim, length=length)
        return Found((Check(name, "skipped", reason),))
    if width == length and _left_to_others(case):
        return Found((Check(name, "skipped", say("attention.window_elsewhere", window=claim)),))
    allowed = {claim, claim + 1} if beside_itself(case.case.target) else {claim}
    if width in allowed:
        return Found((Check(name, "pass", say("attention.window_right", window=claim, length=length)),))
    evidence = say("attention.window_wrong", window=claim, found=width, length=length)
    certain = abs(width - claim) == 1
    fault = Fault(
        name, "reproduced" if certain else "consistent", evidence, "", say("attention.window_fix", window=claim), None
    )
    return Found((Check(name, "fail", evidence),), (fault,))
