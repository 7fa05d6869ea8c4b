"""Which names, heads and positions somebody wants to see or to change."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate

import torch
from torch import Tensor

from clearhead.messages import say
from clearhead.tracing.aliases import own_pattern
from clearhead.tracing.names import known_axes

Heads = Mapping[int, Sequence[int]] | Sequence[int] | None
"""Heads of every block, or of each block its own (a block that is not named has none); all if None."""


@dataclass(frozen=True)
class Selection:
    """Part of the named tensors.

    Args:
        names: patterns of `fnmatch`, where `*` stands for anything, dots included; TransformerLens' names are understood.
        heads: along the axis H; negative ones count from the end. Keys and values of grouped heads (axis K) are taken whole.
        positions: along the query axis T, or M of a source; negative ones count from the end. All if None.
    """

    names: str | Sequence[str] = "*"
    heads: Heads = None
    positions: Sequence[int] | None = None
    _patterns: tuple[re.Pattern[str], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        names = (self.names,) if isinstance(self.names, str) else self.names
        # Made once, here: the compiler cannot look into `fnmatch`.
        object.__setattr__(self, "_patterns", tuple(re.compile(translate(own_pattern(name))) for name in names))

    def wants(self, name: str) -> bool:
        """Whether the name is asked for, and some head of it."""
        asked = any(pattern.match(name) for pattern in self._patterns)
        heads = self._asked(name) if "H" in known_axes(name) else None
        return asked and (heads is None or len(heads) > 0)

    def heads_of(self, name: str, count: int) -> list[int] | None:
        """The heads of this name, counted from the start; None for all.

        Args:
            name: of the tensor.
            count: how many heads it has.

        Raises:
            IndexError: if one is none of them.
        """
        asked = self._asked(name)
        if asked is None:
            return None
        return _inside(asked, count, lambda head: say("tracing.head_outside", value=head, count=count))

    def _asked(self, name: str) -> Sequence[int] | None:
        """The heads of this name as they were given; None for all."""
        if not isinstance(self.heads, Mapping):
            return self.heads
        found = re.search(r"blocks\.(\d+)\.", name)
        return self.heads.get(int(found[1]), ()) if found else None

    def places(self, length: int) -> list[int] | None:
        """The positions, counted from the start; None for all.

        Raises:
            IndexError: if one is outside a text of this length.
        """
        if self.positions is None:
            return None
        return _inside(self.positions, length, lambda place: say("tracing.position_outside", value=place, count=length))

    def index(self, name: str, tensor: Tensor) -> tuple[Tensor | slice, ...]:
        """What `tensor[index]` must be asked for to get the part: an index for each axis."""
        axes = known_axes(name)
        chosen: list[Tensor | slice] = [slice(None)] * tensor.dim()
        # Axes in front that only some forwards have (positions of ragged rows) shift the others.
        first = tensor.dim() - len(axes)
        asked = {axis: self.heads_of(name, tensor.shape[first + axes.index(axis)]) for axis in axes if axis == "H"}
        # Weights have two axes of positions; a query is what is asked for.
        query = next((axis for axis in axes if axis in ("T", "M")), None)
        if query is not None:
            asked[query] = self.places(tensor.shape[first + axes.index(query)])
        listed = [(first + axes.index(axis), places) for axis, places in asked.items() if places is not None]
        for number, (axis, places) in enumerate(sorted(listed)):
            # Each list along an axis of its own, so that heads and positions are crossed, not paired.
            shape = [-1] + [1] * (len(listed) - 1 - number)
            chosen[axis] = torch.tensor(places, dtype=torch.long, device=tensor.device).reshape(shape)
        return tuple(chosen)


def _inside(asked: Sequence[int], count: int, refuse: Callable[[int], str]) -> list[int]:
    """What was asked, counted from the start; an IndexError says which is not there."""
    if wrong := [each for each in asked if not -count <= each < count]:
        raise IndexError(refuse(wrong[0]))
    return [each % count for each in asked]
