"""Whose weights the two have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from clearhead.checking.diff.candidates import Candidate
from clearhead.checking.diff.code import CodeSide
from clearhead.checking.diff.copying import Fitted, fitted, turned_in
from clearhead.checking.diff.drawn import Drawn, lost_numbers, unlike
from clearhead.checking.diff.ours import ModelSide
from clearhead.checking.diff.report import TensorRow
from clearhead.checking.diff.side import Side
from clearhead.checking.diff.vocabularies import with_common_rows
from clearhead.checking.diff.weights import Match, matches, shapes_of
from clearhead.checking.diff.weights_recipes import FIRST, Guess
from clearhead.messages import UserError, say


class Shared(NamedTuple):
    """The two sides with the weights with which they are compared.

    Args:
        a: the one.
        b: the other.
        whose: "a" if B was given those of A.
        tensors: how the weights are to each other, or what became of those that were given.
        notes: what is to be said of it.
        found: what the rows were made of, where the two name their tensors alike.
        changed: names of tensors that differ, where each side has its own.
        pairs: how the tensors are to each other, where each side has its own.
        otherwise: the same with another guess of which tensor is which, where names and shapes leave a choice.
    """

    a: Side
    b: Side
    whose: Literal["own", "a"]
    tensors: tuple[TensorRow, ...]
    notes: tuple[str, ...] = ()
    found: tuple[Match, ...] | None = None
    changed: tuple[str, ...] = ()
    pairs: tuple[Match, ...] = ()
    otherwise: tuple[Callable[[], Shared], ...] = ()


def shared_weights(a: Side, b: Side, asked: str | None, fresh: tuple[Drawn, Drawn], seed: int = 0) -> Shared:
    """The sides, B with the weights of A if that was asked for or B has none of its own, and A with those of B if A alone has none.

    Of a side that loads some of its weights and draws others those alone are given.

    Args:
        a: the one.
        b: the other.
        asked: "own", "a" or None.
        fresh: which weights of A, and of B, are drawn when it is built.
        seed: of what is drawn in place of weights that hold one number at first.

    Raises:
        UserError: if weights were asked for that fit nowhere.
    """
    drawn: tuple[str, ...] = ()
    if fresh[0].every and (asked == "a" or (asked is None and fresh[1].every)):
        a, count = unlike(a, seed=seed)
        drawn = (say("diff_ours.initial", name=a.name, number=count),) if count else ()
    if asked == "a" or (asked is None and fresh[1].every):
        shared = _a_to_b(a, b, fresh[1].every, seed)
        if asked == "a" and shared.whose == "own":
            raise UserError(say("diff_ours.nothing_fits", a=a.name, b=b.name))
        return shared._replace(notes=(*_lost(a, b), *shared.notes, *drawn))
    if asked is None and fresh[0].every:
        shared = _b_to_a(a, b)
        return shared._replace(notes=(*_lost(b), *shared.notes))
    notes: tuple[str, ...] = ()
    if asked is None:
        a, b, notes = _drawn_alone(a, b, fresh)
    return _own(a, b)._replace(notes=(*_lost(a, b), *notes))


def _own(a: Side, b: Side) -> Shared:
    """Each with its own."""
    if isinstance(a, ModelSide) and isinstance(b, ModelSide):
        pairs = matches(a.weights, b.weights, shapes=shapes_of(a.config))
        return Shared(a, b, "own", tuple(match.row for match in pairs), found=pairs, changed=changed(pairs))
    pairs = held_pairs(a, b)
    return Shared(a, b, "own", tuple(match.row for match in pairs), changed=changed(pairs), pairs=pairs)


def _a_to_b(a: Side, b: Side, fresh: bool, seed: int, guess: Guess = FIRST) -> Shared:
    """B with the weights of A."""
    taken, found = given(a, b, guess)
    notes = found.notes
    if fresh and found.tensors:
        taken, count = unlike(taken, found.tensors, seed + 1)
        notes += (say("diff_ours.initial", name=b.name, number=count),) if count else ()
    others = tuple(partial(_a_to_b, a, b, fresh, seed, each) for each in found.guesses) if guess == FIRST else ()
    return Shared(a, taken, "a" if found.tensors else "own", found.rows, notes, otherwise=others)


def _b_to_a(a: Side, b: Side, guess: Guess = FIRST) -> Shared:
    """A with the weights of B."""
    taken, found = given(b, a, guess)
    notes = (say("diff_ours.given_to_a", a=a.name, b=b.name),) if found.tensors else ()
    others = tuple(partial(_b_to_a, a, b, each) for each in found.guesses) if guess == FIRST else ()
    return Shared(taken, b, "own", held(taken, b), (*notes, *found.notes), otherwise=others)


def _drawn_alone(a: Side, b: Side, fresh: tuple[Drawn, Drawn]) -> tuple[Side, Side, tuple[str, ...]]:
    """Both sides, each with the other's weights in place of those alone that it draws when it is built; and that it was so."""
    sides, notes = [a, b], []
    for n in (1, 0):
        taker, giver, names = sides[n], sides[1 - n], fresh[n].names
        if not names or not isinstance(taker, CodeSide):
            continue
        found = {name: each for name, each in places(giver, taker).tensors.items() if name in names}
        sides[n] = taker.with_weights(found) if found else taker
        note = say(
            "diff_ours.drawn",
            name=taker.name,
            number=len(names),
            names=", ".join(sorted(names)[:4]),
            given=len(found),
            other=giver.name,
        )
        notes.append(note)
    return sides[0], sides[1], tuple(notes)


def _lost(*sides: Side) -> tuple[str, ...]:
    """That weights of some sides hold what is no number."""
    return tuple(line for side in sides for line in lost_numbers(side, side.weights))


def changed(pairs: Iterable[Match]) -> tuple[str, ...]:
    """The tensors that surely differ, by their names in A."""
    return tuple(match.a for match in pairs if match.surely)


def held(a: Side, b: Side) -> tuple[TensorRow, ...]:
    """How the weights of two are to each other."""
    return tuple(match.row for match in held_pairs(a, b))


def held_pairs(a: Side, b: Side) -> tuple[Match, ...]:
    """How the weights of two are to each other; a matrix that one holds (in, out) and the other (out, in) is the same one."""
    ours = next((side for side in (a, b) if isinstance(side, ModelSide)), None)
    shapes = None if ours is None else shapes_of(ours.config)
    one, other = (_upright(side) for side in (a, b))
    return matches(one, other, shapes=shapes)


def _upright(side: Side) -> Mapping[str, Tensor]:
    """Its weights, each matrix as a Linear holds it."""
    made = side.module(None) if isinstance(side, CodeSide) else None
    turned = turned_in(made) if isinstance(made, nn.Module) else set()
    return {name: each.t() if name in turned and each.dim() == 2 else each for name, each in side.weights.items()}


def given(giver: Side, taker: Side, guess: Guess = FIRST) -> tuple[Side, Fitted]:
    """The taker with the weights of the giver, as far as they have a place there, and what became of them."""
    found = places(giver, taker, guess)
    # What is no number would hide all else on the side that has not got it.
    numbers = {name: each for name, each in found.tensors.items() if not bool(each.isnan().any())}
    found = found._replace(tensors=numbers)
    if not found.tensors or not isinstance(taker, ModelSide | CodeSide):
        return taker, found
    if isinstance(taker, CodeSide):
        return taker.with_weights(found.tensors), found
    return taker.with_tensors({name: tensor.to(torch.float64) for name, tensor in found.tensors.items()}), found


def places(giver: Side, taker: Side, guess: Guess = FIRST) -> Fitted:
    """The weights of the giver under the names of the taker."""
    own, turned = taker.weights, set[str]()
    made = taker.module(None) if isinstance(taker, CodeSide) else None
    if isinstance(made, nn.Module):
        # Buffers are masks and tables of angles, which the giver has in other ways.
        own, turned = dict(made.named_parameters()), turned_in(made)
    wanted = {name: tuple(tensor.shape) for name, tensor in own.items()}
    ours = giver if isinstance(giver, ModelSide) else None
    rows, config = (ours.rows, ours.config) if ours is not None else ((), None)
    own_config = taker.config if isinstance(taker, ModelSide) else None
    theirs = giver.module(None) if isinstance(giver, CodeSide) else None
    there = turned_in(theirs) if isinstance(theirs, nn.Module) else set[str]()
    found = fitted(
        wanted,
        giver.weights,
        rows=rows,
        config=config,
        turned=turned,
        own=own_config,
        turned_there=there,
        guess=guess,
    )
    return with_common_rows(found, giver, own, (giver.vocab, taker.vocab))


def weights_of_other(
    side: ModelSide, other: Side, *, mirrored: bool = False, known: tuple[Match, ...] | None = None
) -> Callable[[ModelSide], Iterable[Candidate]]:
    """Changes of the side's weights into those of the other: those with one relation at a time, then all.

    Args:
        side: ours, as it is at first.
        other: whatever it is.
        mirrored: whether the side is B: what relates two tensors is said of A's, then B's.
        known: what relates A's tensors and B's, where that was asked before.
    """
    # With names in common no guess is needed; without, what is only held otherwise (in, out) is undone first.
    own = {name: tensor for name, tensor in other.weights.items() if name in side.weights}
    back = own if len(own) == len(side.weights) else places(other, side).tensors
    first, second = (back, side.weights) if mirrored else (side.weights, back)
    every = matches(first, second, shapes=shapes_of(side.config)) if known is None else known
    found = [replace(each, a=each.b, b=each.a) if mirrored else each for each in every]
    found = [each for each in found if each.state in ("related", "changed")]
    groups: dict[str, list[Match]] = {}
    for each in found:
        groups.setdefault(each.id or "weights.changed", []).append(each)
    if len(groups) > 1:
        groups["weights.other"] = found

    def candidates(now: ModelSide) -> Iterable[Candidate]:
        for id, some in groups.items():
            names = [name for each in some for name in each.a.split(", ") if name in back]
            tensors = {name: back[name].to(torch.float64) for name in names}
            fitting = {n: t for n, t in tensors.items() if n in now.tensors and now.tensors[n].shape == t.shape}
            if fitting:
                yield _candidate(now, id, some, fitting)

    return candidates


def _candidate(side: ModelSide, id: str, some: list[Match], tensors: dict[str, Tensor]) -> Candidate:
    first = some[0]
    after = say(
        "diff_ours.other_weights", count=len(tensors), whole=len(side.weights), name=first.a, how=first.text or "-"
    )
    return Candidate(id, say("diff_ours.own_weights"), after, lambda: side.with_tensors(tensors))
