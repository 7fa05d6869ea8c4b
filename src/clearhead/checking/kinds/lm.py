"""The kind `lm`: ids (B,T) -> logits (B,T,V), with or without a cache."""

from __future__ import annotations

from collections.abc import Callable

from clearhead.checking.common.everything import everything
from clearhead.checking.kinds.cache_joined import joined
from clearhead.checking.kinds.caches import caching
from clearhead.checking.kinds.caches_made import layers_of
from clearhead.checking.kinds.kind import Found, Kind
from clearhead.checking.kinds.lm_case import LmCase
from clearhead.checking.kinds.lm_causal import causality, influence, window_reach
from clearhead.checking.kinds.lm_finding import skipped
from clearhead.checking.kinds.lm_generate import generating
from clearhead.checking.kinds.lm_inside import inside, order_matters
from clearhead.checking.kinds.lm_loss import own_loss
from clearhead.checking.kinds.lm_made import tied
from clearhead.checking.kinds.lm_opening import open_lm, rewired
from clearhead.checking.kinds.lm_padding import padding
from clearhead.checking.kinds.lm_parts import attentions, blocks, norms
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.target import Target
from clearhead.messages import say


def opened(target: Target, settings: Settings) -> LmCase:
    """How the target is called as a language model; raises NoInterfaceError if in no known way."""
    return rewired(open_lm(target, settings))


NOISY = ("dropout.active-in-eval", "noise.injected", "parameter.recreated", "cache.stale", "weights.non-finite")
"""Where two equal calls differ, or no number comes out, nothing else can be told."""


def check(case: LmCase, settings: Settings) -> Found:
    """Everything that is asked of a language model."""
    common = everything(case.case, settings)
    if any(fault.id in NOISY for fault in common.faults):
        return common + skipped("causal.future-leak", say("lm.noisy"))
    seen = influence(case)
    found = causality(case, seen)
    found += _asked("window.off-by-one", lambda: window_reach(case, seen, layers_of(case, settings)))
    found += _asked("causal.self-masked", lambda: inside(case))
    found += _asked("cache.shared-between-blocks", lambda: joined(case))
    found += _asked("position.unused", lambda: order_matters(case))
    found += _asked("scale.missing", lambda: attentions(case, settings))
    found += _asked("residual.missing", lambda: blocks(case, settings))
    found += _asked("norm.formula", lambda: norms(case, settings))
    found += _asked("mask.ignored", lambda: padding(case))
    if any(fault.id == "causal.future-leak" for fault in found.faults):
        # One forward that looks ahead is no measure of what a cache should give.
        found += skipped("cache.mismatch", say("lm.leaks"))
    else:
        found += _asked("cache.mismatch", lambda: caching(case, settings))
    found += _asked("loss.unshifted", lambda: own_loss(case))
    found += _asked("generate.finished-rows", lambda: generating(case))
    return found + _asked("init.after-tying", lambda: tied(case)) + common


def _asked(name: str, question: Callable[[], Found]) -> Found:
    """A question's answer; one that the code cannot be asked is skipped, with the reason."""
    with Attempt() as attempt:
        return question()
    return skipped(name, say("lm.question_raises", reason=attempt.reason))


KIND = Kind("lm", opened, check)
