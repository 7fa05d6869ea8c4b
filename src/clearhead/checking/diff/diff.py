"""Comparing two of anything: sides are opened, given the same inputs, and walked until they part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from torch import nn

from clearhead.checking.diff.align import parting
from clearhead.checking.diff.code import open_code
from clearhead.checking.diff.drawn import Drawn, drawn_in, must_be_small
from clearhead.checking.diff.giving import shared_weights
from clearhead.checking.diff.guesses import best_guess
from clearhead.checking.diff.inputs import inputs_for, longer, unseen
from clearhead.checking.diff.ours import ModelSide, model_side
from clearhead.checking.diff.report import Difference, Pair, Reason
from clearhead.checking.diff.side import Given, Side, Tuned, Walk
from clearhead.checking.diff.towards import IDLE, IDS, SIZES, differing, shown
from clearhead.checking.diff.walking import walked
from clearhead.checking.diff.whys import reasons_for, unexplained
from clearhead.checking.rounding import UNIT
from clearhead.checking.settings import Settings
from clearhead.checking.target import named, target_of
from clearhead.formats.find import is_there
from clearhead.formats.load import Loaded
from clearhead.messages import say

CHEAP = 5_000_000
"""Two whose stages hold fewer numbers than this are compared at a second length."""


def diff(
    a: str | nn.Module | type | Callable[..., Any] | Loaded,
    b: str | nn.Module | type | Callable[..., Any] | Loaded,
    *,
    text: str | None = None,
    weights: Literal["own", "a"] | None = None,
    kind: str | None = None,
    values: Mapping[str, Any] | None = None,
    seed: int = 0,
    call: Callable[..., Any] | None = None,
) -> Difference:
    """Where two models first part, and why; `clearhead diff` runs it in a process of its own.

    Args:
        a: a MODEL (path, name, or loaded), or somebody's code: a module, a class, a factory, or its name "att.py:Attention".
        b: another one.
        text: a text that both read; random ids, or vectors, if None.
        weights: "own" to leave each its own weights, "a" to give B those of A; by default B gets A's if it is a class.
        kind: of code, as `check` takes it; guessed if None.
        values: arguments of constructors by name, where they have them.
        seed: of random inputs.
        call: how code is run, `call(module, *inputs)`, in place of what would be found.

    Raises:
        UserError: if one of them cannot be opened or run, or the two do not take the same inputs.
    """
    tuned = Tuned(text, weights, kind, values or {}, seed, call)
    return compare(opened(a, tuned), opened(b, tuned), tuned)


class Opened(NamedTuple):
    """A side, and which of its weights were drawn when it was built."""

    side: Side
    fresh: Drawn = Drawn()


def opened(found: str | nn.Module | type | Callable[..., Any] | Loaded, tuned: Tuned) -> Opened:
    """A side.

    Args:
        found: what `diff` was given. A word is a MODEL if something is there by that name, or if it names no object of a file.
        tuned: what the user said.

    Raises:
        UserError: if it cannot be opened.
    """
    if isinstance(found, Loaded):
        return Opened(model_side(found))
    if isinstance(found, str) and (is_there(found) or ":" not in found):
        return Opened(model_side(found))
    settings = Settings(kind=tuned.kind, values=dict(tuned.values), seed=tuned.seed, call=tuned.call)
    code = named(found) if isinstance(found, str) else found
    plain = getattr(found, "func", found)
    name = found if isinstance(found, str) else getattr(plain, "__name__", type(plain).__name__)
    must_be_small(code, name, tuned.values)
    return Opened(open_code(target_of(code, name, settings), settings), drawn_in(code))


def compare(one: Opened, other: Opened, tuned: Tuned) -> Difference:
    """The difference of two sides; raises as `diff`."""
    shared = shared_weights(one.side, other.side, tuned.weights, (one.fresh, other.fresh), tuned.seed)
    a, b = shared.a, shared.b
    given = inputs_for(a, b, tuned)
    seen = walked(a, b, given)
    if shared.otherwise and parting(seen.pairs) is not None and _cheap(seen.walks):
        shared, seen = best_guess(shared, seen, given)
        a, b = shared.a, shared.b
    read = given
    if parting(seen.pairs) is None and _cheap(seen.walks) and (more := longer(a, b, given, tuned)) is not None:
        second, read = walked(a, b, more), more
        if parting(second.pairs) is None:
            given = Given(given.inputs, say("diff.given_both", first=given.text, second=more.text))
        else:
            seen, given = second, more
    first = parting(seen.pairs)
    unread = unseen(a, b, read) if first is None else []
    notes = [
        *of_words(a, b, tuned.text),
        *shared.notes,
        *unread,
        *seen.notes,
        *islands(seen.walks, seen.pairs),
        *idle(a, b),
    ]
    reasons: tuple[Reason, ...] = ()
    unreached = shared.changed
    if first is not None:
        reasons, left, unreached = reasons_for(shared, seen, first, given)
        notes += unexplained(reasons, left, unreached)
        reasons += chosen_apart(a, b, first) if any(each.id == "config.sizes" for each in reasons) else ()
    told = a.name, b.name, given.text, shared.whose, seen.pairs, first, reasons, shared.tensors, tuple(notes)
    return Difference(*told, unreached)


def _cheap(walks: tuple[Walk, Walk]) -> bool:
    """Whether both can be run at a greater length without much ado."""
    return sum(stage.value.numel() for walk in walks for stage in walk.stages) < CHEAP


def of_words(a: Side, b: Side, text: str | None) -> list[str]:
    """What is to be said where the same ids are not the same words, or not all of a text is known."""
    notes = []
    if a.vocab and b.vocab and a.vocab != b.vocab:
        notes.append(say("diff.vocabularies", a=a.vocab, b=b.vocab))
    loaded = [side.loaded for side in (a, b) if isinstance(side, ModelSide) and side.loaded is not None]
    if text is None or not loaded:
        return notes
    if len(loaded) > 1 and loaded[0].read(text) != loaded[1].read(text):
        notes.append(say("diff.tokenizers"))
    back = loaded[0].tokenizer.decode(loaded[0].tokenizer.encode(text))
    unknown = sorted({before for before, after in zip(text, back, strict=False) if before != after})
    if unknown:
        notes.append(say("diff.unknown", characters=" ".join(map(repr, unknown))))
    return notes


def islands(walks: tuple[Walk, Walk], pairs: tuple[Pair, ...]) -> list[str]:
    """That a side computes some of it in a narrower type, and where that shows first."""
    shown = next((pair for pair in pairs if pair.held == "island"), None)
    if shown is None:
        return []
    narrowest = max((walk.narrowest for walk in walks), key=lambda kind: UNIT.get(kind, 0.0))
    kind = str(narrowest).removeprefix("torch.")
    return [say("diff_ours.island", kind=kind, place=shown.b or shown.a, gap=f"{shown.largest:.1e}")]


def chosen_apart(a: Side, b: Side, first: Pair) -> tuple[Reason, ...]:
    """What the configurations of two of ours tell beside their sizes, without a search: positions, norm, activation."""
    if not (isinstance(a, ModelSide) and isinstance(b, ModelSide)):
        return ()
    return tuple(
        Reason(
            IDS.get(each.name, f"config.{each.name}"),
            "consistent",
            first.a or first.b,
            say("diff_ours.size", field=each.name, a=shown(each.first), b=shown(each.second)),
            first.largest,
            first.largest,
        )
        for each in differing(a.config, b.config)
        if each.name not in (*IDLE, *SIZES, "context")
    )


def idle(a: Side, b: Side) -> list[str]:
    """Fields in which two of ours differ and that change no number here."""
    if not (isinstance(a, ModelSide) and isinstance(b, ModelSide)):
        return []
    return [
        say("diff_ours.idle", field=each.name, a=shown(each.first), b=shown(each.second))
        for each in differing(a.config, b.config)
        if each.name in IDLE
    ]
