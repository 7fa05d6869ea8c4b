"""The weights of two models held against each other: the same, changed, rearranged, or without a partner."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.checking.diff.relations import Relation, Shapes, relation
from clearhead.checking.diff.relations_views import near
from clearhead.checking.diff.report import State, TensorRow
from clearhead.checking.diff.weights_named import paired
from clearhead.checking.diff.weights_numbers import Sums, gap_of, joined, mask_numbers
from clearhead.checking.diff.weights_recipes import Named, Recipe, made, whole
from clearhead.checking.diff.weights_roles import plain_name, roles
from clearhead.formats.opened import Config
from clearhead.messages import say

ANGLES = re.compile(r"inv_freq|(^|[._])(sin|cos|freqs?(_cis)?|pe|position_ids|rope_cache)$")
"""What tables are called that are computed, not trained."""

MOST, ROUNDED = 0.5, 1e-6
"""Tensors of which less than this differs are a pair whatever they are called; and what a conversion may have changed."""

__all__ = ["Match", "Shapes", "compared", "matches", "related", "shapes_of"]


@dataclass(frozen=True)
class Match:
    """A tensor of B and what it is of A's.

    Args:
        recipe: what of A's it is made of; None if it has no partner.
        a: names of A's, "q, k, v" if it is made of several; "" if only B has it.
        b: its name in B; "" if only A has it.
        state: how the two are to each other.
        text: what relates them, or how far they are apart.
        relation: how B's comes from A's, joined; None if it is the same, or nothing is known.
        part: of one that changed, the size of the difference beside that of A's.
        share: of one that changed, how many of its numbers differ, as a part of all.
        kind: what a row of the table calls it; the id if "".
    """

    recipe: Recipe | None
    a: str
    b: str
    state: State
    text: str = ""
    relation: Relation | None = None
    part: float = 0.0
    share: float = 1.0
    kind: str = ""

    @property
    def id(self) -> str:
        """What kind of relation: "weights.transposed" ...; "weights.exchanged" for the numbers of another of A's; "" if there is none.

        A head with the numbers of the embedding is tied, which is a difference of the two models and no slip of the loading.
        """
        if self.relation is not None:
            return self.relation.id
        if self.state != "related" or self.recipe is None:
            return ""
        return "head.tied" if _is_head_of(self.a, self.recipe.names) else "weights.exchanged"

    @property
    def surely(self) -> bool:
        """Whether the two belong together and differ by more than rounding: they have one name, or most of their numbers."""
        paired = plain_name(self.a) == plain_name(self.b) or self.share < MOST
        return self.state == "changed" and self.part > ROUNDED and paired

    @property
    def row(self) -> TensorRow:
        """As the report has it."""
        return TensorRow(self.a, self.b, self.state, self.text, self.id or self.kind)


def _is_head_of(name: str, others: tuple[str, ...]) -> bool:
    """Whether the tensors are a head and the table of tokens."""
    own, other = roles([name]).get(name), roles(others).get(others[0]) if len(others) == 1 else None
    return own is not None and other is not None and (own.part, other.part) == ("head", "embedding")


def compared(
    a: Mapping[str, Tensor],
    b: Mapping[str, Tensor],
    *,
    names: Mapping[str, str] | None = None,
    shapes: Shapes | None = None,
) -> tuple[TensorRow, ...]:
    """How the weights of two models are to each other, in the order of A; what only B has comes last.

    Args:
        a: the tensors of A by name, tied ones once.
        b: those of B.
        names: names of B by those of A, where they are known.
        shapes: sizes of the model, where they are known.
    """
    return tuple(match.row for match in matches(a, b, names=names, shapes=shapes))


def related(a: Mapping[str, Tensor], b: Mapping[str, Tensor], found: tuple[Match, ...]) -> dict[str, Tensor]:
    """What B has, made of A's tensors: those that are the same, and those that are A's rearranged; by B's names.

    Args:
        a: the tensors of A.
        b: those of B, whose names and shapes are asked.
        found: what `matches` found.
    """
    one, other = Named(_lengths(a)), Named(_lengths(b))
    turned = {}
    for match in found:
        if match.recipe is None or match.state == "changed" or (match.relation and not match.relation.exact):
            continue
        tensor = made(match.recipe, a, one, other)
        turned[match.b] = tensor if match.relation is None else match.relation.turn(tensor)
    return turned


def shapes_of(config: Config) -> Shapes:
    """The sizes that a configuration tells."""
    return Shapes(config.heads, config.key_value_heads, config.width_of_head, config.width)


def matches(
    a: Mapping[str, Tensor],
    b: Mapping[str, Tensor],
    *,
    names: Mapping[str, str] | None = None,
    shapes: Shapes | None = None,
) -> tuple[Match, ...]:
    """The tensors of two models in pairs, with what relates them; the arguments are those of `compared`.

    Pairs are made by what is surest: names that are given, equal names, equal numbers that no other tensor has, rows that are found in
    other tensors, what the words of names mean, then shape and order.
    """
    a, b = _real(a), _real(b)
    sums_a, sums_b = Sums(a), Sums(b)
    recipes = _recipes(sums_a, sums_b, names or {})
    one, other = Named(_lengths(a)), Named(_lengths(b))
    found = [_match(recipe, made(recipe, a, one, other), sums_a, b[recipe.b], shapes) for recipe in recipes]
    used = {name for recipe in recipes for name in recipe.names}
    order = {name: place for place, name in enumerate(a)}
    found += [Match(None, name, "", "missing", _elsewhere(name, sums_a)) for name in a if name not in used]
    found.sort(key=lambda match: order[match.recipe.pieces[0].name if match.recipe else match.a])
    met = {recipe.b for recipe in recipes}
    alone = [Match(None, "", name, "unexpected", _elsewhere(name, sums_b)) for name in b if name not in met]
    return (*found, *alone)


def _real(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors, complex numbers (a table of turns) as pairs."""
    return {name: torch.view_as_real(each) if each.is_complex() else each for name, each in tensors.items()}


def _lengths(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _recipes(a: Sums, b: Sums, names: Mapping[str, str]) -> list[Recipe]:
    """What each tensor of B is made of, the surest first."""
    found: list[Recipe] = []
    left_a, left_b = dict(a.tensors), dict(b.tensors)

    def take(recipes: Iterable[Recipe]) -> None:
        # What is left shrinks meanwhile.
        for recipe in list(recipes):
            if recipe.b in left_b:
                found.append(recipe)
                del left_b[recipe.b]
                for name in recipe.names:
                    left_a.pop(name, None)

    take([_of(name, names[name], a) for name in a.tensors if name in names and names[name] in b.tensors])
    plain = {plain_name(name): name for name in left_b}
    take([_of(name, plain[plain_name(name)], a) for name in a.tensors if _fits(name, plain, left_a, left_b)])
    take([_of(name, theirs, a) for name, theirs in a.partners(b, left_a, left_b)])
    take(joined(left_a, left_b))
    take(paired(Named(_lengths(a.tensors)), Named(_lengths(b.tensors)), left_a, left_b).recipes)
    return found


def _fits(name: str, plain: Mapping[str, str], left_a: Mapping[str, Tensor], left_b: Mapping[str, Tensor]) -> bool:
    """Whether B has a tensor of that name with as many numbers, or as many columns: rows may have been added."""
    theirs = plain.get(plain_name(name))
    if theirs is None or name not in left_a:
        return False
    one, other = left_a[name], left_b[theirs]
    return one.numel() == other.numel() or (one.dim() == other.dim() and one.shape[1:] == other.shape[1:])


def _of(name: str, theirs: str, a: Sums) -> Recipe:
    return whole(name, theirs, tuple(a.tensors[name].shape), "name")


def _match(recipe: Recipe, made_of: Tensor, a: Sums, b: Tensor, shapes: Shapes | None) -> Match:
    """A pair, judged."""
    names = ", ".join(recipe.names)
    joined_text = "" if recipe.whole else _joined_text(recipe)
    if made_of.shape == b.shape and near(made_of, b, 0.0):
        return Match(recipe, names, recipe.b, "same", joined_text, kind=_joined_kind(recipe))
    found = relation(made_of, b, shapes)
    if found is not None:
        text = f"{joined_text}; {found.text}" if joined_text else found.text
        return Match(recipe, names, recipe.b, "related", text, found)
    other = a.holder(b, recipe.names[0])
    if other is not None:
        taken = whole(other, recipe.b, tuple(b.shape), "numbers")
        return Match(taken, names, recipe.b, "related", say("weights.exchanged", name=other))
    gap = gap_of(made_of, b)
    return Match(recipe, names, recipe.b, "changed", gap.text, part=gap.part, share=gap.share, kind=gap.id)


def _joined_kind(recipe: Recipe) -> str:
    if recipe.whole:
        return ""
    return "weights.joined" if len(recipe.pieces) > 1 else "weights.part"


def _joined_text(recipe: Recipe) -> str:
    if len(recipe.pieces) > 1:
        return say("weights.joined", number=len(recipe.pieces))
    return say("weights.part", first=recipe.pieces[0].first, last=recipe.pieces[0].last - 1)


def _elsewhere(name: str, sums: Sums) -> str:
    """What is to be said of a tensor without a partner."""
    tensor = sums.tensors[name]
    if not bool(torch.any(tensor)):
        return say("weights.alone_zero")
    numbers = mask_numbers(tensor)
    if numbers:
        return say("weights.alone_mask", numbers=numbers)
    if ANGLES.search(name):
        return say("weights.alone_angles")
    twin = sums.holder(tensor, name)
    return "" if twin is None else say("weights.alone_tied", name=twin)
