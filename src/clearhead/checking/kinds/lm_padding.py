"""Padding in a language model: what pads are, how many there are and on which side, is no business of the real tokens."""

from __future__ import annotations

import re
from dataclasses import replace

import torch
from torch import Tensor

from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.lm_case import LmCase, logits_of
from clearhead.checking.kinds.lm_finding import failed, passed, skipped
from clearhead.checking.strangers import Attempt
from clearhead.messages import say

LENGTH, PADS = 6, 3


def padding(case: LmCase) -> Found:
    """Content of pads, on the left and on the right, then their number."""
    mask = case.mask
    if mask is None:
        return Found()
    if not mask.acts:
        return failed("mask.ignored", say("lm.mask_idle", name=mask.name), where=mask.name)
    if mask.known and not mask.keeps and re.fullmatch(r"attention_mask|attn_mask_keep|keep|valid|real", mask.name):
        return failed("mask.polarity", say("lm.polarity", name=mask.name), where=mask.name)
    with Attempt() as attempt:
        return _padded(case)
    return skipped("mask.ignored", say("lm.mask_raises", reason=attempt.reason))


def _padded(case: LmCase) -> Found:
    length = case.length(LENGTH + PADS) - PADS
    if length < 3:
        return skipped("mask.ignored", say("lm.too_short"))
    ids, pads = case.ids(2, length, 1), case.ids(2, PADS, 2)
    other = (pads + 1) % case.vocab
    alone = _real(case, ids, 0, length)
    size = alone.std().item()
    allowed = 3 * case.rounding * size
    left, changed = (_real(case, torch.cat([p, ids], 1), PADS, PADS + length) for p in (pads, other))
    right, right_changed = (_real(case, torch.cat([ids, p], 1), 0, length) for p in (pads, other))
    if not torch.isfinite(left).all() and torch.isfinite(alone).all():
        return _no_number(case)
    by = max(_far(left, changed), _far(right, right_changed))
    if by > allowed:
        side = say("lm.left") if _far(left, changed) > allowed else say("lm.right")
        evidence = say("lm.pads_read", pads=PADS, side=side, by=f"{by:.1e}", size=f"{size:.1e}")
        return failed("mask.ignored", evidence, largest=by, effect=by / size)
    if _far(right, alone) > allowed:
        evidence = say("lm.pads_counted", pads=PADS, by=f"{_far(right, alone):.1e}", size=f"{size:.1e}")
        return failed("mask.ignored", evidence, largest=_far(right, alone), effect=_far(right, alone) / size)
    out = passed("mask.ignored", say("lm.pads_unread", pads=PADS, by=f"{by:.1e}"), by)
    drift = _far(left, alone)
    if drift > allowed:
        evidence = say("lm.left_moved", pads=PADS, by=f"{drift:.1e}", size=f"{size:.1e}")
        return out + failed("position.left-padding", evidence, largest=drift, effect=drift / size)
    return out + passed("position.left-padding", say("lm.left_still", pads=PADS, by=f"{drift:.1e}"), drift)


def _no_number(case: LmCase) -> Found:
    """Pads that leave no number: the least float64 is none in a softmax that stays in float32, so float32 is asked then."""
    if case.case.dtype == torch.float64:
        return _padded(replace(case, case=replace(case.case, dtype=torch.float32)))
    return failed("mask.empty-row", say("lm.pad_nan", pads=PADS))


def _far(a: Tensor, b: Tensor) -> float:
    return (a - b).abs().max().item()


def _real(case: LmCase, ids: Tensor, begin: int, end: int) -> Tensor:
    """Logits of the real tokens, which stand from `begin` to `end`; positions are given where the model takes them."""
    keep = torch.zeros_like(ids, dtype=torch.bool)
    keep[:, begin:end] = True
    places = None
    if case.style.name("places") and case.style.places_rows:
        places = (keep.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        return logits_of(case, case.case.ready(), ids, keep=keep, places=places)[:, begin:end]
