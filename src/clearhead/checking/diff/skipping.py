"""Steps that one side takes and the other does not: a block, a norm, a branch, positions. What was made is replaced by what it was made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torch import Tensor

from clearhead.checking.diff.formulas_norm import norms
from clearhead.checking.diff.formulas_small import activations
from clearhead.checking.diff.formulas_sums import ADDED
from clearhead.checking.diff.numbers import constant, gap
from clearhead.checking.diff.reading import Placed, Reading, Scene
from clearhead.checking.diff.sources import embeds, fed
from clearhead.messages import say

LOOKED = 32
"""How many places are tried on a side."""

SCORES = 4
"""How many axes scores have."""

ATTENTION = frozenset(("softmax", "scaled_dot_product_attention", "multi_head_attention_forward"))


class Skip(NamedTuple):
    """A step that may be left out.

    Args:
        side: which side takes it: 0 for A, 1 for B.
        place: what it makes, by its place there.
        source: what that is made of, by its place there.
        value: the numbers of the source.
    """

    side: int
    place: int
    source: int
    value: Tensor

    def reason(self, scene: Scene, left: float) -> Placed:
        """That the other side does not take the step.

        Args:
            scene: both sides.
            left: what remains without it.
        """
        reading = (scene.a, scene.b)[self.side]
        stage, source = reading.stage(self.place), reading.stage(self.source)
        id, words = _named(reading, self.place, self.source, final=self.place >= len(reading.walk.stages) - 2)
        who, other = "AB"[self.side], "AB"[1 - self.side]
        where, name = stage.where or "-", source.name
        told = {
            "block": say("diff.skipped_block", stage=stage.name, who=who, other=other, source=name, where=where),
            "table": say("diff.skipped_table", who=who, other=other, source=name, where=where),
            "again": say("diff.skipped_again", who=who, other=other, source=name, where=where),
            "": say("diff.skipped", stage=stage.name, who=who, other=other, source=name, where=where),
        }
        i, j = (self.place, -1) if self.side == 0 else (-1, self.place)
        before = float("inf") if source.value.shape != stage.value.shape else _far(reading, self.place, self.source)
        return Placed(id, "reproduced", stage.name, told[words], before, left, (i, j))


def skips(scene: Scene) -> Iterator[Skip]:
    """What one of the two may do and the other not: of the same shape as something both have, of which it was made."""
    for side, reading in ((1, scene.b), (0, scene.a)):
        places = [at for at in reading.cone if fed(reading.stage(at)) and not constant(reading.value(at))][:LOOKED]
        # What ends a part is a sum, or has the name of a module.
        places.sort(key=lambda at: (reading.stage(at).made_by not in ADDED, at))
        for place in places:
            for source in _sources(reading, place)[:1]:
                yield Skip(side, place, source, reading.stage(source).value)


def _sources(reading: Reading, place: int) -> list[int]:
    """What both have of which a place was made, of its shape, the nearest first."""
    seen, todo = {place}, [place]
    found = set()
    while todo:
        for at in reading.parents[todo.pop()]:
            if at in seen:
                continue
            seen.add(at)
            if at in reading.known:
                if reading.value(at).shape == reading.value(place).shape:
                    found.add(at)
            else:
                todo.append(at)
    return sorted(found, reverse=True)


def _between(reading: Reading, place: int, source: int) -> set[int]:
    """The stages through which a place was made of another."""
    seen, todo = {place}, [place]
    while todo:
        for at in reading.parents[todo.pop()]:
            if at != source and at not in seen and at > source:
                seen.add(at)
                todo.append(at)
    return seen


def _named(reading: Reading, place: int, source: int, *, final: bool) -> tuple[str, str]:
    """What the step is called, and how it is told."""
    between = _between(reading, place, source)
    kinds = {reading.stage(at).made_by for at in between}
    parents = reading.parents[place]
    added = source in parents and reading.stage(place).made_by in ADDED
    tables = [at for at in parents if at != source and not fed(reading.stage(at))]
    if added and tables:
        # To scores a table of distances is added.
        once = "position.missing" if reading.value(place).dim() < SCORES else "position.kind"
        return ("position.twice", "again") if _has(reading, source, tables) else (once, "table")
    if kinds & ATTENTION:
        return "block.number", "block"
    if any(reading.named((source,)) == read.sources for read in norms(reading, place)):
        return ("norm.final-missing" if final else "norm.placement"), ""
    if any(reading.named((source,)) == read.sources for read in activations(reading, place)):
        return "activation.missing", ""
    if added:
        return "residual.missing", ""
    return _multiple(reading, place, source) or "block.wiring", ""


def _has(reading: Reading, place: int, tables: list[int]) -> bool:
    """Whether a place was made of one of some tables already."""
    seen, todo = {place}, [place]
    while todo:
        for at in reading.parents[todo.pop()]:
            if at not in seen:
                seen.add(at)
                todo.append(at)
    values = [reading.value(at) for at in seen if not fed(reading.stage(at))]
    wanted = [reading.value(at) for at in tables]
    return any(x.numel() == y.numel() and gap(x.flatten(), y.flatten()) <= reading.near for x in values for y in wanted)


def _multiple(reading: Reading, place: int, source: int) -> str:
    """What it is called that a place is its source by a factor; "" if it is not."""
    x, y = reading.value(source), reading.value(place)
    c = float((x * y).sum() / (x * x).sum())
    if gap(c * x, y) > reading.near:
        return ""
    return "embedding.scale" if embeds(reading.stage(source)) else "scale.factor"


def _far(reading: Reading, place: int, source: int) -> float:
    x, y = reading.value(place), reading.value(source)
    size = float(x.abs().max())
    return float((x - y).abs().max()) / size if size else 0.0
