"""Which foreign tensors a tensor of ours is made of: a table that can be read in both directions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Change:
    """A rearrangement of one tensor, and the one that undoes it: no number changes.

    Args:
        ours: from how the file holds the tensor to how we do.
        theirs: back.
        turns: whether rows become columns; all else keeps the shape.
    """

    ours: Callable[[Tensor], Tensor]
    theirs: Callable[[Tensor], Tensor]
    turns: bool = False


def _same(x: Tensor) -> Tensor:
    return x


def _transposed(x: Tensor) -> Tensor:
    return x.t()


AS_IS = Change(_same, _same)
TRANSPOSED = Change(_transposed, _transposed, turns=True)
"""GPT-2's `Conv1D` holds (in, out) where a Linear holds (out, in)."""


def _exchanged(x: Tensor, groups: tuple[int, ...], axis: int) -> Tensor:
    """The rows seen as `groups`, with the group at `axis` and the next one in each other's place."""
    return x.reshape(*groups, *x.shape[1:]).transpose(axis, axis + 1).reshape(x.shape)


def by_head(heads: int) -> Change:
    """NeoX's fused projection holds the q, k and v of head 0, then those of head 1; ours all q, then all k, then all v.

    Args:
        heads: H; the rows are H·3·d (a matrix (3·H·d, D) or its bias (3·H·d)).
    """

    def ours(x: Tensor) -> Tensor:
        return _exchanged(x, (heads, 3, len(x) // (3 * heads)), 0)

    def theirs(x: Tensor) -> Tensor:
        return _exchanged(x, (3, heads, len(x) // (3 * heads)), 0)

    return Change(ours, theirs)


def halves_from_pairs(heads: int) -> Change:
    """Llama's GGUF files turn neighbouring features of a head, ours the two halves: the rows of q and k are in another order.

    Args:
        heads: H for q, K for k; row 2i + j of a head there is row i + j·d/2 here.
    """

    def ours(x: Tensor) -> Tensor:
        return _exchanged(x, (heads, len(x) // (2 * heads), 2), 1)

    def theirs(x: Tensor) -> Tensor:
        return _exchanged(x, (heads, 2, len(x) // (2 * heads)), 1)

    return Change(ours, theirs)


@dataclass(frozen=True)
class Part:
    """A foreign tensor, as some rows of one of ours.

    Args:
        name: what it is called in the file.
        rows: how many rows of ours it is; all of them if None (it is then the only part).
        change: how it is rearranged first.
    """

    name: str
    rows: int | None = None
    change: Change = AS_IS


@dataclass(frozen=True)
class Row:
    """One tensor of ours and the foreign tensors that it is made of, one below the other.

    Args:
        ours: its name in `model.state_dict()`.
        parts: in their order.
        also: names of copies that a file may hold beside the only part, or in place of it, since the file's model ties them.
    """

    ours: str
    parts: tuple[Part, ...]
    also: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether the file holds the tensor just as we do."""
        return len(self.parts) == 1 and self.parts[0].change is AS_IS

    def found_in(self, names: Collection[str]) -> Row:
        """The row as a file with these names has it: a copy stands for a part that is not there."""
        there = [name for name in self.also if name in names]
        if not there or self.parts[0].name in names:
            return self
        return replace(self, parts=(replace(self.parts[0], name=there[0]),), also=tuple(there[1:]))

    def join(self, theirs: Sequence[Tensor]) -> Tensor:
        """Ours from theirs.

        Args:
            theirs: one a part, in their order.
        """
        changed = [part.change.ours(tensor) for part, tensor in zip(self.parts, theirs, strict=True)]
        return changed[0] if len(changed) == 1 else torch.cat(changed)

    def split(self, ours: Tensor) -> dict[str, Tensor]:
        """Theirs by name, from ours."""
        sizes = [len(ours) if part.rows is None else part.rows for part in self.parts]
        pieces = torch.split(ours, sizes)
        return {part.name: part.change.theirs(piece) for part, piece in zip(self.parts, pieces, strict=True)}


def row(ours: str, theirs: str, change: Change = AS_IS, *, also: tuple[str, ...] = ()) -> Row:
    """A tensor of ours that is one of theirs."""
    return Row(ours, (Part(theirs, None, change),), also)


def stacked(ours: str, parts: dict[str, int]) -> Row:
    """A tensor of ours that is several of theirs, one below the other: their names and numbers of rows."""
    return Row(ours, tuple(Part(name, rows) for name, rows in parts.items()))
