"""Which tensors of A a tensor of B is, by names and shapes alone."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

import torch

from clearhead.checking.diff.weights_fused import regrouped
from clearhead.checking.diff.weights_recipes import How, Lengths, Named, Recipe, whole
from clearhead.checking.diff.weights_roles import plain_name


class Paired(NamedTuple):
    """What B's tensors are made of.

    Args:
        recipes: of each that has one.
        unsure: names of B whose place among others of their shape is a guess.
        sizes: of how many of one shape in a block these are.
        lying: whether it is a guess how some of them lie.
    """

    recipes: list[Recipe]
    unsure: set[str]
    sizes: frozenset[int]
    lying: bool


def paired(
    a: Named,
    b: Named,
    spare: Collection[str] | None = None,
    left: Collection[str] | None = None,
    order: tuple[int, ...] = (),
) -> Paired:
    """What each tensor of B is made of, as far as names, their words, shapes and order tell.

    Args:
        a: the tensors of A.
        b: those of B.
        spare: those of A that have no partner yet; all if None.
        left: those of B.
        order: in which order tensors of one shape in a block go, where there are as many; their own if empty.
    """
    found: list[Recipe] = []
    left_a = {name: shape for name, shape in a.shapes.items() if spare is None or name in spare}
    left_b = {name: shape for name, shape in b.shapes.items() if left is None or name in left}

    def take(recipes: Iterable[Recipe]) -> None:
        # What is left shrinks meanwhile.
        for recipe in list(recipes):
            if recipe.b in left_b:
                found.append(recipe)
                del left_b[recipe.b]
                for name in recipe.names:
                    left_a.pop(name, None)

    take(_alike(left_a, left_b, plain_name, plain_name, "name"))
    take(_together(a, b, _alike(left_a, left_b, a.roles.get, b.roles.get, "role")))
    take(regrouped(a, b, left_b))
    take(_beside(found, left_a, left_b))
    take(_together(a, b, _alike(left_a, left_b, _ending, _ending, "role")))
    take(group.recipe for group in _in_order((a, left_a), (b, left_b), _norm))
    unsure = {each.b for each in found if not each.whole and _halved(b, each.b)}
    sizes, lying = set[int](), False
    # Matrices first: a vector belongs to the matrix beside it.
    for key, least in ((_block_and_shape, 2), (_block_and_shape, 1), (_shape_alone, 2), (_shape_alone, 1)):
        for group in _in_order((a, _of_axes(left_a, least)), (b, _of_axes(left_b, least)), key, order):
            # How a matrix lies is a guess that matters where another has its shape turned.
            crossed = _crossed(a, left_a, group.recipe.names[0]) or _crossed(b, left_b, group.recipe.b)
            take([group.recipe])
            if group.size > 1 or crossed:
                unsure.add(group.recipe.b)
                sizes.add(group.size)
                lying |= crossed
        take(_beside(found, left_a, left_b))
    return Paired(found, unsure, frozenset(sizes), lying)


def _crossed(side: Named, left: Lengths, name: str) -> bool:
    """Whether nothing tells how a matrix lies, and there is another that has its shape turned."""
    turned = side.shapes[name][::-1]
    return name in side.untold and any(each != name and shape == turned for each, shape in left.items())


def _together(a: Named, b: Named, recipes: Iterable[Recipe]) -> Iterator[Recipe]:
    """Pairs of which the other tensors of the same part, the bias of a weight, have as many numbers, too."""
    for recipe in recipes:
        stems = [name.rpartition(".")[0] for name in (recipe.pieces[0].name, recipe.b)]
        beside = [
            (a.shapes.get(f"{stems[0]}.{kind}"), b.shapes.get(f"{stems[1]}.{kind}")) for kind in ("weight", "bias")
        ]
        both = [(one, other) for one, other in beside if all(stems) and one is not None and other is not None]
        if all(torch.Size(one).numel() == torch.Size(other).numel() for one, other in both):
            yield recipe


def _of_axes(lengths: Lengths, least: int) -> Lengths:
    return {name: shape for name, shape in lengths.items() if len(shape) >= least}


def _beside(found: Iterable[Recipe], a: Lengths, b: Lengths) -> Iterator[Recipe]:
    """Biases of parts whose weights are partners."""
    for recipe in [each for each in found if each.whole]:
        one, other = (name.rpartition(".")[0] for name in (recipe.pieces[0].name, recipe.b))
        for kind in ("bias", "weight"):
            mine, theirs = f"{one}.{kind}".lstrip("."), f"{other}.{kind}".lstrip(".")
            if a.get(mine) is not None and a.get(mine) == b.get(theirs):
                yield whole(mine, theirs, a[mine], "role")


def _norm(name: str, shape: tuple[int, ...]) -> object:
    """The block of a norm, and whether it is the gain or the shift: within a block they go in their order."""
    words = name.split(".")
    if len(shape) != 1 or not any(re.search(r"norm|(^|_)ln", word.lower()) for word in words[:-1]):
        return None
    return tuple(word for word in words if word.isdigit()), words[-1], shape


def _halved(side: Named, name: str) -> bool:
    """Whether a tensor's name says that it is one of gate and up, and it is both."""
    role = side.roles.get(name)
    return role is not None and role.part == "up"


Key = Callable[[str], object]


def _alike(a: Lengths, b: Lengths, mine: Key, theirs: Key, how: How) -> Iterator[Recipe]:
    """Pairs of as many numbers with a key that each side has once."""
    one, other = _once(a, mine), _once(b, theirs)
    for key, name in one.items():
        found = other.get(key)
        if found is not None and torch.Size(a[name]).numel() == torch.Size(b[found]).numel():
            yield whole(name, found, a[name], how)


def _once(names: Iterable[str], key: Key) -> dict[object, str]:
    keys = {name: key(name) for name in names}
    counted = Counter(keys.values())
    return {each: name for name, each in keys.items() if each is not None and counted[each] == 1}


def _ending(name: str) -> object:
    """The last words of a name, with the numbers of its block."""
    numbers = tuple(word for word in name.split(".") if word.isdigit())
    return numbers, tuple(name.split(".")[-2:])


def _block_and_shape(name: str, shape: tuple[int, ...]) -> object:
    numbers = [word for word in name.split(".") if word.isdigit()]
    return (numbers[0], shape) if numbers else None


def _shape_alone(_: str, shape: tuple[int, ...]) -> object:
    return shape


class Grouped(NamedTuple):
    """A pair, and among how many of its key it was chosen."""

    recipe: Recipe
    size: int


def _in_order(
    a: tuple[Named, Lengths],
    b: tuple[Named, Lengths],
    key: Callable[[str, tuple[int, ...]], object],
    order: tuple[int, ...] = (),
) -> Iterator[Grouped]:
    """Tensors with equal keys in their order, or in the one that is given, where both sides have as many."""
    one: dict[object, list[str]] = defaultdict(list)
    other: dict[object, list[str]] = defaultdict(list)
    for groups, (side, lengths) in ((one, a), (other, b)):
        for name in lengths:
            each = key(name, side.laid(name))
            if each is not None:
                groups[each].append(name)
    for each, names in list(one.items()):
        theirs = list(other[each])
        if len(names) == len(theirs):
            theirs = [theirs[n] for n in order] if len(order) == len(theirs) else theirs
            for name, its in zip(names, theirs, strict=True):
                yield Grouped(whole(name, its, a[1][name], "order"), len(names))
