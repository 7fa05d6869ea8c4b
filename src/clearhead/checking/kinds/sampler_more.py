"""More questions that a sampler is asked: defaults, penalties, and rows."""

from __future__ import annotations

import inspect
import re
from typing import Any

import torch
from torch import Tensor

from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.sampler_calling import FEATURES, SHIFT, Place, SamplerCase, log_chances, neutral
from clearhead.checking.kinds.sampler_probes import drawn, failed, shown
from clearhead.checking.kinds.sampler_result import Drawn, counted, given
from clearhead.checking.report import Check
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.messages import say

HIDDEN, SIGN, MIXED, SQUEEZED = "sampling.hidden-default", "sampling.penalty-sign", "batch.mixing", "shape.squeezed"
WIDE, NARROW = (300, 20_000), (120, 4000)
"""Tokens and draws for the defaults: of a sampler that draws all rows at once, and of one that takes its time."""
PENALTY = 1.5
CUTTING = frozenset({"top_k", "top_p", "min_p"})
"""Settings that leave tokens out."""


def defaults(case: SamplerCase) -> Found:
    """Who asks for nothing draws from the whole vocabulary."""
    one_by_one = case.slow or case.form in ("one", "vector") or "seed" in case.places
    vocab, number = NARROW if one_by_one and case.gives == "ids" else WIDE
    # Nearly alike, so that each has its chance; in no order.
    logits = torch.linspace(0, 0.5, vocab, dtype=torch.float64)[
        torch.randperm(vocab, generator=torch.Generator().manual_seed(2))
    ]
    seen = drawn(case, logits, defaults=True, number=number)
    if seen.failed:
        return Found((Check(HIDDEN, "skipped", say("sampler.not_plain", reason=seen.failed)),))
    stated = {role: place for role, place in case.places.items() if role in FEATURES and _says(role, place)}
    if seen.seen == vocab:
        return Found((Check(HIDDEN, "pass", say("sampler.whole", vocab=vocab)),))
    reason = _asked(case, stated, seen)
    if reason:
        return Found((Check(HIDDEN, "skipped", reason),))
    said = ", ".join(f"{place.name}={place.value}" for place in stated.values())
    where = say("sampler.in_signature", said=said) if said else say("sampler.in_body")
    evidence = say("sampler.hidden", vocab=vocab, seen=seen.seen, where=where)
    return failed(case, HIDDEN, evidence, say("sampler.fix_hidden"), 1 - seen.seen / vocab)


def _says(role: str, place: Place) -> bool:
    return place.value is not inspect.Parameter.empty and not neutral(role, place.value)


def _asked(case: SamplerCase, stated: dict[str, Place], seen: Drawn) -> str:
    """Why fewer tokens are what was asked for; "" if nobody did."""
    words = str(getattr(case.target.kind_of, "__name__", "")).lower()
    named, cutting = case.named_for & CUTTING, CUTTING & stated.keys()
    alone = [feature for feature in FEATURES if feature in case.places]
    if named and cutting <= named:
        return say("sampler.its_purpose", feature=min(cutting or named))
    if len(alone) == 1 and alone[0] in stated:
        return say("sampler.its_purpose", feature=alone[0])
    if seen.seen == 1 and (
        re.search("greedy|argmax|best", words) or "temperature" in stated or "sample" in case.places
    ):
        return say("sampler.greedy")
    # An instance has what its maker gave it; a class that nobody gave anything has its author's default.
    given = [place for place in stated.values() if place.attribute and place.name not in _own_defaults(case)]
    return say("sampler.its_purpose", feature=given[0].name) if given else ""


def _own_defaults(case: SamplerCase) -> set[str]:
    """The parameters of the constructor that were left as they are."""
    if not case.target.values:
        return set()
    parameters = inspect.signature(case.target.kind_of).parameters
    return {
        name for name, value in case.target.values.items() if name in parameters and parameters[name].default == value
    }


def penalty(case: SamplerCase) -> Found:
    """A token that has occurred never gains on one that has not."""
    if not {"penalty", "generated"} <= case.places.keys():
        return Found()
    found = Found()
    # All logits below 0, where dividing raises; then all above, where multiplying does.
    for shift in (-SHIFT - 1, 3.0):
        found += _penalised(case, log_chances() + shift)
        if found.faults:
            break
    return found


def _penalised(case: SamplerCase, logits: Tensor) -> Found:
    """The best and the worst token have occurred."""
    for occurred in _histories(case, (1, 4)):
        free, lowered = (drawn(case, logits, {"penalty": value, "generated": occurred}) for value in (1.0, PENALTY))
        if not free.failed and not lowered.failed:
            return _sign(case, logits, free, lowered)
    return Found((Check(SIGN, "skipped", say("sampler.no_history")),))


def _histories(case: SamplerCase, ids: tuple[int, ...]) -> list[Any]:
    """What has been generated, in the forms that people take."""
    whole = torch.tensor(ids)
    rows = whole.unsqueeze(0)
    # All rows of a drawing have the same history.
    number = (
        1
        if case.gives != "ids" or case.form in ("one", "vector") or "seed" in case.places
        else (1200 if case.slow else 4000)
    )
    forms: list[Any] = [rows.expand(number, -1).clone(), whole, list(ids), [list(ids)] * number, set(ids)]
    return forms[1:3] + forms[:1] + forms[3:] if case.form == "vector" else forms


def _sign(case: SamplerCase, logits: Tensor, free: Drawn, lowered: Drawn) -> Found:
    odds = [(each.chances / each.chances[[0, 2, 3, 5, 6]].sum()) for each in (free, lowered)]
    for token in (1, 4):
        before, after = float(odds[0][token]), float(odds[1][token])
        gained = after > before * (1 + 1e-4) and not _chance(free, lowered, token)
        if gained:
            evidence = say(
                "sampler.gained",
                penalty=PENALTY,
                logit=f"{float(logits[token]):.2f}",
                before=f"{before:.3f}",
                after=f"{after:.3f}",
            )
            return failed(case, SIGN, evidence, say("sampler.fix_sign"), after - before)
    if max(abs(float(odds[0][token] - odds[1][token])) for token in (1, 4)) < 1e-4 or _chance(free, lowered, 1):
        return Found((Check(SIGN, "skipped", say("sampler.no_penalty")),))
    return Found(
        (Check(SIGN, "pass", say("sampler.lowered", penalty=PENALTY, before=shown(free), after=shown(lowered))),)
    )


def _chance(free: Drawn, lowered: Drawn, token: int) -> bool:
    """Whether chance alone may have made the difference between two drawn frequencies."""
    if not free.number:
        return False
    middle = (free.chances[token] + lowered.chances[token]) / 2
    coin = [torch.stack((each.chances[token], 1 - each.chances[token])) for each in (free, lowered)]
    wanted = torch.stack((middle, 1 - middle))
    return all(Drawn(each, free.number).is_like(wanted) for each in coin)


def rows(case: SamplerCase) -> Found:
    """A row of a batch is what it is alone, and a batch of one keeps its axis."""
    if case.form not in ("rows", "steps"):
        return Found((Check(MIXED, "skipped", say("sampler.one_row")),))
    asked = next(
        ({role: value} for role, value in (("top_k", 2), ("top_p", 0.5), ("min_p", 0.4)) if role in case.places), {}
    )
    several = _several()
    found = Found()
    for options in ({}, asked) if asked else ({},):
        found = _mixed(case, several, options)
        if found.faults:
            return found
    return found + _one(case)


def _several() -> Tensor:
    """Rows (3,V) that are sharp in different ways."""
    logits = log_chances()
    return torch.stack((logits, 0.3 * logits.flip(0), 2 * logits.roll(2)))


def _mixed(case: SamplerCase, several: Tensor, options: dict[str, Any]) -> Found:
    words = ", ".join(f"{name}={value}" for name, value in options.items()) or say("sampler.nothing")
    alone = [drawn(case, each, options) for each in several]
    with Seeded(5), Attempt() as attempt:
        together = _together(case, several, options)
        for row, (one, other) in enumerate(zip(alone, together, strict=True)):
            if one.failed:
                return Found((Check(MIXED, "skipped", say("sampler.not_plain", reason=one.failed)),))
            if other.failed or not _same(one, other):
                evidence = say(
                    "sampler.mixed", asked=words, row=row, rows=len(several), alone=shown(one), together=shown(other)
                )
                return failed(
                    case, MIXED, evidence, say("sampler.fix_mixed"), float((one.chances - other.chances).abs().max())
                )
        return Found((Check(MIXED, "pass", say("sampler.apart", asked=words, rows=len(several))),))
    return Found((Check(MIXED, "skipped", say("sampler.not_plain", reason=attempt.reason)),))


def _same(one: Drawn, other: Drawn) -> bool:
    """Whether two are of one distribution, as far as draws can tell."""
    if not one.number:
        return one.is_like(other.chances)
    middle = (one.chances + other.chances) / 2
    return one.is_like(middle) and other.is_like(middle)


def _together(case: SamplerCase, several: Tensor, options: dict[str, Any]) -> list[Drawn]:
    count, vocab = several.shape
    number = 1 if case.gives != "ids" else (1200 if case.slow else 4000)
    result = case.run(several.repeat(number, 1), options)
    if result.values is not None:
        return [given(each, case.gives) for each in result.values]
    assert result.ids is not None
    return [counted(each, vocab) for each in result.ids.view(number, count).T]


def _one(case: SamplerCase) -> Found:
    """One row."""
    logits = log_chances().unsqueeze(0)
    with Attempt() as attempt:
        pair, one = case.run(logits.expand(2, -1)).shape, case.run(logits).shape
        wanted = (1, *pair[1:]) if pair else pair
        if tuple(one) == tuple(wanted):
            return Found((Check(SQUEEZED, "pass", say("sampler.kept", shape=tuple(one))),))
        evidence = say("sampler.squeezed", shape=tuple(one), wanted=wanted, two=tuple(pair))
        return failed(case, SQUEEZED, evidence, say("sampler.fix_squeezed"), 1.0)
    return Found((Check(SQUEEZED, "skipped", say("sampler.not_plain", reason=attempt.reason)),))
