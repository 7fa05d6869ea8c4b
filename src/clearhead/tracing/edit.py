"""Taps that change what passes: zero, mean, noise, another tensor, the tensor of another trace; and taps one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import torch
from torch import Tensor

from clearhead.messages import UserError, say
from clearhead.ops.recompute import mixed_by, scores_of, weights_of
from clearhead.ops.tap import Edited, Ran, Scoped, Tap
from clearhead.tracing.record import crossed
from clearhead.tracing.select import Heads, Selection

Change = Callable[[str, Tensor], Tensor]
"""From a name and the selected part of its tensor to what stands in its place: the same shape, or what broadcasts to it."""


def zero(name: str, part: Tensor) -> Tensor:
    """0: what a branch, a head or a weight would be if it did nothing."""
    return torch.zeros_like(part)


def mean(name: str, part: Tensor) -> Tensor:
    """The mean over rows and positions: what it does on average, whatever it reads.

    Axes are those of the table of names: the first is the batch, the last but one the positions.
    """
    return part.mean(dim=(0, -2), keepdim=True)


def noise(std: float, seed: int = 0) -> Change:
    """Adds normal noise: for each name another, for the same seed the same again.

    Args:
        std: its standard deviation.
        seed: of the noise.
    """

    def add(name: str, part: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed((seed + crc32(name.encode())) % 2**64)
        drawn = torch.randn(part.shape, generator=generator, dtype=torch.float64)
        return part + std * drawn.to(part)

    return add


def replace(tensor: Tensor) -> Change:
    """This tensor, whatever was there."""
    return lambda name, part: tensor.to(part)


def patch(tensors: Mapping[str, Tensor]) -> Change:
    """The tensor of the same name in another trace; recorded with the same heads and positions."""
    return lambda name, part: tensors[name].to(part)


@dataclass(frozen=True)
class Edit:
    """One change.

    Args:
        names: patterns of names, as those of a `Recorder`.
        change: what comes in the place of the selected part.
        heads: along the axis H; all if None.
        positions: along the query axis; all if None.
    """

    names: str | Sequence[str]
    change: Change
    heads: Heads = None
    positions: Sequence[int] | None = None

    @property
    def selection(self) -> Selection:
        """What is changed."""
        return Selection(self.names, self.heads, self.positions)


class Editor(Tap):
    """A tap that applies edits, one after another. Nothing stays on the model: the next forward without it is as before.

    Scores and weights that a kernel does not hold are computed again for the heads and queries of the edit, changed, and what they
    mix takes the place of what ran.

    Args:
        edits: in the order in which they are applied.

    Attributes:
        applied: how often each edit has been applied; one that never was changed nothing (`unused`).
    """

    def __init__(self, *edits: Edit) -> None:
        self._edits = [(edit.selection, edit.change) for edit in edits]
        self.applied = [0] * len(edits)

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """The tensor with all edits of this name applied."""
        for number, (selection, change) in enumerate(self._edits):
            if selection.wants(name):
                tensor = self._changed(name, tensor, selection.index(name, tensor), change)
                self.applied[number] += 1
        return tensor

    def within(self, scope: str) -> Tap:
        """The same edits, for names that begin with `scope` and a dot."""
        return Scoped(self, f"{scope}.")

    def attended(self, name: str, ran: Ran) -> Ran:
        """What is mixed by edited weights, for the heads and queries of the edits; the rest as it ran, or as taps before edited it."""
        of_scores, every = f"{name.removesuffix('weights')}scores", range(ran.mixed.shape[-3])
        wanted = [each for each, _ in self._edits if each.wants(of_scores) or each.wants(name)]
        if not wanted:
            return ran
        for number, (each, _) in enumerate(self._edits):
            self.applied[number] += each.wants(of_scores) + each.wants(name)
        before, earlier = ((), ()) if ran.edited is None else (ran.edited.heads, ran.edited.again)
        heads = sorted({head for each in wanted for head in _or(each.heads_of(name, len(every)), every)}.union(before))
        scores = self._of_heads(of_scores, scores_of(ran, heads), heads, len(every))
        weights = weights_of(ran._replace(edited=None), scores, heads)
        for edit in (*earlier, self._of_heads):
            weights = edit(name, weights, heads, len(every))
        again, changed = mixed_by(ran, weights, heads), ran.mixed
        for each in wanted:
            own, queries = _or(each.heads_of(name, len(every)), every), each.places(changed.shape[-2])
            part = again[crossed(again, [heads.index(head) for head in own], queries)]
            changed = changed.index_put(crossed(changed, own, queries), part)
        return ran._replace(mixed=changed, edited=Edited(tuple(heads), scores, weights, (*earlier, self._of_heads)))

    def unused(self) -> list[int]:
        """Which edits have never been applied, by their number."""
        return [number for number, count in enumerate(self.applied) if not count]

    def _of_heads(self, name: str, tensor: Tensor, heads: Sequence[int], count: int) -> Tensor:
        """The edits of this name, of scores or weights of some of `count` heads, (B,h,T,S)."""
        for selection, change in self._edits:
            if selection.wants(name):
                own = [heads.index(head) for head in _or(selection.heads_of(name, count), range(count))]
                index = crossed(tensor, own, selection.places(tensor.shape[-2]))
                tensor = self._changed(name, tensor, index, change)
        return tensor

    def _changed(self, name: str, tensor: Tensor, index: tuple[Tensor | slice, ...], change: Change) -> Tensor:
        part = tensor[index]
        new = change(name, part)
        if not _fits(new.shape, part.shape):
            raise UserError(say("tracing.edit_shape", name=name, found=tuple(new.shape), wanted=tuple(part.shape)))
        edited = tensor.clone()
        edited[index] = new
        return edited


def _fits(given: torch.Size, wanted: torch.Size) -> bool:
    """Whether the one shape broadcasts to the other."""
    ends = zip(reversed(given), reversed(wanted), strict=False)
    return len(given) <= len(wanted) and all(ours in {1, theirs} for ours, theirs in ends)


def _or(chosen: list[int] | None, every: Sequence[int]) -> list[int]:
    return list(every) if chosen is None else chosen


class Chain:
    """Taps one after another: each sees what the one before gave.

    Args:
        taps: in their order.
    """

    def __init__(self, *taps: Tap) -> None:
        self.taps = taps

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """What the last one gives."""
        for tap in self.taps:
            tensor = tap(name, tensor)
        return tensor

    def within(self, scope: str) -> Tap:
        """All of them, for names that begin with `scope` and a dot."""
        return Scoped(self, f"{scope}.")

    def attended(self, name: str, ran: Ran) -> Ran:
        """What the last one gives."""
        for tap in self.taps:
            ran = tap.attended(name, ran)
        return ran

    def shown(self, name: str, ran: Ran) -> None:
        """Tells each of them."""
        for tap in self.taps:
            tap.shown(name, ran)
