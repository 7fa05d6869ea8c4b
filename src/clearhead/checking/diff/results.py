"""What is to be said of two results beyond their stages: their shapes, what is given beside them, and numbers that are none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.checking.diff.align import parting
from clearhead.checking.diff.numbers import gap, plain
from clearhead.checking.diff.partners import limits
from clearhead.checking.diff.report import Pair, Reason
from clearhead.checking.diff.side import Stage, Walk
from clearhead.checking.diff.sources import parents_of
from clearhead.checking.diff.stages import CodeStage
from clearhead.messages import say

SIDES = ("A", "B")


class Chosen(NamedTuple):
    """Two walks that end where they can be compared.

    Args:
        walks: of A and of B.
        notes: what is to be said of that.
    """

    walks: tuple[Walk, Walk]
    notes: tuple[str, ...]


def chosen(a: Walk, b: Walk) -> Chosen:
    """Where the results have not one shape and one of the two gives beside its own what has the other's, that is compared."""
    walks = [a, b]
    if not (a.stages and b.stages) or _shape(a) == _shape(b):
        return Chosen((a, b), _last_only(walks))
    for n, (walk, other) in enumerate(((a, b), (b, a))):
        near = limits(a, b, len(walk.stages))[1]
        fitting = {
            name: gap(plain(each.value), plain(other.stages[-1].value))
            for name, each in walk.further.items()
            if tuple(each.value.shape) == _shape(other)
        }
        if fitting:
            name = min(fitting, key=fitting.__getitem__)
            if fitting[name] <= near or len(fitting) == 1:
                further = {key: each for key, each in walk.further.items() if key != name}
                walks[n] = replace(walk, stages=walk.further[name].stages, further=further)
                note = say("diff.further_result", name=name, side=SIDES[n])
                return Chosen((walks[0], walks[1]), (note, *_last_only(walks)))
    return Chosen((a, b), _last_only(walks))


def _last_only(walks: list[Walk]) -> tuple[str, ...]:
    return tuple(
        say("diff.last_only", side=SIDES[n])
        for n, walk in enumerate(walks)
        if walk.last_only and not walks[1 - n].last_only
    )


def _shape(walk: Walk) -> tuple[int, ...]:
    return tuple(walk.stages[-1].value.shape)


def shaped_apart(a: Walk, b: Walk, pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """The pairs, the last of them apart where the results of two pieces of code hold the same numbers in other shapes."""
    if parting(pairs) is not None or not pairs or not _of_code(a) or not _of_code(b) or _shape(a) == _shape(b):
        return pairs
    return (*pairs[:-1], replace(pairs[-1], b=b.stages[-1].name, largest=float("inf"), held="differs"))


def _of_code(walk: Walk) -> bool:
    return bool(walk.stages) and isinstance(walk.stages[-1], CodeStage)


def beside_apart(a: Walk, b: Walk) -> Iterator[Pair]:
    """What both give beside their results, under one name and in one shape, and is not the same."""
    near = limits(a, b, max(len(a.stages), len(b.stages)))[1]
    for name, one in a.further.items():
        other = b.further.get(name)
        if other is not None and other.value.shape == one.value.shape:
            far = gap(plain(one.value), plain(other.value))
            if not far <= near:
                where = other.stages[-1].where if other.stages else ""
                yield Pair(name, name, tuple(one.value.shape), far, near, "differs", where)


def beside_alone(a: Walk, b: Walk) -> tuple[str, ...]:
    """What one of two pieces of code gives beside its result and the other does not."""
    if not (_of_code(a) and _of_code(b)):
        return ()
    shapes = [{name: each.value.shape for name, each in walk.further.items()} for walk in (a, b)]
    alone = [[name for name in shapes[n] if shapes[n][name] != shapes[1 - n].get(name)] for n in (0, 1)]
    return tuple(
        say("diff.further_alone", side=SIDES[n], names=", ".join(names[:4])) for n, names in enumerate(alone) if names
    )


class Broken(NamedTuple):
    """Where numbers end.

    Args:
        pairs: all, with that of the place at which they end.
        reason: which side gives what.
    """

    pairs: tuple[Pair, ...]
    reason: Reason


def broken(a: Walk, b: Walk, pairs: tuple[Pair, ...]) -> Broken | None:
    """Where one of the two gives NaN, or infinity where the other does not, from some stage on to its result; None if neither does."""
    if not (a.stages and b.stages and pairs):
        return None
    results = a.stages[-1].value, b.stages[-1].value
    for what, of in (("NaN", torch.isnan), ("inf", torch.isinf)):
        has = [bool(of(each).any()) for each in results]
        if not any(has) or (what == "inf" and has[0] and has[1]):
            continue
        n = 0 if has[0] and not has[1] else 1
        stage = _start((a, b)[n], what)
        who = " and ".join(SIDES) if all(has) else SIDES[n]
        place = _named(pairs, stage, n)
        pair = Pair("", "", tuple(stage.value.shape), float("nan"), 0.0, "differs", stage.where)
        pair = replace(pair, a=stage.name) if n == 0 else replace(pair, b=stage.name)
        if place is not None:
            pair = replace(pairs[place], largest=float("nan"), held="differs")
        at = place if place is not None else next((m for m, each in enumerate(pairs) if each.held == "differs"), 0)
        told = (*pairs[:at], pair, *pairs[at + (place is not None) :])
        text = say("diff.broken", side=who, what=what, place=f"{stage.name}")
        id = "numbers.nan" if what == "NaN" else "numbers.infinite"
        return Broken(told, Reason(id, "consistent", stage.name, text, float("nan"), float("nan")))
    return None


def _named(pairs: tuple[Pair, ...], stage: Stage, n: int) -> int | None:
    return next((m for m, each in enumerate(pairs) if (each.a, each.b)[n] == stage.name), None)


def _start(walk: Walk, what: str) -> Stage:
    """The first stage of the chain of such numbers that ends in the result."""
    parents, place = parents_of(walk), len(walk.stages) - 1

    def has(x: Tensor) -> bool:
        return bool((x.isnan() if what == "NaN" else x.isinf()).any())

    while True:
        before = [at for at in parents[place] if at < place and has(walk.stages[at].value)]
        if not before:
            return walk.stages[place]
        place = min(before)
