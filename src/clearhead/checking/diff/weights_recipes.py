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


class Guess(NamedTuple):
    """What is taken otherwise than at first, where names and shapes leave a choice.

    Args:
        squares: whether square matrices beside others that hold (in, out) hold (out, in).
        crossed: whether matrices of which nothing tells how they lie hold (in, out).
        order: the order of tensors of one shape in a block, where there are as many; their own if empty.
    """

    squares: bool = False
    crossed: bool = False
    order: tuple[int, ...] = ()


FIRST = Guess()
"""What names and shapes suggest."""


class Named:
    """A side: shapes of its tensors by name, and which of them hold (in, out).

    Args:
        shapes: by name.
        turned: names of matrices that hold (in, out), where a Linear holds (out, in).
        guess: what is taken otherwise than at first.

    Attributes:
        roles: what the tensors are for.
        turned: all that hold (in, out), as far as that is known.
        squares: square ones of which that is a guess.
        untold: matrices of which nothing tells how they lie.
    """

    def __init__(self, shapes: Lengths, turned: Collection[str] = (), guess: Guess = FIRST) -> None:
        self.shapes = shapes
        self.roles: Mapping[str, Role] = roles(shapes)
        known, told = set(turned), self._told()
        matrices = {name for name, shape in shapes.items() if len(shape) == 2}
        self.untold = {
            name for name in matrices - told.keys() - known - self.roles.keys() if shapes[name][0] != shapes[name][1]
        }
        found, squares = self._by_width(known, told)
        self.squares = squares
        self.turned = known | {name for name, lies in told.items() if lies} | found
        self.turned |= set() if guess.squares else squares
        self.turned |= self.untold if guess.crossed else set()

    def laid(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, a matrix as a Linear holds it: (out, in)."""
        return self.shapes[name][::-1] if name in self.turned and len(self.shapes[name]) == 2 else self.shapes[name]

    def rows(self, name: str) -> int:
        """How many features come out."""
        shape = self.shapes[name]
        return (shape[-1] if name in self.turned else shape[0]) if shape else 1

    def _told(self) -> dict[str, bool]:
        """Whether a matrix holds (in, out), where the bias beside it tells: it is as long as what comes out."""
        biases = {role: name for name, role in self.roles.items() if role.kind == "bias"}
        found = {}
        for name, shape in self.shapes.items():
            if len(shape) != 2 or shape[0] == shape[1]:
                continue
            role = self.roles.get(name)
            beside = [name[: -len("weight")] + "bias"] if name.endswith("weight") else []
            beside += [biases[key] for key in (role and role._replace(kind="bias"),) if key in biases]
            lengths = {self.shapes[each] for each in beside if each in self.shapes}
            if len(lengths) == 1 and (length := lengths.pop()) in ((shape[0],), (shape[1],)):
                found[name] = length == (shape[1],)
        return found

    def _by_width(self, known: set[str], told: Mapping[str, bool]) -> tuple[set[str], set[str]]:
        """The matrices whose shape tells that they hold (in, out), and square ones beside those alone."""
        axes = {name: axis for name, role in self.roles.items() if (axis := _axis_of_width(role, self.shapes[name]))}
        width = self._width(axes)
        upright, found, square = {name for name in told if not told[name]}, set(), set()
        for name, axis in axes.items():
            shape = self.shapes[name]
            if shape[0] == shape[1]:
                square.add(name)
            elif name in told:
                continue
            elif shape[-3 - axis] == width:
                found.add(name)
            elif shape[axis] == width:
                upright.add(name)
        only = (found or any(told.values())) and not upright and not known
        return found, square if only else set()

    def _width(self, axes: Mapping[str, int]) -> int:
        """How wide the model is: as its table of tokens is, else the length of a vector that most matrices have on its side, then on any."""
        tables = [name for name, role in self.roles.items() if role.part == "embedding" and len(self.shapes[name]) == 2]
        if tables:
            return self.shapes[tables[0]][1]
        lengths = Counter(shape[0] for shape in self.shapes.values() if len(shape) == 1)

        def fitting(length: int) -> tuple[int, int, int]:
            any_side = sum(length in self.shapes[name] for name in axes)
            own_side = sum(self.shapes[name][axis] == length for name, axis in axes.items())
            return any_side, own_side, lengths[length]

        return max(lengths, key=fitting, default=0)


READING = ("q", "k", "v", "qkv", "kv", "up", "gate", "gate_up")
"""Parts that read the width of the model."""


def _axis_of_width(role: Role, shape: tuple[int, ...]) -> int | None:
    """On which axis a Linear of this part has the width of the model, counted from the end: -1, or -2; None for other parts."""
    part = role.part.removeprefix("cross.")
    if len(shape) != 2 or (part not in READING and part not in ("down", "attention.output")):
        return None
    return -1 if part in READING else -2


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
