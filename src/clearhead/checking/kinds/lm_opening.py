"""Opening a language model: its call, vocabulary, limit, mask, cache and claims are found by trial."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case, Inputs
from clearhead.checking.claims import size
from clearhead.checking.constructing import USUAL
from clearhead.checking.kinds import claimed
from clearhead.checking.kinds.caches_made import with_cache
from clearhead.checking.kinds.kind import NoInterfaceError
from clearhead.checking.kinds.lm_calling import Given, Style, arguments, outcome, style_of
from clearhead.checking.kinds.lm_case import LmCase, logits_of, raw
from clearhead.checking.kinds.lm_masks import mask_of
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.target import Target

ROWS, LENGTH, LONGEST = 2, 5, 64


def open_lm(target: Target, settings: Settings) -> LmCase:
    """How a language model is called, found by trial.

    Raises:
        NoInterfaceError: if it gives logits in no known way.
    """
    opened = _called(target, settings)
    limited = _limited(opened, settings)
    claims = replace(limited, causal=_causal(target, settings), window=claimed.window(target, settings))
    masked = replace(claims, mask=mask_of(claims, settings)) if settings.call is None else claims
    return with_cache(masked, settings)


def _causal(target: Target, settings: Settings) -> bool:
    """A language model that scores the next token claims to be causal, unless it says that it is not."""
    if settings.causal is not None:
        return settings.causal
    if claimed.causal(target, settings) is False:
        return False
    name = getattr(target.kind_of, "__name__", "")
    denied = r"bidirectional|masked.?(lm|language)|\bmlm\b|prefix.?lm|bert|non.?causal|diffusion"
    if re.search(denied, name, re.IGNORECASE) is not None:
        return False
    if re.search(r"gpt|causal", name, re.IGNORECASE) is not None:
        # Words about a model that it is compared with, or about its package, do not outweigh its own name.
        return True
    return re.search(denied, target.source, re.IGNORECASE) is None or _parts_causal(target)


def _parts_causal(target: Target) -> bool:
    """Whether the parts inside have switches for it, and all of them are on: words about other uses then say nothing of this one."""
    made = target.sample
    parts = made.modules() if isinstance(made, nn.Module) else ()
    flags = [getattr(part, name, None) for part in parts for name in ("causal", "is_causal")]
    said = [flag for flag in flags if isinstance(flag, bool)]
    return bool(said) and all(said)


def vocabulary(target: Target, settings: Settings) -> int:
    """How many ids there are: as said or stated, or as the first embedding that is none of positions has."""
    said = size(target, settings, "vocab")
    if said is not None:
        return said
    made = target.make()
    named = list(made.named_modules()) if isinstance(made, nn.Module) else []
    embeddings = [
        m.num_embeddings
        for name, m in named
        if isinstance(m, nn.Embedding) and not re.search(r"pos|seg|type|wpe", name)
    ]
    if embeddings:
        return embeddings[0]
    heads = [m.out_features for _, m in named if isinstance(m, nn.Linear)]
    tables = [
        p.shape[0]
        for n, p in (made.named_parameters() if named else [])
        if p.dim() == 2 and re.search(r"emb|wte|tok", n)
    ]
    return (tables or heads[-1:] or [USUAL["vocab"]])[0]


def _called(target: Target, settings: Settings) -> LmCase:
    tried: list[str] = []
    vocab = vocabulary(target, settings)
    for dtype in (torch.float64, torch.float32):
        for style in _styles(target):
            case = _case(target, settings, style, vocab, dtype)
            reason, logits = _tries(case, LENGTH)
            if logits is None:
                tried.append(f"{tuple(name for name, _ in style.roles)} {dtype}: {reason}")
                continue
            if logits.shape[1] == LENGTH:
                return case
            with_targets = replace(case, with_targets=True)
            full = _tries(with_targets, LENGTH)[1] if style.name("targets", "labels") else None
            if full is not None and full.shape[1] == LENGTH:
                return with_targets
            return replace(case, last_only=True)
    raise NoInterfaceError(list(dict.fromkeys(tried))[:6])


def _styles(target: Target) -> Iterator[Style]:
    base = style_of(target)
    yield base
    if base.name("places"):
        yield replace(base, places_rows=False)
    if base.name("start"):
        yield replace(base, start_as="tensor")
        yield replace(base, start_as="range")
    if base.name("mask") in base.required:
        yield replace(base, roles=tuple((n, "ones" if r == "mask" else r) for n, r in base.roles))
        yield replace(base, roles=tuple((n, "triangle" if r == "mask" else r) for n, r in base.roles))
    if base.name("targets", "labels") in base.required:
        yield replace(base, roles=tuple((n, "ids" if r in ("targets", "labels") else r) for n, r in base.roles))


def _case(target: Target, settings: Settings, style: Style, vocab: int, dtype: torch.dtype) -> LmCase:
    def inputs(rows: int, length: int, seed: int, _: torch.dtype) -> Inputs:
        drawn = torch.Generator().manual_seed(settings.seed * 1000 + seed)
        # Never one token twice in a row: a change of one is then a change.
        return (torch.randint(0, vocab, (rows, length), generator=drawn),)

    def runs(module: Any, given: Inputs) -> Tensor:
        return logits_of(found, module, given[0])

    found = LmCase(Case(target, inputs, runs, dtype), style, vocab, call=settings.call)
    return found


def rewired(case: LmCase) -> LmCase:
    """The case whose `run` knows all that has been found since."""
    done: LmCase

    def runs(module: Any, given: Inputs) -> Tensor:
        return logits_of(done, module, given[0])

    done = replace(case, case=replace(case.case, run=runs))
    return done


def _tries(case: LmCase, length: int) -> tuple[str, Tensor | None]:
    """Why no logits came, or they."""
    with Attempt() as attempt, torch.no_grad():
        ids = case.ids(ROWS, length)
        module = case.case.ready()
        if case.call is not None:
            found = outcome(case.call(module, ids), ids)
        else:
            given = Given(targets=ids if case.with_targets else None)
            found = outcome(module(ids, **arguments(case.style, ids, given)), ids)
        return ("no logits (B,T,V) among what it gives", None) if found is None else ("", found.logits)
    return attempt.reason, None


def _limited(case: LmCase, settings: Settings) -> LmCase:
    """The case with its longest input, where it takes no more than a few."""
    case = rewired(case)

    def takes(length: int) -> bool:
        with Attempt(), torch.no_grad():
            targets = case.ids(1, length) if case.with_targets else None
            raw(case, case.case.ready(), case.ids(1, length), Given(targets=targets))
            return True
        return False

    if takes(LONGEST):
        return case
    stated = size(case.case.target, settings, "context")
    if stated is not None and stated < LONGEST and takes(stated) and not takes(stated + 1):
        return rewired(replace(case, limit=stated))
    low, high = LENGTH, LONGEST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if takes(middle) else (low, middle)
    return rewired(replace(case, limit=low))
