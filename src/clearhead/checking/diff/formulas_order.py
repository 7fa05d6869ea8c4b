"""The same numbers in another place: q, k and v exchanged, heads arranged otherwise, positions shifted, a norm before or after, sums of other terms."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.checking.diff.formulas_heads import operands
from clearhead.checking.diff.formulas_norm import norms, norms_of
from clearhead.checking.diff.formulas_small import activations, elementwise, vectors
from clearhead.checking.diff.formulas_sums import sum_id, sum_words, terms_at, where_of
from clearhead.checking.diff.numbers import constant, gap, plain
from clearhead.checking.diff.reading import LOOKED, Placed, Reader, Reading, Scene, reason
from clearhead.messages import say


def exchanged(scene: Scene) -> Placed | None:
    """A product of two tensors that both have, but not of the same two, or not in the same roles."""
    for i, j in scene.found.parted.items():
        one, other = _operands(scene.a, i), _operands(scene.b, j)
        if one and other and None not in (*one, *other) and one != other:
            names = [", ".join(scene.place(at) for at in each if at is not None) for each in (one, other)]
            if names[0] == names[1]:
                continue
            text = say("diff.exchanged", a=names[0], b=names[1], where=where_of(scene, i, j))
            return reason("qkv.layout", scene, (i, j), text, 0.0, certainty="consistent")
    return None


def _operands(reading: Reading, place: int) -> tuple[int | None, ...]:
    """Which sources the two factors of a product are, by places in A; none where both sides have the product."""
    return () if place in reading.known else operands(reading, place)


def shifted(scene: Scene) -> Placed | None:
    """The same rows, some positions on; of tables, too."""
    for i, j in (*scene.found.parted.items(), *product(scene.a.cone[:LOOKED], scene.b.cone[:LOOKED])):
        x, y = scene.a.value(i), scene.b.value(j)
        if x.shape != y.shape or constant(x):
            continue
        for axis in range(max(x.dim() - 1, 0)):
            for step in (1, 2, -1, -2):
                count = x.shape[axis] - abs(step)
                if count < 2:
                    continue
                one, other = x.narrow(axis, max(step, 0), count), y.narrow(axis, max(-step, 0), count)
                left = gap(one, other)
                if left <= scene.a.near and not constant(one):
                    text = say("diff.shifted", step=step, where=where_of(scene, i, j))
                    return reason("position.offset", scene, (i, j), text, left)
    return None


class Fed(NamedTuple):
    """What a product with a matrix is given.

    Args:
        words: in words.
        terms: of the sum that it begins with, by places in A, with their factors.
        through: the formula between the sum and the matrix, "" for none.
        kind: of that formula.
        left: what is left of it.
    """

    words: str
    terms: dict[int, float]
    through: str = ""
    kind: str = ""
    left: float = 0.0


def moved(scene: Scene) -> Placed | None:
    """A product with the same matrix of something else: with or without a norm before it, a sum with or without a term."""
    for i in scene.a.looked:
        for j in scene.b.looked:
            if not _same_matrix(scene, i, j):
                continue
            one, other = _fed_by(scene, scene.a, i), _fed_by(scene, scene.b, j)
            if one is None or other is None or (one.terms, one.through) == (other.terms, other.through):
                continue
            if one.words == other.words:
                continue
            text = say("diff.fed", stage=scene.place(i), a=one.words, b=other.words, where=where_of(scene, i, j))
            final = i >= len(scene.a.walk.stages) - 2 and j >= len(scene.b.walk.stages) - 2
            return reason(_moved_id(scene, (one, other), final), scene, (i, j), text, max(one.left, other.left))
    return None


def _moved_id(scene: Scene, both: tuple[Fed, Fed], final: bool) -> str:
    one, other = both
    single = [list(each.terms.values()) for each in both] == [[1.0], [1.0]]
    if single and one.through == other.through != "":
        return "block.wiring"
    if one.terms != other.terms:
        return sum_id(scene, one.terms, other.terms)
    kind = one.kind or other.kind
    names = {
        "dropped": "dropout.active-in-eval",
        "cap": "logits.softcap",
        "factor": "scale.factor",
        "one": "activation.missing",
    }
    if kind == "vector":
        return "projection.bias" if "+" in f"{one.through}{other.through}" else "norm.weight"
    return names.get(kind, "norm.final-missing" if final else "norm.placement")


def _same_matrix(scene: Scene, i: int, j: int) -> bool:
    """Whether two places are products with one matrix."""
    pairs = [
        (plain(x), plain(y))
        for x in scene.a.stage(i).inputs
        for y in scene.b.stage(j).inputs
        if x.dim() == y.dim() == 2 and x.is_floating_point() and y.is_floating_point()
    ]
    return any(
        (x.shape == y.shape and torch.equal(x, y)) or (x.T.shape == y.shape and torch.equal(x.T, y)) or _part_of(x, y)
        for x, y in pairs
    )


def _part_of(x: Tensor, y: Tensor) -> bool:
    """Whether the rows of one matrix follow each other in the other: a projection of a fused one."""
    few, many = sorted((x, y), key=len)
    if few.shape[1] != many.shape[1] or not 1 < len(few) < len(many):
        return False
    starts = (many == few[0]).all(-1).nonzero().flatten().tolist()
    return any(torch.equal(many[n : n + len(few)], few) for n in starts)


def _fed_by(scene: Scene, reading: Reading, place: int) -> Fed | None:
    """What a product is given: a stage that both have or a sum of such, through a norm or another formula or as it is."""
    parents = [at for at in reading.parents[place] if reading.value(at).dim() >= 2]
    if len(parents) != 1:
        return None
    at = parents[0]
    own = terms_at(reading, at)
    if own is not None:
        return Fed(sum_words(scene, own), own)
    for reader in (norms, elementwise, activations, vectors):
        for read in reader(reading, at):
            if len(read.sources) == 1:
                words = say("diff.fed_through", formula=read.words, x=scene.place(read.sources[0]))
                return Fed(words, {read.sources[0]: 1.0}, read.words, str(read.key[0]), read.left)
    for middle in (z for z in reading.region(at) if z != at and reading.value(z).shape == reading.value(at).shape):
        terms = terms_at(reading, middle)
        for read in norms_of(reading, at, middle) if terms is not None else ():
            words = say("diff.fed_through", formula=read.words, x=sum_words(scene, terms or {}))
            return Fed(words, terms or {}, read.words, "norm", read.left)
    return None


def rewired(scene: Scene, reader: Reader, name: str) -> Placed | None:
    """The same formula of something else."""
    one = [(i, read) for i in scene.a.looked for read in reader(scene.a, i)]
    other = [(j, read) for j in scene.b.looked for read in reader(scene.b, j)] if one else []
    for i, read in one:
        for j, second in other:
            if read.key == second.key and read.sources != second.sources and (read.sources and second.sources):
                names = [", ".join(scene.place(at) for at in each.sources) for each in (read, second)]
                if names[0] == names[1]:
                    continue
                text = say("diff.rewired", formula=read.words, a=names[0], b=names[1], where=where_of(scene, i, j))
                return reason(name, scene, (i, j), text, second.left)
    return None
