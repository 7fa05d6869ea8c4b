"""Checking one target: the kind is found, its questions are asked, and the answers become a report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal

from torch import nn

from clearhead.checking.families.found import family_found
from clearhead.checking.guess import guessed
from clearhead.checking.kinds.kind import Found, Kind, NoInterfaceError
from clearhead.checking.kinds.table import KINDS
from clearhead.checking.order import ordered
from clearhead.checking.report import Report
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.target import Target, resolve, target_of
from clearhead.checking.unused import unused
from clearhead.checking.wrapping import told, wrapper
from clearhead.formats.load import Loaded
from clearhead.messages import UserError, say


def check(
    target: str | nn.Module | type | Callable[..., Any],
    *,
    kind: str | None = None,
    width: int | None = None,
    heads: int | None = None,
    kv_heads: int | None = None,
    vocab: int | None = None,
    context: int | None = None,
    window: int | None = None,
    causal: bool | None = None,
    mask_true: Literal["keep", "drop"] | None = None,
    values: Mapping[str, Any] | None = None,
    call: Callable[..., Any] | None = None,
    only: Collection[str] = (),
    seed: int = 0,
    rounding: bool = False,
    against: str | Path | Loaded | None = None,
) -> Report:
    """Whether somebody's code is right, and if not, what the mistake is called and how to mend it.

    It runs in this process; `clearhead check` runs it in one of its own, with a time limit.

    Args:
        target: a module, a class, a function or a factory, or the name of one, "att.py:Attention".
        kind: attention, sdpa, block, encoder, lm, seq2seq, norm, rotary, positions, loss or sampler; guessed if None.
        width: D, where it cannot be found out; as all sizes that follow.
        heads: H.
        kv_heads: K.
        vocab: V.
        context: the most positions.
        window: how many keys a query sees, itself included.
        causal: whether a position may not see later ones.
        mask_true: what True in a mask means.
        values: arguments for a constructor, by name.
        call: how to run it, `call(module, input) -> output`, where no known interface fits.
        only: ids of the checks to run; all if empty.
        seed: of all random inputs.
        rounding: whether to fill `Report.rounding`.
        against: the original, a MODEL, whose weights a module of a known family should have.

    Raises:
        UserError: if it cannot be run: no interface fits (with what was tried), or it raises on a legal input.
    """
    settings = Settings(
        kind,
        width,
        heads,
        kv_heads,
        vocab,
        context,
        window,
        causal,
        mask_true,
        values or {},
        call,
        frozenset([only] if isinstance(only, str) else only),
        seed,
        rounding,
        against,
    )
    named = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    found = resolve(target, settings) if isinstance(target, str) else target_of(target, named, settings)
    return check_target(found, settings)


def check_target(target: Target, settings: Settings) -> Report:
    """The report on a target; raises as `check`."""
    family = family_found(target, settings)
    if family is not None:
        return _of_family(target, settings, *family)
    kind, found = _asked_as_kind(target, settings)
    return _report(target, kind.name, settings, found)


def _asked_as_kind(target: Target, settings: Settings) -> tuple[Kind, Found]:
    kind, case = _opened(target, settings)
    found = Found()
    with Attempt() as attempt:
        found = kind.check(case, settings)
    if attempt.error is not None:
        raise UserError(say("check.raises", name=target.name, kind=kind.name, reason=attempt.reason)) from attempt.error
    return kind, found


def _of_family(target: Target, settings: Settings, name: str, family: Found) -> Report:
    """The report on a model of a known family: what its kind is asked, and its parts beside ours, which name a fault by its block."""
    try:
        kind, found = _asked_as_kind(target, settings)
    except UserError as error:
        if all(check.verdict == "skipped" for check in family.checks):
            raise
        # How to wrap it is no advice on what is known: the lines after the first are of that.
        several = "\n" in str(error)
        note = (
            say("families.kind_not_called", name=name)
            if several
            else say("families.kind_raises", name=name, reason=error)
        )
        found = Found(notes=(note,))
    else:
        name = kind.name
    return _report(target, name, settings, found, family)


def _opened(target: Target, settings: Settings) -> tuple[Kind, Any]:
    """The kind, and the target as it is called; of the kinds that it may be, the first that can be called."""
    if settings.kind is not None and settings.kind not in KINDS:
        raise UserError(say("check.no_kind", kind=settings.kind, known=", ".join(KINDS)))
    tried: list[tuple[str, str]] = []
    for name in [settings.kind] if settings.kind else guessed(target):
        kind = KINDS.get(name)
        if kind is None:
            continue
        with Attempt() as attempt:
            return kind, kind.open(target, settings)
        lines = attempt.error.tried if isinstance(attempt.error, NoInterfaceError) else [attempt.reason]
        tried += [(name, line) for line in lines]
        if isinstance(attempt.error, UserError):
            raise attempt.error
    likely = settings.kind or next(iter(guessed(target)), "attention")
    raise UserError(
        say(
            "check.no_interface",
            name=target.name,
            tried=told(tried),
            kind=likely,
            wrapper=wrapper(target, likely),
        )
    )


def _report(target: Target, kind: str, settings: Settings, found: Found, family: Found | None = None) -> Report:
    # One name may stand for several parts of a family's model, each with its block.
    own = family.faults if family is not None else ()
    rest = [fault for fault in ordered(found.faults) if fault.id not in {each.id for each in own}]
    found = found if family is None else family + found
    only = _asked(settings.only, found)
    checks = tuple(each for each in found.checks if not settings.only or each.id in only)
    named = own if any(each in checks and each.verdict == "fail" for each in (family or Found()).checks) else ()
    faults = (*named, *(each for each in rest if not settings.only or each.id in only))
    if settings.only and not checks:
        asked = ", ".join(sorted({each.id for each in found.checks}))
        raise UserError(say("check.only_none", only=", ".join(sorted(settings.only)), kind=kind, asked=asked))
    notes = tuple(dict.fromkeys([*unused(target, kind, settings), *found.notes]))
    return Report(target.name, kind, settings.kind is None, checks, faults, notes, found.sight, found.rounding)


def _asked(only: Collection[str], found: Found) -> set[str]:
    """Which ids are meant: those that were named, or all of their family where one question answers for all ("scale")."""
    ids = {each.id for each in found.checks} | {each.id for each in found.faults}
    families = {each.partition(".")[0] for each in only if each not in ids}
    return {id for id in ids if id in only or id.partition(".")[0] in families}
