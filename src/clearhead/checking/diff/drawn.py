"""Which weights of a piece of code are drawn when it is built, and so say nothing of the code; and drawing those that hold one number at first."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from clearhead.checking.diff.code import CodeSide
from clearhead.checking.diff.side import Side
from clearhead.checking.diff.weights_numbers import flat
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.messages import UserError, say

SPREAD = 0.3
"""How far what is drawn lies from the number that was there."""

FULL = 200_000_000
"""A class that makes more numbers than this is not small."""


class Drawn(NamedTuple):
    """Which weights are drawn when a side is built.

    Args:
        every: whether all are: of a class, or a factory that loads none.
        names: those that are, where others are loaded; by the side's own names.
    """

    every: bool = False
    names: frozenset[str] = frozenset()


def drawn_in(found: Any) -> Drawn:
    """Which weights of what builds a module are drawn: all of a class; of a factory those that are others each time.

    A gain of 1 or a shift of 0 is the same each time; it counts as drawn where all that could tell are.

    Args:
        found: a class, a factory, or something that builds nothing.
    """
    if isinstance(found, type):
        return Drawn(every=True)
    if isinstance(found, nn.Module) or not callable(found):
        return Drawn()
    built: list[dict[str, Tensor]] = []
    for seed in (1, 2):
        with Attempt(), Seeded(seed):
            made = found()
            if isinstance(made, type):
                return Drawn(every=True)
            built.append(dict(made.named_parameters()) if isinstance(made, nn.Module) else {})
    if len(built) < len((1, 2)) or built[0].keys() != built[1].keys():
        return Drawn()
    names = frozenset(name for name, one in built[0].items() if not _same(one, built[1][name]))
    kept = [name for name, one in built[0].items() if name not in names and not flat(one)]
    return Drawn(every=bool(names) and not kept, names=names if kept else frozenset())


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether two hold the same numbers; NaN is the same as NaN, for a factory that gives it twice loads it."""
    if one.shape != other.shape:
        return False
    one, other = one.detach(), other.detach()
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def unlike(side: Side, but: Collection[str] = (), seed: int = 0) -> tuple[Side, int]:
    """The side, weights of one number drawn: a gain of 1 hides that it is 1 + w, a shift of 0 that it is there.

    Args:
        side: a piece of code; another is left as it is.
        but: names of weights that are left.
        seed: of what is drawn.

    Returns:
        The side, and how many tensors were drawn.
    """
    made = side.module(None) if isinstance(side, CodeSide) else None
    if not isinstance(made, nn.Module) or not isinstance(side, CodeSide):
        return side, 0
    drawn = torch.Generator().manual_seed(seed)
    given = {
        name: _moved(each.detach(), drawn)
        for name, each in made.named_parameters()
        if each.requires_grad and each.is_floating_point() and name not in but and each.numel() and flat(each)
    }
    return (side.with_weights(given) if given else side), len(given)


def _moved(tensor: Tensor, drawn: torch.Generator) -> Tensor:
    """Numbers around the one that is there, with its sign; around zero of both signs."""
    by = SPREAD * torch.randn(tensor.shape, generator=drawn, dtype=torch.float64).clamp(-2, 2)
    return (torch.where(tensor == 0, by, tensor * (1 + by))).to(tensor.dtype)


def lost_numbers(side: Side, weights: Mapping[str, Tensor]) -> list[str]:
    """That weights of a side hold what is no number."""
    return [
        say("weights.nan_held", name=side.name, tensor=name, lost=int(each.isnan().sum()), number=each.numel())
        for name, each in weights.items()
        if each.is_floating_point() and bool(each.isnan().any())
    ][:4]


def must_be_small(found: Any, name: str, values: Mapping[str, Any]) -> None:
    """Refuse a class that is built full size where nothing says how small it is to be.

    Args:
        found: what is compared.
        name: as the user called it.
        values: arguments of constructors that the user gave.

    Raises:
        UserError: if it is a class with a configuration of its own, as a published model has it, that makes too many numbers.
    """
    config = getattr(found, "config_class", None)
    if not isinstance(found, type) or not isinstance(config, type) or values:
        return
    numbers = 0
    with Attempt(), torch.device("meta"):
        numbers = sum(each.numel() for each in found(config()).parameters())
    if numbers > FULL:
        said = say("diff.full_size", name=name, numbers=f"{numbers:,}", kind=found.__name__, config=config.__name__)
        raise UserError(said)
