"""Which tensors of A a tensor of B is, by names and shapes alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from clearhead.checking.diff.weights_roles import Role, plain_name, roles

How = Literal["name", "numbers", "role", "order"]
"""What two are paired by: their names, their numbers, what their names say they are for, or shape and order alone."""

Lengths = Mapping[str, tuple[int, ...]]
"""Shapes by name."""


class Piece(NamedTuple):
    """Some rows of a tensor: of a matrix, the features that come out."""

    name: str
    first: int
    last: int


class Recipe(NamedTuple):
    """What a tensor of B is made of.

    Args:
        b: its name.
        pieces: rows of A's tensors, one below the other.
        whole: whether it is one of A's, as it lies.
        how: what told.
    """

    b: str
    pieces: tuple[Piece, ...]
    whole: bool
    how: How

    @property
    def names(self) -> tuple[str, ...]:
        """The tensors of A, each once."""
        return tuple(dict.fromkeys(piece.name for piece in self.pieces))


class Named:
    """A side: shapes of its tensors by name, and which of them hold (in, out).

    Args:
        shapes: by name.
        turned: names of matrices that hold (in, out), where a Linear holds (out, in).
    """

    def __init__(self, shapes: Lengths, turned: Collection[str] = ()) -> None:
        self.shapes = shapes
        self.roles: Mapping[str, Role] = roles(shapes)
        self.turned = set(turned) | self._turned(set(turned))

    def rows(self, name: str) -> int:
        """How many features come out."""
        shape = self.shapes[name]
        return (shape[-1] if name in self.turned else shape[0]) if shape else 1

    def _turned(self, known: set[str]) -> set[str]:
        """The matrices whose shape tells that they hold (in, out), and square ones beside those alone."""
        widths = Counter(shape[0] for shape in self.shapes.values() if len(shape) == 1)
        tables = [name for name, role in self.roles.items() if role.part == "embedding" and len(self.shapes[name]) == 2]
        width = self.shapes[tables[0]][1] if tables else widths.most_common(1)[0][0] if widths else 0
        upright, found, square = set(), set(), set()
        for name, role in self.roles.items():
            part, shape = role.part.removeprefix("cross."), self.shapes[name]
            if len(shape) != 2 or part not in (
                "q",
                "k",
                "v",
                "qkv",
                "kv",
                "up",
                "gate",
                "gate_up",
                "down",
                "attention.output",
            ):
                continue
            axis = 0 if part in ("down", "attention.output") else 1
            if shape[0] == shape[1]:
                square.add(name)
            elif shape[1 - axis] == width:
                found.add(name)
            elif shape[axis] == width:
                upright.add(name)
        return found | square if found and not upright and not known else found


def paired(
    a: Named, b: Named, spare: Collection[str] | None = None, left: Collection[str] | None = None
) -> tuple[list[Recipe], set[str]]:
    """What each tensor of B is made of, as far as names, their words, shapes and order tell.

    Args:
        a: the tensors of A.
        b: those of B.
        spare: those of A that have no partner yet; all if None.
        left: those of B.

    Returns:
        The recipes, and the names of B whose place among others of their shape is a guess.
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
    take(_alike(left_a, left_b, a.roles.get, b.roles.get, "role"))
    take(_regrouped(a, b, left_b))
    take(_alike(left_a, left_b, _ending, _ending, "role"))
    unsure: set[str] = set()
    for key in (_block_and_shape, _shape_alone):
        for recipe, sure in _in_order(left_a, left_b, key):
            take([recipe])
            unsure |= set() if sure else {recipe.b}
    return found, unsure


def whole(name: str, b: str, shape: tuple[int, ...], how: How) -> Recipe:
    """The recipe of a tensor that is one of A's."""
    return Recipe(b, (Piece(name, 0, shape[0] if shape else 1),), True, how)


def made(recipe: Recipe, tensors: Mapping[str, Tensor], a: Named, b: Named) -> Tensor:
    """B's tensor from A's; views where they will do.

    Args:
        recipe: what it is made of.
        tensors: A's.
        a: their names.
        b: B's names.
    """
    if recipe.whole:
        return tensors[recipe.pieces[0].name]
    parts = []
    for name, first, last in recipe.pieces:
        tensor = tensors[name]
        parts.append((tensor.t() if name in a.turned and tensor.dim() == 2 else tensor)[first:last])
    joined = parts[0] if len(parts) == 1 else torch.cat(parts)
    return joined.t() if recipe.b in b.turned and joined.dim() == 2 else joined


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


def _in_order(a: Lengths, b: Lengths, key: Callable[[str, tuple[int, ...]], object]) -> Iterator[tuple[Recipe, bool]]:
    """Tensors with equal keys in their order, where both sides have as many; the last says whether there was no choice."""
    one: dict[object, list[str]] = defaultdict(list)
    other: dict[object, list[str]] = defaultdict(list)
    for groups, side in ((one, a), (other, b)):
        for name, shape in side.items():
            each = key(name, shape)
            if each is not None:
                groups[each].append(name)
    for each, names in list(one.items()):
        if len(names) == len(other[each]):
            for name, theirs in zip(names, list(other[each]), strict=True):
                yield whole(name, theirs, a[name], "order"), len(names) == 1


Spaces = dict[tuple[object, ...], dict[str, list[Piece]]]
"""By block and kind: for each of q, k, v, gate and up the rows that it is made of."""

FUSED = {"qkv": ("q", "k", "v"), "kv": ("k", "v"), "gate_up": ("gate", "up")}


def _regrouped(a: Named, b: Named, left: Lengths) -> Iterator[Recipe]:
    """Tensors of B that are several of A's, or a part of one."""
    mine, theirs = _spaces(a, b), _spaces(b, a)
    for place, parts in theirs.items():
        held = mine.get(place, {})
        wanted: dict[str, list[Piece]] = defaultdict(list)
        for part, pieces in parts.items():
            start = 0
            for name, first, last in pieces:
                if part in held:
                    wanted[name] += _slice(held[part], start, start + last - first)
                start += last - first
        for name, pieces in wanted.items():
            if name in left and sum(last - first for _, first, last in pieces) == b.rows(name):
                yield Recipe(name, tuple(_merged(pieces)), False, "role")


def _spaces(side: Named, other: Named) -> Spaces:
    found: Spaces = {}
    ordered = sorted(side.roles.items(), key=lambda item: item[1].numbers)
    for name, role in ordered:
        cross = "cross." if role.part.startswith("cross.") else ""
        part = role.part.removeprefix("cross.")
        place = (role.stack, role.numbers[:1], cross, role.kind)
        rows = side.rows(name)
        if part in ("q", "k", "v", "gate", "up"):
            found.setdefault(place, {}).setdefault(part, []).append(Piece(name, 0, rows))
        elif part in FUSED:
            sizes = _sizes(part, rows, other, role)
            start = 0
            for each, size in zip(FUSED[part], sizes, strict=False):
                found.setdefault(place, {}).setdefault(each, []).append(Piece(name, start, start + size))
                start += size
    return found


def _sizes(part: str, rows: int, other: Named, role: Role) -> list[int]:
    """How many rows of a fused tensor are q, k and v: what the other side's keys have, or a third each."""
    count = len(FUSED[part])
    key = role._replace(part=role.part.replace("qkv", "k"))
    keys = [other.rows(name) for name, each in other.roles.items() if each == key and part == "qkv"]
    if len(keys) == 1 and rows > 2 * keys[0]:
        return [rows - 2 * keys[0], keys[0], keys[0]]
    return [rows // count] * count if rows % count == 0 else []


def _slice(pieces: list[Piece], first: int, last: int) -> list[Piece]:
    """Rows `first` to before `last` of pieces that lie one below the other."""
    found, start = [], 0
    for name, low, high in pieces:
        begin, end = max(first, start), min(last, start + high - low)
        if begin < end:
            found.append(Piece(name, low + begin - start, low + end - start))
        start += high - low
    return found


def _merged(pieces: list[Piece]) -> Iterator[Piece]:
    """The same rows in as few pieces as there can be."""
    last: Piece | None = None
    for piece in pieces:
        if last is not None and (last.name, last.last) == (piece.name, piece.first):
            last = Piece(last.name, last.first, piece.last)
            continue
        if last is not None:
            yield last
        last = piece
    if last is not None:
        yield last
