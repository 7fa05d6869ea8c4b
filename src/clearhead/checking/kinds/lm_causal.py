"""Who sees whom in a language model, found by changing one id at a time; and whether order matters."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.lm_case import LmCase, logits_of
from clearhead.checking.kinds.lm_finding import failed, passed, skipped
from clearhead.checking.report import Sight
from clearhead.messages import say

LENGTH = 9
EXACT = 1e-9
"""What counts as an influence, beside the size of the logits: below it lies what other shapes of products round."""


class Influence(NamedTuple):
    """How far each output moves when one id changes."""

    strength: Tensor
    """(T,T): rows are outputs, columns the ids changed."""
    size: float
    """Of the logits."""
    floor: float
    """What is rounding."""


def influence(case: LmCase) -> Influence:
    """The influence of every id on every output; each id is changed to two others."""
    length = case.length(LENGTH)
    ids = case.ids(2, length)
    module = case.case.ready()
    with torch.no_grad():
        before = logits_of(case, module, ids)
        again = logits_of(case, module, ids)
        moved = torch.zeros(length, length, dtype=before.dtype)
        for place in range(length):
            for step in (1, max(case.vocab // 2, 1)):
                other = ids.clone()
                other[:, place] = (ids[:, place] + step) % case.vocab
                difference = (logits_of(case, module, other) - before).abs().amax((0, 2))
                moved[:, place] = torch.maximum(moved[:, place], difference.nan_to_num(nan=0.0))
    size = max(before.nan_to_num().std().item(), 1e-30)
    noise = (again - before).abs().nan_to_num().max().item()
    exact = EXACT if case.case.dtype == torch.float64 else 1e-5
    return Influence(moved, size, max(exact * size, 2 * noise))


def causality(case: LmCase, seen: Influence) -> Found:
    """No output depends on later ids, each on its own, and all but the first on some that came before."""
    length = seen.strength.shape[0]
    found = seen.strength > seen.floor
    out = _future(case, seen, found)
    if case.window == 1:
        return out + skipped("causal.past-lost", say("lm.window_one"))
    blind = [t for t in range(1, length) if not found[t, :t].any()]
    if case.window == 1:
        return out + skipped("causal.past-lost", say("lm.window_one"))
    if blind:
        t = blind[-1]
        return out + failed("causal.past-lost", say("lm.past_lost", t=t, length=length, blind=len(blind)))
    least = min(seen.strength[t, :t].max().item() for t in range(1, length))
    return out + passed("causal.past-lost", say("lm.past_seen", length=length, least=f"{least:.1e}"))


def _future(case: LmCase, seen: Influence, found: Tensor) -> Found:
    """Who sees what comes later, and who sees whom."""
    if case.last_only:
        return skipped("causal.future-leak", say("lm.last_only"))
    expected = torch.ones_like(found).tril() if case.causal else torch.ones_like(found)
    strength = (seen.strength / seen.strength.max().clamp(min=1e-30)).tolist()
    out = Found(sight=Sight(expected.tolist(), found.tolist(), strength))
    return out + _leaks(seen, found) if case.causal else out


def _leaks(seen: Influence, found: Tensor) -> Found:
    leaks = found.triu(1)
    leak = seen.strength.triu(1).max().item()
    own = seen.strength.diagonal().min().item()
    if not leaks.any():
        if own <= seen.floor and not found.any():
            return skipped("causal.future-leak", say("lm.nothing_moves"))
        return passed(
            "causal.future-leak", say("lm.no_leak", length=found.shape[0], own=f"{own:.1e}", leak=f"{leak:.1e}"), leak
        )
    pairs = leaks.nonzero().tolist()
    t, s = min(pairs, key=lambda pair: (pair[1], -pair[0]))
    by = seen.strength[t, s].item()
    evidence = say(
        "lm.leak", length=found.shape[0], t=t, s=s, by=f"{by:.1e}", size=f"{seen.size:.1e}", pairs=len(pairs)
    )
    return failed("causal.future-leak", evidence, largest=leak, effect=leak / seen.size)


def window_reach(case: LmCase, seen: Influence, layers: int) -> Found:
    """How far back the last output sees, against what a stack of windows can."""
    if case.window is None or case.last_only:
        return Found()
    length = seen.strength.shape[0]
    reach = layers * (case.window - 1) + 1
    if reach >= length or layers != 1:
        return Found()
    keys = int((seen.strength[-1] > seen.floor).sum())
    if keys == case.window:
        return passed("window.off-by-one", say("lm.window_right", window=case.window))
    return failed("window.off-by-one", say("lm.window_wrong", window=case.window, found=keys))
