"""What a norm that has been identified claims: its factor, the offset of its weight, its epsilon."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from clearhead.checking.claims import stated
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.norm_case import EPS, NormCase
from clearhead.checking.kinds.norm_eps import Epsilon, epsilon
from clearhead.checking.kinds.norm_formulas import LAYER, RMS, Affine, Fit, constants
from clearhead.checking.kinds.norm_places import place_of_eps, place_of_spread
from clearhead.checking.kinds.norm_words import MEANT_ZERO, claims_layer, claims_rms, class_name, plain_name, words
from clearhead.checking.report import Check, Fault
from clearhead.checking.watch import Record
from clearhead.messages import say

EPS_NAMES = (
    "eps",
    "epsilon",
    "variance_epsilon",
    "norm_eps",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "rms_norm_eps",
    "rms_eps",
)


def with_common(own: Found, common: Found) -> Found:
    """Both; a question that the kind has asked itself is not asked again."""
    asked = {check.id for check in own.checks}
    return own + common._replace(checks=tuple(check for check in common.checks if check.id not in asked))


class Seen(NamedTuple):
    """The norm as it was identified."""

    fit: Fit
    rms: bool
    how: Affine | None
    y: Tensor


def skipped(ids: tuple[str, ...], why: str) -> Found:
    """Questions that could not be asked."""
    return Found(tuple(Check(id, "skipped", why) for id in ids))


def passed(id: str, evidence: str, largest: float = 0.0) -> Found:
    """A question whose answer is that all is right."""
    return Found((Check(id, "pass", evidence, largest),))


def failed(id: str, reproduced: bool, evidence: str, where: str, *, fix: str, effect: float | None = None) -> Found:
    """A mistake and the question that found it."""
    certainty: Any = "reproduced" if reproduced else "consistent"
    check = Check(id, "fail", evidence, effect or 0.0)
    return Found((check,), (Fault(id, certainty, evidence, where, fix, effect),))


def claimed_formula(case: NormCase, seen: Seen, record: Record) -> Found:
    """Whether the formula is the one claimed, its factor included."""
    target, fit, how = case.case.target, seen.fit, seen.how
    where, left = place_of_spread(record), f"{fit.left:.1e}"
    if (seen.rms and claims_layer(target)) or (not seen.rms and claims_rms(target) and plain_name(target)):
        wanted = LAYER if seen.rms else RMS
        evidence = say("small.norm_claim", found=fit.name, left=left, name=class_name(target), wanted=wanted)
        return failed("norm.formula", True, evidence, where, fix=say("small.norm_formula_fix", right=wanted))
    known = constants(case.width)
    constant = how.constant if how is not None else 1.0
    near = 1e-5 if case.case.dtype == torch.float64 and fit.left < 1e-9 else 1e-3
    if abs(constant / known["unbiased"] - 1) < near:
        evidence = say("small.norm_unbiased", factor=f"{constant:.6f}", width=case.width)
        fix = say("small.norm_unbiased_fix")
        off = 1 - known["unbiased"]
        return passed("norm.formula", say("small.norm_is", found=fit.name, left=left)) + failed(
            "norm.unbiased-variance", True, evidence, where, fix=fix, effect=off
        )
    found = passed("norm.unbiased-variance", say("small.norm_factor", factor=f"{constant:.6f}"))
    if how is not None and how.form in ("w²", "1 / w"):
        evidence = say("small.norm_weight", found=fit.name, form=how.form)
        return found + failed("norm.formula", True, evidence, where, fix=say("small.norm_weight_fix"))
    wrong = [value for name, value in known.items() if name != "unbiased" and abs(constant / value - 1) < near]
    if wrong and (plain_name(target) and (claims_layer(target) or claims_rms(target))):
        evidence = say("small.norm_sum", factor=f"{constant:.6f}", width=case.width, found=fit.name)
        return found + failed("norm.formula", True, evidence, where, fix=say("small.norm_formula_fix", right=fit.name))
    if how is not None and abs(constant - 1) > near:
        found += Found(notes=(say("small.norm_scaled", factor=f"{constant:.6f}"),))
    return found + passed("norm.formula", say("small.norm_is", found=fit.name, left=left), fit.left)


def offset(case: NormCase, seen: Seen) -> Found:
    """Whether the stored weight and the way in which it enters are of one convention."""
    how = seen.how
    if how is None or how.form not in ("w", "1 + w", "2 + w", "(1 + w)²"):
        return skipped(("norm.offset",), say("small.norm_no_weight"))
    made = case.case.target.make()
    stored = dict(made.named_parameters())[how.weight].detach().double() if isinstance(made, nn.Module) else None
    wrong = _wrong_offset(case, how.form, stored)
    if wrong is None:
        return passed("norm.offset", say("small.norm_offset_pass", form=how.form))
    return failed("norm.offset", stored is not None, wrong, "", fix=say("small.norm_offset_fix"), effect=1.0)


def _wrong_offset(case: NormCase, form: str, stored: Tensor | None) -> str | None:
    """What is wrong with a weight that enters in this form and is stored like that; None if nothing is."""
    target = case.case.target
    if form in ("2 + w", "(1 + w)²"):
        return say("small.norm_offset_twice", form=form)
    if stored is None:
        zero = re.search(r"gemma|offset|zero.?cent|one_?plus|plus_?one", class_name(target), re.IGNORECASE)
        return say("small.norm_offset_missing_name", name=class_name(target)) if zero and form == "w" else None
    if form == "1 + w" and float((stored - 1).abs().max()) < 0.5:
        mean = float(stored.mean())
        return say("small.norm_offset_ones", mean=f"{mean:.2f}", gain=f"{1 + mean:.2f}")
    small = float(stored.abs().max()) < 0.2 and float(stored.min()) <= 0
    if form == "w" and small and not re.search(MEANT_ZERO, words(target) + target.source, re.IGNORECASE):
        return say("small.norm_offset_missing", largest=f"{float(stored.abs().max()):.2g}")
    return None


def stated_epsilon(case: NormCase, seen: Seen, record: Record) -> Found:
    """Where epsilon stands, and whether it is the stated one."""
    fit, unbiased = seen.fit, constants(case.width)["unbiased"]
    divided = seen.how is not None and abs(seen.how.constant / unbiased - 1) < 1e-3
    stretch = 1 / unbiased if divided else 1.0
    seen_eps = epsilon(case, case.drawn(), fit.gamma, fit.beta, stretch)
    claim = _claim(case)
    where = place_of_eps(record, seen_eps.value)
    if seen_eps.place == "outside":
        evidence = say("small.norm_eps_outside", value=f"{seen_eps.value:.3g}")
        fix = say("small.norm_eps_fix", right="sqrt(mean(x²) + eps)" if seen.rms else "sqrt(var + eps)")
        return failed("norm.eps-placement", True, evidence, where, fix=fix) + _eps_value(case, seen_eps, claim, where)
    if seen_eps.place in ("bound", ""):
        note = Found(notes=(say("small.norm_eps_bound", value=f"{seen_eps.value:.3g}"),)) if seen_eps.value else Found()
        return note + skipped(("norm.eps-placement", "norm.eps-value"), say("small.norm_eps_unseen"))
    placed = say("small.norm_eps_inside", value=f"{seen_eps.value:.3g}")
    if seen_eps.place == "none":
        return skipped(("norm.eps-placement",), say("small.norm_eps_unseen")) + _no_eps(case, seen, claim)
    return passed("norm.eps-placement", placed) + _eps_value(case, seen_eps, claim, where)


def _no_eps(case: NormCase, seen: Seen, claim: float | None) -> Found:
    """No epsilon at all: a position of zeros gives no number."""
    zero = torch.zeros(1, case.length or 4, case.width, dtype=case.case.dtype)
    bad = not bool(case(case.drawn(), zero).isfinite().all())
    if not bad and (claim is None or claim < 1e-15):
        return skipped(("norm.eps-value",), say("small.norm_eps_unseen"))
    if bad and not (claim or claims_layer(case.case.target) or claims_rms(case.case.target)):
        return Found(notes=(say("small.norm_eps_none_note"),))
    if claim is not None and claim > 1e-15:
        evidence = say("small.norm_eps_ignored", claim=f"{claim:g}")
    else:
        evidence = say("small.norm_eps_none")
    return failed("norm.eps-value", bad, evidence, "", fix=say("small.norm_eps_value_fix"))


def _eps_value(case: NormCase, found: Epsilon, claim: float | None, where: str) -> Found:
    value = found.value
    if claim is None:
        if value < 0:
            return failed(
                "norm.eps-value",
                True,
                say("small.norm_eps_negative", value=f"{value:.3g}"),
                where,
                fix=say("small.norm_eps_value_fix"),
            )
        return skipped(("norm.eps-value",), say("small.norm_eps_unstated", value=f"{value:.3g}"))
    same = [claim, claim / case.width, claim**2]
    if any(abs(value / each - 1) < 0.02 for each in same if each):
        return passed("norm.eps-value", say("small.norm_eps_same", value=f"{value:.3g}", claim=f"{claim:g}"))
    evidence = say("small.norm_eps_value", value=f"{value:.3g}", claim=f"{claim:g}")
    return failed("norm.eps-value", True, evidence, where, fix=say("small.norm_eps_value_fix"))


def _claim(case: NormCase) -> float | None:
    """The epsilon that the code states."""
    target = case.case.target
    for name, value in case.given.items():
        if re.fullmatch(EPS, name.lower()):
            return float(value)
    if not target.is_module:
        defaults = [p.default for name, p in target.signature.parameters.items() if re.fullmatch(EPS, name.lower())]
        return next((float(value) for value in defaults if isinstance(value, float)), None)
    value = stated(target, *EPS_NAMES)
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    said = {float(each) for each in re.findall(r"\beps(?:ilon)?\b[^\n.]{0,12}?(\d(?:\.\d+)?e-\d+)", words(target))}
    return said.pop() if len(said) == 1 else None
