"""Where two walks part, as a question: which formula of what both have gives the stage that one has, and which that of the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product, zip_longest
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.checking.diff.align import matched
from clearhead.checking.diff.numbers import gap, plain
from clearhead.checking.diff.partners import Matching
from clearhead.checking.diff.report import Reason
from clearhead.checking.diff.side import Stage, Walk
from clearhead.checking.diff.sources import fed, parents_of
from clearhead.checking.diff.stages import PARTS
from clearhead.checking.report import Certainty
from clearhead.messages import say

LOOKED = 18
"""How many stages from the parting on are read."""

REACH = 40
"""How many stages without a partner may stand between one and what it was made of."""

CLOSE = {torch.float64: 1e-9, torch.float32: 2e-5}
"""How near a formula must come to reproduce a stage, beside the largest number, by the narrowest type that was used."""


class Read(NamedTuple):
    """A formula that gives a stage.

    Args:
        key: what tells it from other formulas of its family.
        words: the formula as it is written.
        left: how far it is from the stage, beside the largest number.
        sources: what it was computed of, by places in A.
        detail: what tells it from another one that is written the same way: the name of its matrix.
    """

    key: tuple[object, ...]
    words: str
    left: float
    sources: tuple[int, ...]
    detail: str = ""


@dataclass(frozen=True)
class Reading:
    """One side where it parts.

    Args:
        walk: of the side.
        known: places that have a partner -> their places in A.
        cone: places from the parting on, in order.
        near: how near a formula must come.
        weights: the tensors of the side by name.
        values: stages in float64, by place, as they are asked for.
        read: formulas that were found, by what was asked.
    """

    walk: Walk
    known: dict[int, int]
    cone: list[int]
    near: float
    weights: Mapping[str, Tensor] = field(default_factory=dict)
    values: dict[int, Tensor] = field(default_factory=dict)
    read: dict[tuple[object, ...], list[Read]] = field(default_factory=dict)

    @cached_property
    def parents(self) -> list[tuple[int, ...]]:
        """What each stage was made of."""
        return parents_of(self.walk)

    @cached_property
    def distinct(self) -> list[int]:
        """The places that have a partner, of those with the same numbers the first, in order."""
        first: dict[int, int] = {}
        for place in sorted(self.known):
            first.setdefault(self.known[place], place)
        return sorted(first.values())

    @cached_property
    def looked(self) -> list[int]:
        """The first places that the inputs reach."""
        return [place for place in self.cone if fed(self.walk.stages[place])][:LOOKED]

    def stage(self, place: int) -> Stage:
        """The stage at a place."""
        return self.walk.stages[place]

    def value(self, place: int) -> Tensor:
        """Its numbers, in float64."""
        if place not in self.values:
            self.values[place] = plain(self.walk.stages[place].value)
        return self.values[place]

    def sources(self, place: int) -> list[int]:
        """The nearest stages with a partner that a place was made of; the place itself if it has one."""
        found, _ = self._behind(place)
        return found

    def region(self, place: int) -> list[int]:
        """The stages without a partner through which a place was made, itself included."""
        _, between = self._behind(place)
        return between

    def wider(self, place: int) -> list[int]:
        """The sources, and where these are parts of something that both have, that too."""
        found = self.sources(place)
        for at in list(found):
            while self.stage(at).made_by in PARTS and len(self.parents[at]) == 1 and self.parents[at][0] in self.known:
                at = self.parents[at][0]  # noqa: PLW2901 - the walk goes back from here
                found.append(at)
        return list(dict.fromkeys(found))

    def _behind(self, place: int) -> tuple[list[int], list[int]]:
        if place in self.known:
            return [place], [place]
        seen, todo = {place}, list(self.parents[place])
        found: set[int] = set()
        while todo and len(seen) < REACH:
            at = todo.pop()
            if at in self.known:
                found.add(at)
            elif at not in seen:
                seen.add(at)
                todo += self.parents[at]
        return sorted(found), sorted(seen)

    def given(self, place: int, axes: int, width: int) -> list[Tensor]:
        """Tensors of so many axes, the last of that width, that entered on the way to a place: its weights are among them."""
        found: list[Tensor] = []
        for at in self.region(place):
            for each in self.stage(at).inputs:
                fits = each.dim() == axes and width in each.shape and each.is_floating_point()
                if fits and not any(each.shape == other.shape and torch.equal(plain(each), other) for other in found):
                    found.append(plain(each))
        return found

    def weight(self, tensor: Tensor) -> str:
        """The name of a tensor of the weights, "" if it is none."""
        fitting = (name for name, each in self.weights.items() if each.shape == tensor.shape)
        return next((name for name in fitting if torch.equal(self.weights[name].double(), tensor)), "")

    def named(self, places: tuple[int, ...]) -> tuple[int, ...]:
        """Places as A has them."""
        return tuple(self.known[place] for place in places)

    def shaped(self, place: int, like: Tensor) -> Tensor | None:
        """A source in the shape of what was made of it; None if it is of another size."""
        x = self.value(place)
        return x.reshape(like.shape) if x.numel() == like.numel() else None


@dataclass(frozen=True)
class Scene:
    """Both sides where they part.

    Args:
        a: the one.
        b: the other.
        found: partners, and what stands for each other.
    """

    a: Reading
    b: Reading
    found: Matching

    def place(self, i: int) -> str:
        """The name of a place in A."""
        return self.a.stage(i).name

    @property
    def length(self) -> int:
        """How many positions there are, as the result tells; 0 if it does not."""
        shape = self.a.walk.stages[-1].value.shape
        return int(shape[1]) if len(shape) > 2 else 0

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Places of both, those that were found to stand for each other first, then any two of one size."""
        yield from self.found.parted.items()
        for i in self.a.looked:
            for j in self.b.looked:
                if self.a.value(i).numel() == self.b.value(j).numel() and self.found.parted.get(i) != j:
                    yield i, j

    def before(self, i: int, j: int) -> float:
        """How far two places are apart."""
        x, y = self.a.value(i), self.b.value(j)
        return gap(x, y.reshape(x.shape)) if x.numel() == y.numel() else float("inf")


@dataclass(frozen=True)
class Placed(Reason):
    """A reason with the pair of stages that it explains.

    Args:
        at: their places in A and in B.
    """

    at: tuple[int, int] = (-1, -1)

    @property
    def bare(self) -> Reason:
        """Without the places."""
        return Reason(self.id, self.certainty, self.place, self.text, self.before, self.after)


Weights = tuple[Mapping[str, Tensor], Mapping[str, Tensor]]
"""The tensors of A and of B by name."""


def scene(a: Walk, b: Walk, weights: Weights = ({}, {})) -> Scene | None:
    """The scene of two walks; None if they do not part."""
    found = matched(a, b)
    if not found.parted:
        return None
    kinds = [each.narrowest for each in (a, b)]
    near = max(CLOSE.get(kind, 2e-2) for kind in kinds)
    one = Reading(a, found.known[0], found.cones[0], near, weights[0])
    other = Reading(b, found.known[1], found.cones[1], near, weights[1])
    return Scene(one, other, found)


Reader = Callable[[Reading, int], Iterable[Read]]
"""Formulas of one family that give a place."""

Namer = Callable[[Read, Read], str]
"""The id of the difference of two formulas of one family."""


def compared(scene: Scene, reader: Reader, name: Namer) -> Placed | None:
    """The pair of formulas of one family, of the same sources, that give A's stage and B's and are not the same.

    Of several the two that differ in the least, the first of these: x W beside x W + b is no bias that is missing where b is added next.
    """
    one = {i: list(reader(scene.a, i)) for i in scene.a.looked}
    other = {j: list(reader(scene.b, j)) for j in scene.b.looked} if any(one.values()) else {}
    best: tuple[int, Placed] | None = None
    for i, j in dict.fromkeys((*scene.found.parted.items(), *product(one, other))):
        for read, second in product(one.get(i, []), other.get(j, [])):
            told = read.key != second.key and read.words != second.words
            words = read.words, second.words
            if read.key != second.key and not told and scene.found.parted.get(i) == j:
                # The same formula of two matrices: their names tell.
                told = "" != read.detail != second.detail != ""
                words = f"{read.words}, {read.detail}", f"{second.words}, {second.detail}"
            if read.sources == second.sources and told and _alike(scene, i, j):
                text = say(
                    "diff.formula",
                    x=", ".join(scene.place(each) for each in read.sources),
                    a=words[0],
                    b=words[1],
                    where=scene.b.stage(j).where or scene.a.stage(i).where or "-",
                )
                apart = sum(x != y for x, y in zip_longest(read.key, second.key))
                if best is not None and apart >= best[0]:
                    continue
                id = name(read, second)
                final = i == len(scene.a.walk.stages) - 1 and j == len(scene.b.walk.stages) - 1
                id = "logits.softcap" if id == "attention.softcap" and final else id
                best = apart, reason(id, scene, (i, j), text, second.left)
    return None if best is None else best[1]


def _alike(scene: Scene, i: int, j: int) -> bool:
    return scene.a.value(i).numel() == scene.b.value(j).numel()


def reason(
    name: str, scene: Scene, at: tuple[int, int], text: str, left: float, *, certainty: Certainty = "reproduced"
) -> Placed:
    """A reason at a pair of places."""
    return Placed(name, certainty, scene.place(at[0]), text, scene.before(*at), left, at)
