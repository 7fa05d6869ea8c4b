"""The kind `sampler`: from logits to ids, or to the logits or probabilities of what may be drawn."""

from __future__ import annotations

from dataclasses import replace

from clearhead.checking.kinds.kind import Found, Kind
from clearhead.checking.kinds.sampler_calling import SamplerCase, opened
from clearhead.checking.kinds.sampler_more import defaults, penalty, rows
from clearhead.checking.kinds.sampler_probes import min_p, paced, plain, temperature, top_k, top_p
from clearhead.checking.kinds.sampler_references import TWICE
from clearhead.checking.settings import Settings


def check(case: SamplerCase, settings: Settings) -> Found:
    """Everything that is asked of a sampler."""
    case = paced(case)
    found = rows(case) + plain(case)
    case = replace(case, twice=any(fault.id == TWICE for fault in found.faults))
    for question in (top_k, top_p, min_p, temperature, defaults, penalty):
        found += question(case)
    return found


KIND = Kind("sampler", opened, check)
