"""What a mask given to attention of q, k and v does."""

from __future__ import annotations

import re
from dataclasses import replace

import torch
from torch import Tensor

from clearhead.checking.kinds.attention_references import MASK_FAULTS, MASKS, Variant, attend, matches
from clearhead.checking.kinds.claimed import mask_says
from clearhead.checking.kinds.empty_rows import expects_empty, fused_gives_nan
from clearhead.checking.kinds.formula_stages import fault
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.sdpa_causal import stressed
from clearhead.checking.kinds.sdpa_opening import SdpaCase, drawn, run
from clearhead.checking.report import Certainty, Check
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.watch import watched
from clearhead.messages import say

PADDING = ("BS", "B11S")
ADDITIVE = r"additive|added to (the )?(score|logit)|-inf|negative infinity|0 (or|and|/) ?-|bias"
PROMISED = r"at least one|never (be )?(empty|all)|must not be empty"


def masks(case: SdpaCase, settings: Settings, base: Variant | None) -> Found:
    """The faults of the mask that the code takes."""
    if not case.shape:
        return Found((Check("mask.ignored", "skipped", say("sdpa.no_mask")),))
    with Attempt() as attempt:
        return _judged(case, settings, base)
    return Found((Check("mask.ignored", "skipped", say("formula.failed", reason=attempt.reason)),))


def _judged(case: SdpaCase, settings: Settings, base: Variant | None) -> Found:
    how = _how(case, base)
    if how == "beside":
        return _wrong("mask.ignored", say("sdpa.mask", name=case.mask, fault="mask.ignored"), "consistent")
    if how is None:
        return Found((Check("mask.ignored", "skipped", say("sdpa.no_reference")),))
    if how in MASK_FAULTS:
        if how.startswith("number") and _additive(case, base):
            return Found((Check("mask.added-as-number", "pass", say("sdpa.additive")),), notes=(say("sdpa.additive"),))
        return _wrong(MASK_FAULTS[how], say("sdpa.mask", name=case.mask, fault=MASK_FAULTS[how]), "reproduced")
    found = _polarity(case, settings, how)
    if found.faults:
        return found
    drops = how == "drop"
    return found + _both(case, base, drops) + _beaten(case, drops) + _empty(case, drops)


def _wrong(name: str, text: str, certainty: Certainty) -> Found:
    return Found((Check(name, "fail", text),), (fault(name, text, "", certainty),))


def kept(case: SdpaCase, rows: int, T: int, S: int) -> Tensor:
    """A random mask (B,1,T,S), another for each row, in which each query sees itself and something of what is earlier."""
    source = torch.Generator().manual_seed(7)
    keep = torch.rand(rows, 1, T, S, generator=source) > 0.45
    if case.shape in PADDING:
        keep = keep[:, :, :1].expand(-1, -1, T, -1).clone()
        keep[..., 0] = True
        keep[..., -1] = False
        return keep
    if case.shape == "TS":
        keep = keep[:1].expand(rows, -1, -1, -1).clone()
    keep[..., torch.arange(T), torch.arange(T)] = True
    keep[..., 0, 1:] = False
    return keep


def _how(case: SdpaCase, base: Variant | None) -> str | None:
    """Which of MASKS reproduces what the code does with a mask; told by the values alone if no formula is known.

    "beside" where the formula is known, the mask does something, and neither what it marks nor the rest is hidden by it.
    """
    qkv = drawn(3, 4, 6, 6, seed=8, dtype=case.case.dtype)
    keep = kept(case, 3, 6, 6)
    plain = False if case.causal else None
    with torch.no_grad():
        out = run(case, qkv, keep, causal=plain).double()
        bare = run(case, qkv, causal=plain).double()
    q, k, v = (t.double() for t in qkv)
    if base is not None:
        for mask in MASKS:
            if matches(out, attend(q, k, v, replace(base, mask=mask), keep), 1e-4):
                return mask
    if torch.equal(torch.nan_to_num(out), torch.nan_to_num(bare)):
        return "ignored"
    hidden = _influence(case, qkv, keep, ~keep, plain)
    shown = _influence(case, qkv, keep, keep, plain)
    if hidden == 0 < shown:
        return "keep"
    if shown > 0 and hidden > 0 and base is not None and not _additive(case, base):
        return "beside"
    return "drop" if shown == 0 < hidden else None


def _influence(
    case: SdpaCase, qkv: tuple[Tensor, Tensor, Tensor], keep: Tensor, where: Tensor, causal: bool | None
) -> float:
    """The largest weight, as a gradient, that a query gives to the values of these keys."""
    q, k, v = (t.clone() for t in qkv)
    v.requires_grad_(True)
    out = run(case, (q, k, v), keep, causal=causal)
    largest = 0.0
    for row in range(q.shape[2]):
        slopes = torch.autograd.grad(out[:, :, row, 0].sum(), v, retain_graph=True)[0].abs().amax(-1)
        largest = max(largest, float(torch.nan_to_num(slopes)[where[:, :, row].expand(slopes.shape)].max()))
    return largest


def _additive(case: SdpaCase, base: Variant | None) -> bool:
    """Whether the mask is said to be added, and 0 and -inf do what they should."""
    words = re.sub(r"float\(.-inf.\)", "", case.case.target.source)
    if base is None or not re.search(ADDITIVE, words, re.IGNORECASE):
        return False
    qkv, keep = drawn(3, 4, 6, 6, seed=8, dtype=case.case.dtype), kept(case, 3, 6, 6)
    with Attempt(), torch.no_grad():
        added = torch.zeros(keep.shape, dtype=qkv[0].dtype).masked_fill(~keep, -torch.inf)
        out = run(case, qkv, added, causal=False if case.causal else None).double()
        q, k, v = (t.double() for t in qkv)
        return matches(out, attend(q, k, v, replace(base, mask="keep"), keep), 1e-4)
    return False


def _polarity(case: SdpaCase, settings: Settings, how: str) -> Found:
    """Whether True means what is said of it; where nothing is said, that a key is kept, as in PyTorch's own."""
    said = mask_says(case.case.target, case.mask)
    keeps = said if said is not None else True
    if settings.mask_true is not None:
        keeps = settings.mask_true == "keep"
    if keeps == (how == "keep"):
        return Found((Check("mask.polarity", "pass", say("sdpa.polarity_right", name=case.mask)),))
    return _wrong("mask.polarity", say("sdpa.polarity", name=case.mask, found=how), "reproduced")


def _given(keep: Tensor, drops: bool) -> Tensor:
    return ~keep if drops else keep


def _both(case: SdpaCase, base: Variant | None, drops: bool) -> Found:
    """A mask and causality together."""
    if not case.causal or base is None:
        return Found()
    qkv, keep = drawn(3, 4, 6, 6, seed=9, dtype=case.case.dtype), kept(case, 3, 6, 6)
    with Attempt() as attempt, torch.no_grad():
        out = run(case, qkv, _given(keep, drops), causal=True).double()
        q, k, v = (t.double() for t in qkv)
        if matches(out, attend(q, k, v, replace(base, triangle="all"), keep), 1e-4):
            return _wrong("causal.future-leak", say("sdpa.one_of_both", kept="mask", lost=case.causal), "reproduced")
        if matches(out, attend(q, k, v, replace(base, triangle="right")), 1e-4):
            return _wrong("mask.ignored", say("sdpa.one_of_both", kept=case.causal, lost=case.mask), "reproduced")
        return Found((Check("mask.ignored", "pass", say("sdpa.both")),))
    return Found((Check("mask.ignored", "skipped", say("formula.failed", reason=attempt.reason)),))


def _beaten(case: SdpaCase, drops: bool) -> Found:
    """Whether large scores beat the mask."""
    keep = kept(case, 3, 6, 6)
    moved = stressed(case, keep, _given(keep, drops))
    if moved is not None and moved > 1e-9:
        return _wrong("causal.finite-mask", say("sdpa.beaten", size="2e+04", moved=f"{moved:.2g}"), "consistent")
    return Found((Check("causal.finite-mask", "pass", say("sdpa.not_beaten", size="2e+04")),))


def _empty(case: SdpaCase, drops: bool) -> Found:
    """A query that may see nothing."""
    if re.search(PROMISED, case.case.target.source, re.IGNORECASE):
        return Found((Check("mask.empty-row", "skipped", say("sdpa.promised")),))
    q, k, v = drawn(3, 4, 6, 6, seed=10, dtype=case.case.dtype)
    keep = kept(case, 3, 6, 6)
    if case.shape in PADDING:
        keep[1] = False
    else:
        keep[:, :, 2] = False
    row = (1, 0, 3) if case.shape in PADDING else (1, 0, 2)
    for given in (q, k, v):
        given.requires_grad_(True)
    plain = False if case.causal else None
    record = watched(None, lambda: run(case, (q, k, v), _given(keep, drops), causal=plain))
    # What was recorded is a copy; gradients need the output itself.
    out = run(case, (q, k, v), _given(keep, drops), causal=plain)
    value = out.detach()[row]
    slopes = torch.autograd.grad(out.sum(), (q, k, v), allow_unused=True)
    rough = [g for g in slopes if g is not None and not bool(torch.isfinite(g).all())]
    if bool(rough) or not bool(torch.isfinite(value).all()):
        text = say("sdpa.empty_gradient") if bool(torch.isfinite(value).all()) else say("sdpa.empty_nan")
        return _not_a_number(case, text, fused_gives_nan(record))
    if torch.allclose(value, v.detach()[1, 0].mean(0), atol=1e-4):
        text = say("sdpa.empty_mean")
        if expects_empty(case.case.target):
            return _wrong("mask.empty-row", text, "consistent")
        return Found((Check("mask.empty-row", "pass", text),), notes=(text,))
    return Found((Check("mask.empty-row", "pass", say("sdpa.empty_right")),))


def _not_a_number(case: SdpaCase, text: str, theirs: bool) -> Found:
    """What NaN in a row that may see nothing is: a fault, if the mask is the caller's own for each row of the batch."""
    if theirs:
        return Found((Check("mask.empty-row", "skipped", text),), notes=(say("sdpa.empty_theirs"),))
    if case.shape == "TS":
        # One mask for all rows is a pattern, such as a triangle, in which every query has something to see.
        return Found((Check("mask.empty-row", "skipped", text),), notes=(text,))
    return _wrong("mask.empty-row", text, "consistent")
