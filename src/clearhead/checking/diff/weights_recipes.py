"""What a tensor of B is made of, and what the names and shapes of a side tell of its tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from clearhead.checking.diff.weights_roles import Role, roles

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
