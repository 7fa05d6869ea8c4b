"""Reading with a cache is reading without one: every split, several pieces, a second text, two continuations, a full cache."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from clearhead.checking.claims import size
from clearhead.checking.kinds.cache_causes import cause
from clearhead.checking.kinds.cache_forks import aliased
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.lm_case import LmCase, Session, last_of, logits_of
from clearhead.checking.kinds.lm_finding import failed, passed, skipped
from clearhead.checking.kinds.lm_watch import cores
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.watch import Record, watched
from clearhead.messages import say

LENGTH = 10


@dataclass(frozen=True)
class Reading:
    """A text, what the model says of it in one forward, and how far rounding may part two ways to that."""

    ids: Tensor
    full: Tensor
    size: float
    allowed: float


def reading(case: LmCase, seed: int = 0, rows: int = 2) -> Reading:
    """A text read without the cache."""
    ids = case.ids(rows, case.length(LENGTH), seed)
    with torch.no_grad():
        full = logits_of(case, case.case.ready(), ids)
    spread = max(full.nan_to_num().std().item(), 1e-30)
    return Reading(ids, full, spread, 3 * case.rounding * spread)


def caching(case: LmCase, settings: Settings) -> Found:
    """Everything that is asked of the cache."""
    if case.cache is None:
        return (
            skipped("cache.mismatch", say("lm.cache_unused", tried=case.cache_tried)) if case.cache_tried else Found()
        )
    text = reading(case)
    case = _as_wanted(case, text)
    out = _equal(case, text)
    clean = not out.faults
    out += _stale(case, text, clean)
    if clean:
        out += aliased(case, text) + _overflow(case, settings)
    return out


def _as_wanted(case: LmCase, text: Reading) -> LmCase:
    """The case with a cache beside which the whole text is given, if only so token after token is read as without it."""
    assert case.cache is not None
    whole, steps = replace(case, cache=replace(case.cache, whole=True)), pieces_of(text.ids.shape[1], single=True)[3:4]
    ways = []
    for each in (case, whole):
        with Attempt() as attempt:
            ways.append(all(off_by(read_in(each, text, pieces)) <= text.allowed for pieces in steps))
        ways += [False] if attempt.error is not None else []
    return whole if ways == [False, True] and not case.last_only else case


def pieces_of(length: int, *, single: bool = False) -> list[tuple[int, ...]]:
    """Ways to cut a text: a beginning and single tokens, at every split; pieces of one, of two, of three; one long piece after a beginning."""
    splits = [(begin, *([1] * (length - begin))) for begin in range(1, length)]
    if single:
        return splits
    twos = (2,) * (length // 2) + ((1,) if length % 2 else ())
    threes = (3,) * (length // 3) + ((length % 3,) if length % 3 else ())
    return [*splits, twos, threes, (length - 4, 4), (2, length - 2), (length,)]


def read_in(case: LmCase, text: Reading, pieces: tuple[int, ...], *, explicit: bool = False) -> tuple[Tensor, Tensor]:
    """The logits that were given and those that should have been, of the same positions."""
    found, wanted, at = [], [], 0
    with torch.no_grad():
        session = Session(case, case.case.ready(), text.ids.shape[0], explicit=explicit)
        for length in pieces:
            logits = session.feed(text.ids[:, at : at + length])
            at += length
            found.append(logits)
            wanted.append(text.full[:, at - logits.shape[1] : at])
    return torch.cat(found, 1), torch.cat(wanted, 1)


def off_by(pair: tuple[Tensor, Tensor]) -> float:
    """The largest difference; a NaN is as far as can be."""
    return (pair[0] - pair[1]).abs().nan_to_num(nan=float("inf")).max().item()


def _equal(case: LmCase, text: Reading) -> Found:
    length = text.ids.shape[1]
    worst, raised = 0.0, []
    wrong: dict[tuple[int, ...], float] = {}
    assert case.cache is not None
    ways = pieces_of(length, single=case.cache.whole)
    for pieces in ways:
        with Attempt() as attempt:
            by = off_by(read_in(case, text, pieces))
            worst = max(worst, by)
            if by > text.allowed:
                wrong[pieces] = by
        if attempt.error is not None:
            raised.append((pieces, attempt.reason))
    if not wrong:
        told = len(ways) - len(raised)
        if raised:
            pieces, reason = raised[0]
            note = Found(notes=(say("lm.cache_refuses", pieces=_shown(pieces), reason=reason),))
            return note + (
                passed("cache.mismatch", say("lm.cache_equal", ways=told, by=f"{worst:.1e}"), worst)
                if told
                else skipped("cache.mismatch", reason)
            )
        return passed("cache.mismatch", say("lm.cache_equal", ways=told, by=f"{worst:.1e}"), worst)
    if case.style.name("places") and all(off_by(read_in(case, text, p, explicit=True)) <= text.allowed for p in wrong):
        return passed("cache.mismatch", say("lm.cache_explicit", name=str(case.style.name("places"))))
    return cause(case, text, wrong)


def _shown(pieces: tuple[int, ...]) -> str:
    return "+".join(map(str, pieces))


def _stale(case: LmCase, text: Reading, clean: bool) -> Found:
    """A second text on the same model, after a first that was read to another length."""
    other = reading(case, 7)
    begin = min(4, text.ids.shape[1] - 2)
    with Attempt() as attempt, torch.no_grad():
        module = case.case.ready()
        first = Session(case, module, 2)
        for place in (slice(0, 5), slice(5, 6), slice(6, 7)):
            if other.ids[:, place].shape[1]:
                first.feed(other.ids[:, place])
        found = _steps(Session(case, module, 2), text, begin)
        fresh = _steps(Session(case, case.case.ready(), 2), text, begin)
        by = off_by((found, fresh))
        # The plain forward after a text with the cache.
        plain = off_by((logits_of(case, module, text.ids), text.full))
        if max(by, plain) > text.allowed:
            evidence = say("lm.stale", by=f"{max(by, plain):.1e}", size=f"{text.size:.1e}", begin=begin)
            return failed("cache.stale", evidence, largest=max(by, plain), effect=max(by, plain) / text.size)
        return passed("cache.stale", say("lm.not_stale", by=f"{by:.1e}"), by)
    if clean and "shape" not in attempt.reason and "size" not in attempt.reason:
        return skipped("cache.stale", say("lm.mask_raises", reason=attempt.reason))
    evidence = say("lm.stale_raises", reason=attempt.reason)
    return (
        failed("cache.stale", evidence)
        if case.cache is not None and case.cache.internal
        else skipped("cache.stale", evidence)
    )


def _steps(session: Session, text: Reading, begin: int) -> Tensor:
    """The last logits of a beginning, then of three single tokens."""
    out = [session.feed(text.ids[:, :begin])[:, -1:]]
    for place in range(begin, min(begin + 3, text.ids.shape[1])):
        out.append(session.feed(text.ids[:, place : place + 1]))
    return torch.cat(out, 1)


def _overflow(case: LmCase, settings: Settings) -> Found:
    """At and past the stated context: as cropping does, as a longer forward does, or an error."""
    context = case.limit or size(case.case.target, settings, "context")
    if context is None or context > 128 or context < 4:
        return Found()
    ids = case.ids(1, context + 3, 3)
    with torch.no_grad():
        session = Session(case, case.case.ready(), 1)
        within = _within(case, session, ids, context)
        return within if within.faults else _past(case, session, ids, context)


def _within(case: LmCase, session: Session, ids: Tensor, context: int) -> Found:
    """The last tokens for which there is room."""
    module = case.case.ready()
    with Attempt() as attempt:
        session.feed(ids[:, : context - 2])
        for end in (context - 1, context):
            found = session.feed(ids[:, end - 1 : end])[:, -1]
            if _apart(found, [last_of(case, module, ids[:, :end])], case):
                return failed("cache.overflow", say("lm.overflow_at", context=context, end=end))
        return Found()
    return failed("cache.overflow", say("lm.overflow_early", context=context, reason=attempt.reason))


def _past(case: LmCase, session: Session, ids: Tensor, context: int) -> Found:
    """The first tokens for which there is none."""
    module = case.case.ready()
    for end in range(context + 1, context + 4):
        with Attempt() as attempt:
            found = session.feed(ids[:, end - 1 : end])[:, -1]
        if attempt.error is not None:
            return passed("cache.overflow", say("lm.overflow_refused", context=context, reason=attempt.reason))
        if not _apart(found, _beyond(case, module, ids, end, context), case):
            continue
        if _writes_nowhere(case, ids, end, context):
            return Found(notes=(say("lm.overflow_nowhere", context=context),))
        if not _rolls(case, ids, end, context):
            return failed("cache.overflow", say("lm.overflow", context=context, end=end))
    return passed("cache.overflow", say("lm.overflow_right", context=context, ends=f"{context + 1}..{context + 3}"))


def _beyond(case: LmCase, module: object, ids: Tensor, end: int, context: int) -> list[Tensor]:
    """What a model may say past its context: of the last tokens alone, or of all."""
    legal = []
    for begin in (end - context, 0):
        with Attempt():
            legal.append(last_of(case, module, ids[:, begin:end]))
    return legal


def _stepped(case: LmCase, ids: Tensor, end: int, context: int) -> Record:
    """A step past the context, watched."""
    module = case.case.ready()
    session = Session(case, module, 1)
    session.feed(ids[:, :context])
    for place in range(context, end - 1):
        session.feed(ids[:, place : place + 1])
    return watched(module, partial(session.feed, ids[:, end - 1 : end]))


def _writes_nowhere(case: LmCase, ids: Tensor, end: int, context: int) -> bool:
    """Whether a buffer is written past its end, where Python writes nothing and raises nothing."""
    with Attempt():
        for op in _stepped(case, ids, end, context).named("__setitem__"):
            if (
                isinstance(op.arguments[0], Tensor)
                and op.arguments[0].numel()
                and op.arguments[0][op.arguments[1]].numel() == 0
            ):
                return True
    return False


def _rolls(case: LmCase, ids: Tensor, end: int, context: int) -> bool:
    """Whether the cache is a window of the last `context` tokens: that many keys are seen, the newest among them."""
    with Attempt():
        outs = []
        for step in (0, 1):
            other = ids.clone()
            other[:, end - 2] = (other[:, end - 2] + step) % case.vocab
            record = _stepped(case, other, end, context)
            outs.append(record.result)
            held = [core.weights.shape[-1] for core in cores(record, 1, None, any_keys=True)]
            if not held or max(held) > context:
                return False
        return bool((outs[0] - outs[1]).abs().max() > 0)
    return False


def _apart(found: Tensor, legal: list[Tensor], case: LmCase) -> bool:
    """Whether logits differ from every legal answer."""
    return all(
        (found - each).abs().nan_to_num(nan=float("inf")).max().item() > 3 * case.rounding * each.std().item()
        for each in legal
    )
