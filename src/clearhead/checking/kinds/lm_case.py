"""A language model, ids (B,T) -> logits (B,T,V), and one way to run it, whatever its interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from clearhead.checking.case import Case
from clearhead.checking.kinds.lm_calling import Given, Output, Style, arguments, outcome
from clearhead.checking.kinds.masks_found import MaskUse, encoded


@dataclass(frozen=True)
class CacheUse:
    """How the model keeps what it has seen.

    Args:
        make: (module, rows) -> what is passed at first: None, an empty list, an object of the caller's.
        described: that, in words.
        internal: whether the module itself keeps it.
        whole: whether the text so far is given again with each new token, of which the cache spares the work.
    """

    make: Callable[[Any, int], Any]
    described: str
    internal: bool = False
    whole: bool = False


@dataclass(frozen=True)
class LmCase:
    """A language model and how it is called.

    Args:
        case: the target, ids for it and one way to run it.
        style: how it is called.
        vocab: how many ids there are.
        last_only: whether it gives logits of the last position alone, unless it gets targets.
        with_targets: whether targets must be given for logits of all positions.
        limit: the longest input, if there is a limit of at most 64.
        mask: its padding mask; None if it takes none.
        cache: how it keeps what it has seen; None if it does not.
        cache_tried: why its cache could not be used, "" if it has none or it could.
        causal: whether the code claims that a position sees no later one.
        window: how many keys it claims that a query sees.
        call: the user's own way to call it.
    """

    case: Case
    style: Style
    vocab: int
    last_only: bool = False
    with_targets: bool = False
    limit: int | None = None
    mask: MaskUse | None = None
    cache: CacheUse | None = None
    cache_tried: str = ""
    causal: bool | None = None
    window: int | None = None
    call: Any = None

    def length(self, wanted: int) -> int:
        """The wanted length, or the longest that the model takes."""
        return min(wanted, self.limit or wanted)

    def ids(self, rows: int, length: int, seed: int = 0) -> Tensor:
        """Random ids (B,T)."""
        return self.case.inputs(rows, length, seed, self.case.dtype)[0]

    @property
    def rounding(self) -> float:
        """How far two ways to the same logits may lie apart, beside their size; float32 islands are allowed for."""
        return 3e-6 if self.case.dtype == torch.float64 else 2e-4


def raw(case: LmCase, module: Any, ids: Tensor, given: Given) -> Output:
    """One call of the model.

    Raises:
        ValueError: if it gives no logits.
    """
    # As a loader gives them: people's code takes views.
    ids = ids.contiguous()
    if case.call is not None and not given.cached:
        result = case.call(module, ids)
    else:
        result = module(ids, **arguments(case.style, ids, given))
    found = outcome(result, ids, given.cache)
    if found is None:
        raise ValueError("no logits (B,T,V) among what it gives")
    return found


def logits_of(
    case: LmCase, module: Any, ids: Tensor, *, keep: Tensor | None = None, places: Tensor | None = None
) -> Tensor:
    """Logits (B,T,V) of all positions in one forward, without a cache.

    Where the model gives the last position alone, each prefix is run.

    Args:
        case: how it is called.
        module: a copy of the target.
        ids: (B,T).
        keep: (B,T), True for real tokens; needs a mask.
        places: (B,T) positions, where they are not counted from 0.
    """
    mask = None
    if keep is not None and case.mask is not None:
        mask = encoded(case.mask, keep, ids.shape[1], case.case.dtype)
    if case.last_only:
        steps = []
        for end in range(1, ids.shape[1] + 1):
            cut = None if keep is None or case.mask is None else encoded(case.mask, keep[:, :end], end, case.case.dtype)
            given = Given(mask=cut, places=None if places is None else places[:, :end])
            steps.append(raw(case, module, ids[:, :end], given).logits[:, -1])
        return torch.stack(steps, 1)
    targets = ids if case.with_targets else None
    return raw(case, module, ids, Given(mask=mask, targets=targets, places=places)).logits


def last_of(case: LmCase, module: Any, ids: Tensor) -> Tensor:
    """Logits (B,V) of the last position."""
    if case.last_only:
        return raw(case, module, ids, Given()).logits[:, -1]
    return logits_of(case, module, ids)[:, -1]


class Session:
    """One text being read with a cache, as a user would: what is given back is passed on.

    Args:
        case: how the model is called.
        module: a copy of the target.
        rows: B.
        shift: added to the count of tokens seen, to try out an offset.
        explicit: whether positions are given, where the model takes them.
    """

    def __init__(self, case: LmCase, module: Any, rows: int, *, explicit: bool = False) -> None:
        assert case.cache is not None
        self.case, self.module, self.explicit = case, module, explicit
        self.cache = case.cache.make(module, rows)
        self.seen, self.text = 0, torch.empty(rows, 0, dtype=torch.long)

    def feed(self, ids: Tensor, shift: int = 0) -> Tensor:
        """Logits of the next ids (B,n,V), or (B,1,V) of the last alone."""
        at = self.seen + shift
        places = None
        if self.explicit and self.case.style.name("places"):
            plain = torch.arange(at, at + ids.shape[1])
            places = plain.expand(ids.shape) if self.case.style.places_rows else plain
        self.text = torch.cat([self.text, ids], 1)
        assert self.case.cache is not None
        given = self.text if self.case.cache.whole else ids
        found = raw(self.case, self.module, given, Given(at, True, self.cache, places=places))
        if found.cache is not None:
            self.cache = found.cache
        self.seen += ids.shape[1]
        if self.case.cache.whole and found.logits.shape[1] != ids.shape[1]:
            raise ValueError("gives logits of more than the new tokens")
        return found.logits

    def fork(self) -> Session:
        """A second continuation of what has been read, by reference, as users do."""
        other = Session.__new__(Session)
        other.__dict__.update(self.__dict__)
        return other
