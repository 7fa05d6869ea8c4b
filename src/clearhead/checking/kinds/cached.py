"""Fewer queries than keys: with keys and values from elsewhere, or kept from an earlier call."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import torch
from torch import Tensor

from clearhead.checking.kinds.calling import called
from clearhead.checking.kinds.causality import Seen, place
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.seeing import changed, memory_influence, moved, ready, seen_above, size_of
from clearhead.checking.kinds.sequence_case import SequenceCase, stream_of
from clearhead.checking.report import Check, Fault
from clearhead.checking.strangers import Attempt
from clearhead.messages import say

NAME = "causal.top-left"
CACHE = r"(.*_)?(cache|past|past_kv|past_key_values?|past_kvs|layer_past|kv_cache|kvcache|kv|prev_kv|state|prefix_kv)"
OFFSET = r"start_?pos|offset|pos_offset|past_len(gth)?|cache_len"
QUERIES, KEYS = 3, 7


def fewer_queries(case: SequenceCase, seen: Seen) -> Found:
    """Whether the last query sees all keys, and the others up to theirs, where there are fewer queries than keys."""
    if not seen.causal or case.fixed is not None:
        return Found((Check(NAME, "skipped", say("attention.not_causal")),))
    matrix = _by_memory(case)
    how = "memory"
    if matrix is None:
        matrix, how = _by_cache(case), "cache"
    if matrix is None:
        return Found((Check(NAME, "skipped", say("attention.no_fewer")),))
    found = matrix > seen_above(case)
    right = torch.ones_like(found).tril(found.shape[1] - found.shape[0])
    wrong = torch.ones_like(found).tril()
    if how == "cache":
        # A query's own position moves its output through the query; whether its key is seen is told by the others.
        own = torch.eye(found.shape[1], dtype=torch.bool)[-found.shape[0] :]
        found, wrong, right = found & ~own, wrong & ~own, right & ~own
    if bool((found == wrong).all()) and not bool((right == wrong).all()):
        evidence = say(f"attention.top_left_by_{how}", queries=found.shape[0], keys=found.shape[1])
        fault = Fault(NAME, "reproduced", evidence, place(seen), say("attention.top_left_fix"), None)
        return Found((Check(NAME, "fail", evidence),), (fault,))
    leak = found & ~right
    if how == "cache" and bool(leak.any()):
        query, key = [int(n) for n in leak.nonzero()[0]]
        evidence = say("attention.cache_leak", query=query, source=key, queries=found.shape[0], keys=found.shape[1])
        fault = Fault("causal.future-leak", "consistent", evidence, place(seen), say("attention.leak_fix"), None)
        return Found((Check("causal.future-leak", "fail", evidence),), (fault,))
    if not bool((found == right).all()):
        return Found((Check(NAME, "skipped", say("attention.no_fewer")),))
    evidence = say("attention.top_left_passed", queries=found.shape[0], keys=found.shape[1])
    return Found((Check(NAME, "pass", evidence),))


def _by_memory(case: SequenceCase) -> Tensor | None:
    """(T,S): which keys of another sequence each query sees; None if none is taken or all are seen by all."""
    if not case.takes_memory or case.ids:
        return None
    crosses = re.search(r"cross.?attention", case.case.target.source, re.IGNORECASE) is not None
    if crosses and any(use.pairs_too for use in case.masks):
        # Another sequence then, which goes on from nothing, and who sees what of it is the caller's to say.
        return None
    with Attempt():
        x, memory = case.inputs(2, QUERIES, 21), case.inputs(2, KEYS, 22)
        return memory_influence(case, ready(case), x, memory)
    return None


def _by_cache(case: SequenceCase) -> Tensor | None:
    """(T,S): which keys of all so far the queries of a second call see; None if there is no cache to be found."""
    parameters = case.case.target.signature.parameters
    name = next((name for name in parameters if re.fullmatch(CACHE, name.lower())), None)
    if name is None or case.case.target.source == "":
        return None
    with Attempt(), torch.no_grad():
        x, module = case.inputs(2, case.length(KEYS), 23), ready(case)
        cut = x.shape[1] - QUERIES
        base = _second(case, module, x, cut, name)
        columns = []
        for position in range(x.shape[1]):
            other = _second(case, module, changed(case, x, position), cut, name)
            columns.append(moved(base, other).amax((0, -1)) / size_of(base))
        return torch.stack(columns, -1)
    return None


def _second(case: SequenceCase, module: Any, x: Tensor, cut: int, name: str) -> Tensor:
    """The output of the second call, which goes on where the first one ended."""
    parameters = case.case.target.signature.parameters
    flags = {flag: True for flag in ("use_cache", "return_cache") if flag in parameters}
    result = called(case.style, partial(module, **flags), x[:, :cut])
    kept = _kept(result)
    more = {offset: cut for offset in parameters if re.fullmatch(OFFSET, offset.lower())}
    later = called(case.style, partial(module, **flags, **{name: kept}, **more), x[:, cut:])
    return stream_of(case, later, x[:, cut:])


def _kept(result: Any) -> Any:
    """The cache among what a call returned: the last thing that is not the output."""
    if isinstance(result, tuple | list) and len(result) > 1:
        return result[-1] if result[-1] is not None else result[1]
    return next(value for key, value in vars(result).items() if re.fullmatch(CACHE, key.lower()))
