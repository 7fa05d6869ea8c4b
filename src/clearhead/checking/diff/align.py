"""Which stage of A stands for which of B, and where the two part.

Two stages are partners if they hold the same numbers to rounding, as they lie or up to a view. What has no partner matters only if the
results differ: then the walk goes back from the result through everything without a partner, and where this begins, though all that
it was made of is the same in both, is the parting. What one side merely computes otherwise ends in partners again, and is not counted.
"""

from __future__ import annotations

from torch import Tensor

from clearhead.checking.diff.numbers import gap, laid, plain
from clearhead.checking.diff.partners import Matching, by_numbers, limits, twins
from clearhead.checking.diff.report import Held, Pair
from clearhead.checking.diff.side import Stage, Walk
from clearhead.checking.diff.stages import CodeStage
from clearhead.checking.diff.standing import by_place, cone


def matched(a: Walk, b: Walk) -> Matching:
    """Partners by numbers, then what stands for each other where the two part."""
    found = Matching()
    by_numbers(a, b, found)
    last = (len(a.stages) - 1, len(b.stages) - 1)
    if min(last) < 0 or found.partner.get(last[0]) == last[1] or _same(a, b, *last, islands=_islands(a, b, found)):
        return found
    if any(isinstance(stage, CodeStage) for walk in (a, b) for stage in walk.stages):
        # In two models of ours a name means one thing, whatever numbers it has.
        near = limits(a, b, max(last))[0]
        found.twins = twins(a, set(found.partner), near), twins(b, set(found.partner.values()), near)
    # A result may be what the other has on the way to its own: it is known then, and still is no partner of the other's result.
    found.cones = (cone(a, set(found.known[0])), cone(b, set(found.known[1])))
    by_place(a, b, found)
    return found


def aligned(a: Walk, b: Walk) -> tuple[Pair, ...]:
    """All stages of A with their partners, then those that B alone has; in A's order."""
    return pairs_of(a, b, matched(a, b))


def pairs_of(a: Walk, b: Walk, found: Matching) -> tuple[Pair, ...]:
    """The same where the partners are known."""
    pairs = [_pair(a, b, found, i) for i in range(len(a.stages))]
    taken = set(found.partner.values()) | set(found.parted.values())
    named = {pair.b for pair in pairs}
    alone = [
        Pair("", stage.name, tuple(stage.value.shape), 0.0, 0.0, "unpaired", stage.where)
        for j, stage in enumerate(b.stages)
        if j not in taken and stage.name not in named
    ]
    return (*alone, *pairs) if not pairs else (*pairs[:-1], *alone, pairs[-1])


def parting(pairs: tuple[Pair, ...]) -> Pair | None:
    """The first pair that differs; None if the two are equal."""
    return next((pair for pair in pairs if pair.held == "differs"), None)


def _pair(a: Walk, b: Walk, found: Matching, i: int) -> Pair:
    stage, limit = a.stages[i], limits(a, b, i)
    j = found.parted.get(i, found.partner.get(found.twins[0].get(i, i)))
    if j is None:
        if i == len(a.stages) - 1 and b.stages and _same(a, b, i, len(b.stages) - 1, islands=_islands(a, b, found)):
            j = len(b.stages) - 1
            far = _apart(stage.value, b.stages[j].value, limit[1])
            return _judged(stage, b.stages[j], far, limit)
        return Pair(stage.name, "", tuple(stage.value.shape), 0.0, limit[0], "unpaired", stage.where)
    far = found.gap[i] if i in found.gap and i not in found.parted else _apart(stage.value, b.stages[j].value, limit[1])
    if i in found.parted and far <= limit[1] and stage.value.shape == b.stages[j].value.shape:
        # The same numbers lie otherwise: as they lie they differ.
        far = gap(plain(stage.value), plain(b.stages[j].value))
    # A mask of nothing but one number has no partner, and is no difference.
    same = i < len(a.stages) - 1 and stage.value.shape == b.stages[j].value.shape and far <= limit[0]
    return _judged(stage, b.stages[j], far, limit, differs=i in found.parted and not same)


def _judged(a: Stage, b: Stage, far: float, limit: tuple[float, float], *, differs: bool = False) -> Pair:
    held: Held = "differs" if differs else "equal" if far <= limit[0] else "island"
    shown = limit[0] if held == "equal" else limit[1]
    return Pair(a.name, b.name, tuple(a.value.shape), far, shown, held, b.where or a.where)


def _apart(x: Tensor, y: Tensor, near: float) -> float:
    """How far two stages are apart, up to a view where one makes them equal."""
    x, y = plain(x), plain(y)
    seen = laid(y, x, near)
    if seen is None:
        seen = y.reshape(x.shape) if x.numel() == y.numel() else y
    return gap(x, seen)


def _same(a: Walk, b: Walk, i: int, j: int, *, islands: bool) -> bool:
    """Whether two results are equal as they lie, or in the shape in which one of them lost an axis."""
    x, y = plain(a.stages[i].value), plain(b.stages[j].value)
    if x.numel() != y.numel() or [n for n in x.shape if n > 1] != [n for n in y.shape if n > 1]:
        return False
    own, inside = limits(a, b, max(i, j))
    return gap(x.flatten(), y.flatten()) <= (inside if islands else own)


def _islands(a: Walk, b: Walk, found: Matching) -> bool:
    """Whether a narrower type brought its rounding into some stage, or that cannot be known."""
    known = all(isinstance(stage, CodeStage) for walk in (a, b) for stage in walk.stages)
    return not known or any(far > limits(a, b, place)[0] for place, far in found.gap.items())
