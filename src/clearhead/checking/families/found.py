"""What a check finds in a module of a published family: its parts beside ours, its cache, its weights."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from clearhead.checking.families.against import held_against
from clearhead.checking.families.known import Known, Ours, ours_of, recognised
from clearhead.checking.families.naming import named, part_word
from clearhead.checking.families.parts import COMPONENTS, component
from clearhead.checking.families.reasons import reasons
from clearhead.checking.families.running import cached, ids_for, ran
from clearhead.checking.families.walk import EXACT, Walk, walked
from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Check, Fault
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.target import Target
from clearhead.formats.weights import own_tensors
from clearhead.messages import UserError, say
from clearhead.models.config_encoders import EncoderConfig

KINDS = (None, "lm", "encoder", "seq2seq")
"""As what a whole model may be checked."""

KIND_OF = {"bert": "encoder", "t5": "seq2seq"}
"""What each family is; a language model if not named."""

SHOWN = 4


def family_found(target: Target, settings: Settings) -> tuple[str, Found] | None:
    """What there is to say of a target that is of a known family, and what kind it is; None if it is of none, or is checked as something else.

    Args:
        target: the code under check.
        settings: the seed, and an original to hold its weights against.

    Raises:
        UserError: if an original is given for what is of no known family, or it cannot be opened.
    """
    known = recognised(target.sample) if target.is_module and settings.kind in KINDS else None
    if known is not None:
        return KIND_OF.get(known.family.name, "lm"), checked(known, target.make, settings)
    if settings.against is not None:
        raise UserError(say("families.against_unknown", name=target.name))
    return None


def checked(known: Known, make: Callable[[], nn.Module], settings: Settings) -> Found:
    """All checks of a module of a known family.

    Args:
        known: the module.
        make: gives a fresh copy of it at each call.
        settings: the seed, and an original to hold its weights against.

    Raises:
        UserError: if the original cannot be opened.
    """
    family = known.family.name
    try:
        ours = ours_of(known)
    except UserError as error:
        # What a configuration asks may be more than ours can be: nothing is wrong with it for that.
        return Found((Check("family.model", "skipped", say("families.not_read", family=family, reason=error)),))
    found = _weights(known, ours) + held_against(known, ours, settings.against)
    with Attempt() as attempt:
        found = _parts(known, make, ours, settings) + found
    if attempt.error is not None:
        found += Found((Check("family.model", "skipped", attempt.reason),))
    return found


def _parts(known: Known, make: Callable[[], nn.Module], ours: Ours, settings: Settings) -> Found:
    """All parts, and the cache."""
    ids = ids_for(ours.config, settings.seed)
    module, seen, narrow = ran(known, make, ours.config, ids)
    walk = walked(ours.model, ids, seen, narrow)
    wide = next(module.parameters()).dtype == torch.float64
    faults = named(known, walk, reasons(walk, ours.config))
    checks, notes = [], []
    if not wide:
        notes.append(say("families.float32"))
    for kind in sorted({component(stage) for stage in walk.gaps}, key=[name for name, _ in COMPONENTS].index):
        check = _check(known, walk, kind)
        checks.append(check)
        seen_there = any(component(stage) == kind for stage in seen.narrow)
        if wide and check.verdict == "pass" and check.largest > EXACT and seen_there:
            word = str(narrow).removeprefix("torch.")
            notes.append(say("families.island", part=part_word(kind), gap=f"{check.largest:.1e}", kind=word))
    found = Found(tuple(checks), tuple(faults), tuple(notes))
    # Features that see both sides are not to be had one by one; one forward that looks ahead is no measure of what a cache should give.
    if isinstance(ours.config, EncoderConfig) or any(fault.id == "causal.future-leak" for fault in faults):
        return found
    return found + cached(module, walk, known.home.__name__)


def _check(known: Known, walk: Walk, kind: str) -> Check:
    """The verdict on all components of a kind."""
    name = f"family.{kind}"
    gaps = [gap for stage, gap in walk.gaps.items() if component(stage) == kind]
    wrong = [gap for gap in walk.broken if component(gap.stage) == kind]
    largest = max(gap.largest for gap in gaps)
    count, family, sizes = len(gaps), known.family.name, _sizes(walk)
    if wrong:
        stages = ", ".join(gap.stage for gap in wrong[:SHOWN]) + (" ..." if len(wrong) > SHOWN else "")
        text = say("families.fail", wrong=len(wrong), stages=stages, count=count, family=family, sizes=sizes)
        return Check(name, "fail", text, largest)
    gap, allowed = f"{largest:.1e}", f"{max(each.allowed for each in gaps):.1e}"
    text = say("families.pass", count=count, family=family, sizes=sizes, gap=gap, allowed=allowed)
    return Check(name, "pass", text, largest)


def _sizes(walk: Walk) -> str:
    return ", ".join(" x ".join(map(str, each.shape)) for each in walk.ids)


def _weights(known: Known, ours: Ours) -> Found:
    """Whether the tensors of the family are there, each its own or shared as the configuration says."""
    name, family, faults = "family.weights", known.family.name, []
    fix = say("families.fix", family=family, path=", ".join(ours.missing[:SHOWN]) or "-")
    for missing in ours.missing:
        text = say("families.missing", name=missing, family=family)
        faults.append(Fault("projection.bias", "reproduced", text, missing.rpartition(".")[0], fix))
    if ours.untied:
        head, embedding = ours.untied
        text = say("families.untied", head=head, embedding=embedding)
        faults.append(Fault("tying.lost", "reproduced", text, head, say("families.tie_fix")))
    further = ", ".join(ours.further[:SHOWN]) + (" ..." if len(ours.further) > SHOWN else "")
    notes = (say("families.further", family=family, names=further),) if further else ()
    if faults:
        names = ", ".join(each.where for each in faults[:SHOWN])
        text = say("families.weights_wrong", count=len(faults), family=family, names=names)
        return Found((Check(name, "fail", text),), tuple(faults), notes)
    count = len(own_tensors(ours.model))
    return Found((Check(name, "pass", say("families.weights_right", count=count, family=family)),), (), notes)
