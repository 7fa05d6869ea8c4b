"""Two continuations of one beginning: as users go on from a cache, by reference where it is a value, on copies where it is an object that changes."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.lm_case import LmCase, Session, logits_of
from clearhead.checking.kinds.lm_finding import failed, passed, skipped
from clearhead.checking.strangers import Attempt
from clearhead.messages import say

if TYPE_CHECKING:
    from clearhead.checking.kinds.caches import Reading


def aliased(case: LmCase, text: Reading) -> Found:
    """Two continuations of one beginning, by turns.

    A cache that the model gives back as a value (tensors, tuples, lists, dictionaries) may be kept and read again; one that is an
    object, or that the caller made, changes as it is used, and whoever goes on twice takes a deep copy first.

    Args:
        case: how the model is called.
        text: what is read.
    """
    if case.cache is None or case.cache.internal:
        return Found()
    copied = not returned(case, text) or changes(case, text)
    begin = text.ids.shape[1] - 3
    other = text.ids.clone()
    other[:, begin:] = (other[:, begin:] + 1) % case.vocab
    one = Session(case, case.case.ready(), 2)
    with Attempt() as attempt, torch.no_grad():
        one.feed(text.ids[:, :begin])
        two = one.fork()
        if copied:
            two.cache = copy.deepcopy(one.cache)
    if attempt.error is not None:
        return skipped("cache.aliased", say("lm.fork_raises", reason=attempt.reason))
    return _by_turns(case, text, (one, two), other, copied=copied)


def _by_turns(case: LmCase, text: Reading, pair: tuple[Session, Session], other: Tensor, *, copied: bool) -> Found:
    """Both continuations, token by token, against one forward of each."""
    begin, (one, two) = pair[0].seen, pair
    found, second = [], []
    with Attempt() as attempt, torch.no_grad():
        for place in range(begin, text.ids.shape[1]):
            second.append(two.feed(other[:, place : place + 1]))
            found.append(one.feed(text.ids[:, place : place + 1]))
        wanted = logits_of(case, case.case.ready(), other)[:, begin:]
        by = max(_far(found, text.full[:, begin:]), _far(second, wanted))
        if by > text.allowed:
            off, size = f"{by:.1e}", f"{text.size:.1e}"
            evidence = (
                say("lm.aliased_copy", begin=begin, by=off, size=size)
                if copied
                else say("lm.aliased", begin=begin, by=off, size=size)
            )
            return failed("cache.aliased", evidence, largest=by, effect=by / text.size)
        if _far(found, wanted) <= text.allowed:
            return skipped("cache.aliased", say("lm.forks_alike"))
        told = passed("cache.aliased", say("lm.not_aliased", by=f"{by:.1e}"), by)
        return told + Found(notes=(say("lm.callers_own"),)) if copied else told
    return failed("cache.aliased", say("lm.aliased_raises", begin=begin, reason=attempt.reason))


def _far(steps: list[Tensor], wanted: Tensor) -> float:
    """The largest difference; a NaN is as far as can be."""
    return (torch.cat(steps, 1) - wanted).abs().nan_to_num(nan=float("inf")).max().item()


def returned(case: LmCase, text: Reading) -> bool:
    """Whether the cache begins as nothing, or comes back as another object: then it is a value, not a thing of the caller's."""
    with Attempt(), torch.no_grad():
        session = Session(case, case.case.ready(), 2)
        began = session.cache
        session.feed(text.ids[:, :2])
        return began is None or session.cache is not began
    return False


def changes(case: LmCase, text: Reading) -> bool:
    """Whether an object, such as a class of caches has, comes back as the same object when it has grown."""
    with Attempt(), torch.no_grad():
        session = Session(case, case.case.ready(), 2)
        session.feed(text.ids[:, :2])
        before = list(objects(session.cache))
        session.feed(text.ids[:, 2:3])
        return bool({id(each) for each in before} & {id(each) for each in objects(session.cache)})
    return False


def objects(cache: Any) -> Iterator[Any]:
    """The objects with fields of their own in nested tuples, lists and dictionaries."""
    if isinstance(cache, Mapping) and type(cache).__module__ in ("builtins", "collections"):
        for item in cache.values():
            yield from objects(item)
    elif isinstance(cache, tuple | list):
        for item in cache:
            yield from objects(item)
    elif not isinstance(cache, Tensor) and getattr(cache, "__dict__", getattr(cache, "__slots__", None)):
        yield cache
