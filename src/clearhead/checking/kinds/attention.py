"""Attention of any interface: who sees whom, masks, windows, modes, weights, precision, and the formula."""

from __future__ import annotations

from collections.abc import Callable

from clearhead.checking.common.devices import devices
from clearhead.checking.common.modes import modes
from clearhead.checking.common.precision import precision
from clearhead.checking.common.rows import rows
from clearhead.checking.common.unused import unused
from clearhead.checking.common.weights import weights
from clearhead.checking.kinds.cached import fewer_queries
from clearhead.checking.kinds.causality import Seen, causality, looked, with_causality
from clearhead.checking.kinds.formula import formula
from clearhead.checking.kinds.kind import Found, Kind
from clearhead.checking.kinds.masking import masking
from clearhead.checking.kinds.sequence import SequenceCase, open_sequence
from clearhead.checking.kinds.stress import NAME as FINITE
from clearhead.checking.kinds.stress import finite_mask
from clearhead.checking.report import Check
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.target import Target
from clearhead.messages import say


def _open(target: Target, settings: Settings) -> SequenceCase:
    return open_sequence(target, settings)


def behaviour(case: SequenceCase, settings: Settings) -> tuple[Found, SequenceCase]:
    """What is wrong with who sees whom and with masks, and the case with what was learnt; for any kind of sequences."""
    seen = looked(case)
    found = causality(case, seen)
    case = with_causality(case, seen)
    found += asked(FINITE, lambda: _stress(case, seen, found))
    found += asked("causal.top-left", lambda: fewer_queries(case, seen))
    return found + asked("mask.ignored", lambda: masking(case, settings, seen)), case


def _stress(case: SequenceCase, seen: Seen, found: Found) -> Found:
    if not seen.causal or any(fault.id == "causal.future-leak" for fault in found.faults):
        return Found((Check(FINITE, "skipped", say("attention.not_causal")),))
    return finite_mask(case)


def asked(name: str, question: Callable[[], Found]) -> Found:
    """What a question found; if the code raised while it was asked, that nothing could be seen, and why."""
    with Attempt() as attempt:
        return question()
    return Found((Check(name, "skipped", say("attention.raised", reason=attempt.reason)),))


def _check(case: SequenceCase, settings: Settings) -> Found:
    found = asked("weights.zero", lambda: weights(case.case.target))
    seen, case = behaviour(case, settings)
    found += seen
    found += asked("batch.mixing", lambda: rows(case.case))
    found += asked("dropout.active-in-eval", lambda: modes(case.case))
    found += asked("score.precision", lambda: precision(case.case, settings))
    found += asked("parameter.unused", lambda: unused(case.case))
    found += asked("device.hard-coded", lambda: devices(case.case))
    return found + asked("scale.missing", lambda: formula(case, settings))


KIND = Kind("attention", _open, _check)
