"""Whose weights the two have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from clearhead.checking.diff.candidates import Candidate
from clearhead.checking.diff.code import CodeSide
from clearhead.checking.diff.copying import Fitted, fitted, turned_in
from clearhead.checking.diff.ours import ModelSide
from clearhead.checking.diff.report import TensorRow
from clearhead.checking.diff.side import Side
from clearhead.checking.diff.vocabularies import with_common_rows
from clearhead.checking.diff.weights import Match, matches, shapes_of
from clearhead.checking.strangers import Attempt, Seeded
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
    """

    a: Side
    b: Side
    whose: Literal["own", "a"]
    tensors: tuple[TensorRow, ...]
    notes: tuple[str, ...] = ()
    found: tuple[Match, ...] | None = None
    changed: tuple[str, ...] = ()
    pairs: tuple[Match, ...] = ()


def shared_weights(a: Side, b: Side, asked: str | None, fresh: tuple[bool, bool]) -> Shared:
    """The sides, B with the weights of A if that was asked for or B has none of its own, and A with those of B if A alone has none.

    Args:
        a: the one.
        b: the other.
        asked: "own", "a" or None.
        fresh: whether A, and whether B, has weights that were drawn when it was built.

    Raises:
        UserError: if weights were asked for that fit nowhere.
    """
    if asked == "a" or (asked is None and fresh[1]):
        taken, found = given(a, b)
        if asked == "a" and not found.tensors:
            raise UserError(say("diff_ours.nothing_fits", a=a.name, b=b.name))
        return Shared(a, taken, "a" if found.tensors else "own", found.rows, found.notes)
    if asked is None and fresh[0]:
        taken, found = given(b, a)
        notes = (say("diff_ours.given_to_a", a=a.name, b=b.name),) if found.tensors else ()
        return Shared(taken, b, "own", held(taken, b), (*notes, *found.notes))
    if isinstance(a, ModelSide) and isinstance(b, ModelSide):
        pairs = matches(a.weights, b.weights, shapes=shapes_of(a.config))
        return Shared(a, b, "own", tuple(match.row for match in pairs), found=pairs, changed=changed(pairs))
    pairs = held_pairs(a, b)
    return Shared(a, b, "own", tuple(match.row for match in pairs), changed=changed(pairs), pairs=pairs)


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


def given(giver: Side, taker: Side) -> tuple[Side, Fitted]:
    """The taker with the weights of the giver, as far as they have a place there, and what became of them."""
    found = places(giver, taker)
    if not found.tensors or not isinstance(taker, ModelSide | CodeSide):
        return taker, found
    if isinstance(taker, CodeSide):
        return taker.with_weights(found.tensors), found
    return taker.with_tensors({name: tensor.to(torch.float64) for name, tensor in found.tensors.items()}), found


def places(giver: Side, taker: Side) -> Fitted:
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
    found = fitted(wanted, giver.weights, rows=rows, config=config, turned=turned, own=own_config)
    return with_common_rows(found, giver, own, (giver.vocab, taker.vocab))


def is_fresh(found: Any) -> bool:
    """Whether what builds a module draws its weights: a class, or a factory that gives others each time."""
    if isinstance(found, type):
        return True
    if isinstance(found, nn.Module) or not callable(found):
        return False
    weights = []
    for seed in (1, 2):
        with Attempt(), Seeded(seed):
            made = found()
            if isinstance(made, type):
                return True
            weights.append(list(made.parameters()) if isinstance(made, nn.Module) else [])
    if len(weights) < 2 or len(weights[0]) != len(weights[1]):
        return False
    return any(not torch.equal(one, other) for one, other in zip(*weights, strict=True))


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
