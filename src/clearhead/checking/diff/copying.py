"""Giving one side the weights of the other, whatever it calls them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from clearhead.checking.diff.report import TensorRow
from clearhead.checking.diff.weights_named import Paired, paired
from clearhead.checking.diff.weights_recipes import FIRST, Guess, Named, Recipe, made
from clearhead.checking.diff.weights_roles import bare_name
from clearhead.checking.strangers import Attempt
from clearhead.formats.fields import Fields
from clearhead.formats.hugging_face.families import FAMILIES
from clearhead.formats.opened import Config
from clearhead.formats.pickles.checkpoint import LAYOUTS
from clearhead.formats.pickles.layout import Found
from clearhead.formats.rows import Row
from clearhead.messages import say
from clearhead.models.config import DecoderConfig


class Fitted(NamedTuple):
    """A's weights under B's names.

    Args:
        tensors: for each of B's names that has one, the tensor, in B's shape.
        rows: what became of each: `same` as it is, `related` turned or joined, `missing` in B, `unexpected` by A.
        notes: what was guessed.
        guesses: what might be guessed instead.
    """

    tensors: dict[str, Tensor]
    rows: tuple[TensorRow, ...]
    notes: tuple[str, ...]
    guesses: tuple[Guess, ...] = ()


class Copied(NamedTuple):
    """What became of a module that was given weights.

    Args:
        rows: what became of each tensor.
        notes: what was guessed, and how many were given.
    """

    rows: tuple[TensorRow, ...]
    notes: tuple[str, ...]


def copied(
    module: nn.Module, tensors: Mapping[str, Tensor], *, rows: Sequence[Row] = (), config: Config | None = None
) -> Copied:
    """Give a module, in place, the weights of another model; its buffers (masks, tables of angles) stay.

    Args:
        module: B's.
        tensors: A's, by A's names.
        rows: what tensors of the file that A came from are called, where that is known; A's names are the rows' own.
        config: of A, to know what other libraries call its tensors.
    """
    own = dict(module.named_parameters())
    shapes = {name: tuple(parameter.shape) for name, parameter in own.items()}
    found = fitted(shapes, tensors, rows=rows, config=config, turned=turned_in(module))
    before = {name: own[name].detach().clone() for name in found.tensors}
    with torch.no_grad():
        for name, tensor in found.tensors.items():
            own[name].copy_(tensor)
    kept = sum(torch.equal(before[name], own[name]) for name in found.tensors if before[name].numel() > 1)
    notes = (*found.notes, say("copying.given", number=len(found.tensors), all=len(own), kept=kept))
    return Copied(found.rows, notes)


def turned_in(module: nn.Module) -> set[str]:
    """Names of the matrices of a module that hold (in, out): those of a `Conv1D`."""
    kinds = [(path, part) for path, part in module.named_modules() if type(part).__name__ == "Conv1D"]
    return {f"{path}.weight".lstrip(".") for path, part in kinds if not isinstance(part, nn.Conv1d)}


def fitted(
    wanted: Mapping[str, tuple[int, ...]],
    tensors: Mapping[str, Tensor],
    *,
    rows: Sequence[Row] = (),
    config: Config | None = None,
    turned: Collection[str] = (),
    own: Config | None = None,
    turned_there: Collection[str] = (),
    guess: Guess = FIRST,
) -> Fitted:
    """A's weights as B names and shapes them.

    The names are A's, those of the file that A came from, or those that a known library gives to a model like A: whichever names most
    of B's. What is left goes by what the words of names mean, fused and separate q, k, v turned into each other, then by shape and order.

    Args:
        wanted: B's shapes by name.
        tensors: A's, by A's names.
        rows: what tensors of the file that A came from are called.
        config: of A.
        turned: names of B whose matrices hold (in, out).
        own: of B, where B is ours and A's names may be those of a known library.
        turned_there: names of A whose matrices hold (in, out).
        guess: what is taken otherwise than at first, where names and shapes leave a choice.
    """
    done: dict[str, Tensor] = {}
    result: list[TensorRow] = []
    used: set[str] = set()
    naming = _best(wanted, tensors, rows, config)
    for row in naming:
        pieces = _pieces(row, tensors[row.ours])
        names = {part: name for part, name in _found(pieces, wanted).items() if pieces[part].shape == wanted[name]}
        for part, name in names.items():
            done[name] = pieces[part]
            plain = row.plain
            result.append(
                TensorRow(row.ours, name, "same" if plain else "related", *(("", "") if plain else _how(row)))
            )
        used |= {row.ours} if names else set()
    for row, held in _theirs(wanted, tensors, own):
        done[row.ours] = row.join([tensors[name] for name in held])
        text = "" if row.plain else say("copying.of_library")
        id = "weights.related" if text else ""
        result.append(TensorRow(", ".join(held), row.ours, "related" if text else "same", text, id))
        used |= set(held)
    one = Named({name: tuple(tensor.shape) for name, tensor in tensors.items()}, turned_there, guess)
    other = Named(wanted, turned, guess)
    left = [name for name in wanted if name not in done]
    pairs = paired(one, other, [name for name in tensors if name not in used], left, guess.order)
    squares = [each.b for each in pairs.recipes if each.b in other.squares or set(each.names) & one.squares]
    for recipe in pairs.recipes:
        tensor, text, id = _fit(recipe, made(recipe, tensors, one, other), one, other)
        if tuple(tensor.shape) == wanted[recipe.b]:
            done[recipe.b] = tensor
            used |= set(recipe.names)
            result.append(TensorRow(", ".join(recipe.names), recipe.b, "related" if text else "same", text, id))
    for head, table in _heads_tied(one, other, done):
        done[head] = tensors[table]
        result.append(TensorRow(table, head, "same", say("copying.tied")))
    result += [TensorRow(name, "", "missing", say("copying.missing")) for name in tensors if name not in used]
    result += [TensorRow("", name, "unexpected", say("copying.unchanged")) for name in wanted if name not in done]
    unchanged = [name for name in wanted if name not in done]
    return Fitted(done, tuple(result), _notes(pairs.unsure, squares, unchanged, naming), _guesses(pairs, squares))


MOST = 4
"""Of so many tensors of one shape in a block all orders are tried, not of more."""


def _guesses(pairs: Paired, squares: Sequence[str]) -> tuple[Guess, ...]:
    """What might be guessed instead of what was."""
    lies = [FIRST]
    lies += [Guess(squares=True)] if squares else []
    lies += [each._replace(crossed=True) for each in lies] if pairs.lying else []
    orders = [order for size in sorted(pairs.sizes) if 1 < size <= MOST for order in permutations(range(size))]
    orders = [order for order in orders if order != tuple(range(len(order)))]
    return (*lies[1:], *(each._replace(order=order) for order in orders for each in lies))


def _notes(
    unsure: Collection[str], squares: Sequence[str], unchanged: Sequence[str], naming: Sequence[Row]
) -> tuple[str, ...]:
    notes = []
    if unsure:
        names = ", ".join(sorted(unsure)[:4])
        notes.append(say("copying.unsure", number=len(unsure), names=names))
    if squares:
        notes.append(say("copying.squares", number=len(squares), names=", ".join(squares[:4])))
    if unchanged:
        notes.append(say("copying.left", number=len(unchanged), names=", ".join(unchanged[:4])))
    if any(not row.plain for row in naming):
        notes.append(say("copying.known_names"))
    return tuple(notes)


def _how(row: Row) -> tuple[str, str]:
    """In words, how theirs comes from ours, and what that is called."""
    if len(row.parts) > 1:
        return say("copying.split", number=len(row.parts)), "weights.part"
    turns = row.parts[0].change.turns
    return (say("copying.turned"), "weights.transposed") if turns else (say("copying.rearranged"), "weights.permuted")


def _heads_tied(a: Named, b: Named, done: Collection[str]) -> Iterator[tuple[str, str]]:
    """B's head and A's embedding, where A has no head of its own: it is tied."""
    heads = [
        name for name, role in b.roles.items() if (role.part, role.kind) == ("head", "weight") and name not in done
    ]
    tables = [name for name, role in a.roles.items() if role.part == "embedding"]
    headless = not any(role.part == "head" for role in a.roles.values())
    if headless and len(heads) == 1 and len(tables) == 1 and a.shapes[tables[0]] == b.shapes[heads[0]]:
        yield heads[0], tables[0]


def _fit(recipe: Recipe, tensor: Tensor, a: Named, b: Named) -> tuple[Tensor, str, str]:
    """What a recipe makes as B holds it, in words what was done, and what that is called: axes turned where one has (in, out), or of one entry added."""
    if len(recipe.pieces) > 1:
        return tensor, say("copying.joined", number=len(recipe.pieces)), "weights.joined"
    if not recipe.whole:
        return tensor, say("copying.part"), "weights.part"
    shape, (name,) = b.shapes[recipe.b], recipe.names
    lies_turned = (name in a.turned) != (recipe.b in b.turned)
    if tensor.dim() == 2 and (lies_turned or tensor.shape != shape) and tuple(tensor.shape)[::-1] == shape:
        return tensor.t(), say("copying.turned"), "weights.transposed"
    if tensor.shape == shape or _without_ones(tuple(tensor.shape)) != _without_ones(shape):
        return tensor, "", ""
    return tensor.reshape(shape), say("copying.rearranged"), "weights.axes"


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _pieces(row: Row, tensor: Tensor) -> dict[str, Tensor]:
    """Theirs by name, from ours; none if a row does not fit."""
    with Attempt():
        return row.split(tensor)
    return {}


def _found(pieces: Mapping[str, Tensor], wanted: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """B's name for each of theirs that B has."""
    plain = {bare_name(name): name for name in wanted}
    return {part: plain[bare_name(part)] for part in pieces if bare_name(part) in plain}


def _best(
    wanted: Mapping[str, tuple[int, ...]],
    tensors: Mapping[str, Tensor],
    rows: Sequence[Row],
    config: Config | None,
) -> list[Row]:
    """The rows whose names B has most of."""
    best: list[Row] = []
    most = 0
    for each in (rows, *_known(config, wanted)):
        kept = [row for row in each if row.ours in tensors]
        hollow = {row.ours: _pieces(row, tensors[row.ours].to("meta")) for row in kept}
        number = 0
        for pieces in hollow.values():
            number += sum(pieces[part].shape == wanted[name] for part, name in _found(pieces, wanted).items())
        if number > most:
            best, most = kept, number
    own = sum(bare_name(name) in {bare_name(each) for each in wanted} for name in tensors)
    return best if most > own else []


def _theirs(
    wanted: Mapping[str, tuple[int, ...]], tensors: Mapping[str, Tensor], config: Config | None
) -> list[tuple[Row, list[str]]]:
    """Tensors of ours that a known library's are, with the names that those have; of the library whose names are most of A's."""
    best: list[tuple[Row, list[str]]] = []
    bare = {bare_name(name): name for name in tensors}
    for rows in _known(config, {name: tuple(tensor.shape) for name, tensor in tensors.items()}):
        found = []
        for row in rows:
            names = [bare.get(bare_name(part.name), "") for part in row.parts]
            if (
                row.ours in wanted
                and all(names)
                and _made_shape(row, [tensors[name] for name in names]) == wanted[row.ours]
            ):
                found.append((row, names))
        best = found if sum(len(names) for _, names in found) > sum(len(names) for _, names in best) else best
    return best


def _made_shape(row: Row, parts: Sequence[Tensor]) -> tuple[int, ...]:
    """The shape of what a row makes of these; none if they do not fit."""
    with Attempt():
        return tuple(row.join([part.to("meta") for part in parts]).shape)
    return ()


def _known(config: Config | None, wanted: Mapping[str, tuple[int, ...]]) -> Iterator[Sequence[Row]]:
    """What known libraries and courses call the tensors of a model."""
    if config is None:
        return
    for family in FAMILIES:
        found: Sequence[Row] = ()
        with Attempt():
            found = family.rows(config)
        yield found
    if isinstance(config, DecoderConfig):
        seen = Found(Path(), wanted, Fields({}, Path(), ""), config.tied)
        yield from (layout.rows(seen, config) for layout in LAYOUTS)
