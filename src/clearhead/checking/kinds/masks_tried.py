"""Finding by trial how a module takes its masks: the shape and type it takes, and which value makes a key vanish."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from clearhead.checking.kinds.claimed import adds, mask_says, words_of_mask
from clearhead.checking.kinds.masks_found import MaskUse, Shape, Values
from clearhead.checking.kinds.seeing import changed, moved, ready, seen_above, size_of
from clearhead.checking.kinds.sequence_case import SequenceCase, run
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.watch import watched

SHAPES: tuple[Shape, ...] = ("BS", "B11S", "B1S", "B1TS", "BTS", "TS")
VALUES: tuple[Values, ...] = ("bool", "long", "float", "added")
HIDDEN = 1
"""The key that is hidden in trials; not the first, or a causal row would have nothing to see."""


def masks_of(case: SequenceCase, settings: Settings) -> tuple[MaskUse, ...]:
    """How each mask of the module is given, those of keys before those of pairs."""
    found = [use for name in case.style.names("mask") if (use := _use(case, settings, name)) is not None]
    return tuple(sorted(found, key=lambda use: (not use.acts, use.of_pairs)))


def _use(case: SequenceCase, settings: Settings, name: str) -> MaskUse | None:
    """The first way of giving a mask under which a hidden key vanishes; else one that changes something; else one that is taken."""
    acting: list[MaskUse] = []
    taken: list[MaskUse] = []
    said = _said(case, settings, name)
    for use in _candidates(name, True if said is None else said):
        found = _tried(case, use, said)
        if found is None:
            continue
        if found.vanishes:
            number = _as_number(case, found, acting)
            return number or replace(found, pairs_too=found.of_pairs or _takes_pairs(case, found))
        (acting if found.acts else taken).append(found)
    return next(iter(acting + taken), None)


def _takes_pairs(case: SequenceCase, use: MaskUse) -> bool:
    """Whether a mask of pairs is taken in place of one of keys."""
    shape: dict[Shape, Shape] = {"BS": "BTS", "B11S": "B1TS", "B1S": "BTS"}
    if use.shape not in shape:
        return False
    found = _tried(case, replace(use, shape=shape[use.shape]), None)
    return found is not None and found.vanishes


def _as_number(case: SequenceCase, added: MaskUse, acting: list[MaskUse]) -> MaskUse | None:
    """The same mask of True and False, if that is what the code asks for though it adds it to the scores."""
    same = next((use for use in acting if use.shape == added.shape and use.values != "added"), None)
    if added.values != "added" or same is None or adds(case.case.target):
        return None
    said = words_of_mask(case.case.target, added.name) is not None
    return same if said or added.shape == "BS" or _converted(case, same) else None


def _converted(case: SequenceCase, use: MaskUse) -> bool:
    """Whether the code itself makes numbers of a mask of True and False."""
    length = case.length(5)
    x, keep = case.inputs(2, length, 11), torch.ones(2, length, dtype=torch.bool)
    keep[:, HIDDEN] = False
    with Attempt(), torch.no_grad():
        module = ready(case)
        given = replace(use, values="bool")
        record = watched(
            module if isinstance(module, nn.Module) else None, lambda: run(case, module, x, keep, use=given)
        )
        firsts = [op.argument(0, "input") for op in record.named("to", "float", "double", "type_as", "type", "half")]
        return any(isinstance(first, Tensor) and _is_mask(first, length) for first in firsts)
    return False


def _is_mask(value: Tensor, length: int) -> bool:
    """Whether it tells the hidden key from all others, and nothing else."""
    if value.dtype != torch.bool or value.dim() == 0 or value.shape[-1] != length or not value.numel():
        return False
    flat = value.reshape(-1, length)
    others = torch.cat([flat[:, :HIDDEN], flat[:, HIDDEN + 1 :]], -1)
    return bool((others == others[0, 0]).all()) and bool((flat[:, HIDDEN] != others[0, 0]).all())


def _said(case: SequenceCase, settings: Settings, name: str) -> bool | None:
    """What True in a mask is said to mean, by the user or by the code."""
    if settings.mask_true is not None:
        return settings.mask_true == "keep"
    return mask_says(case.case.target, name)


def _candidates(name: str, keeps: bool) -> Iterator[MaskUse]:
    for shape in SHAPES:
        for values in VALUES:
            yield MaskUse(name, shape, values, keeps)


@torch.no_grad()
def _tried(case: SequenceCase, use: MaskUse, said: bool | None) -> MaskUse | None:
    """What came of giving a mask in this way; None if the module does not take it."""
    length = case.length(5)
    rows = 3 if case.heads != 3 else 7
    x = case.inputs(rows, length, 11)
    keep = torch.ones(rows, length, dtype=torch.bool)
    keep[:, HIDDEN] = False
    with Attempt():
        module = ready(case)
        outs = [
            run(case, module, x, marks, use=replace(use, keeps=keeps)) for keeps in (True, False) for marks in (keep,)
        ]
        plain = [run(case, module, x, torch.ones_like(keep), use=replace(use, keeps=keeps)) for keeps in (True, False)]
        if any(out.dim() != 3 or out.shape[:2] != (rows, length) for out in (*outs, *plain)):
            return None
        if any(bool(out.isnan().all()) for out in (outs[0], plain[0])) and use.values == "added":
            return None
        acts = any(bool((moved(out, plain[0])).max() > seen_above(case) * size_of(plain[0])) for out in outs)
        order = (True, False) if said is not False else (False, True)
        for keeps in order:
            if _vanishes(case, replace(use, keeps=keeps), x, keep):
                return replace(use, keeps=keeps, known=True, acts=True, vanishes=True)
        return replace(use, acts=acts)
    return None


def _vanishes(case: SequenceCase, use: MaskUse, x: Tensor, keep: Tensor) -> bool:
    """Whether the hidden key, and it alone, has no influence on the later queries."""
    module = ready(case)
    base = run(case, module, x, keep, use=use)
    length = x.shape[1]

    def influence(position: int) -> float:
        out = run(case, module, changed(case, x, position), keep, use=use)
        return float(moved(base, out)[:, max(position, HIDDEN) + 1 :].max()) / size_of(base)

    above = seen_above(case)
    if not bool(base[:, HIDDEN + 1 :].isfinite().all()):
        return False
    others = [influence(position) for position in (0, HIDDEN + 1) if position < length - 1]
    return influence(HIDDEN) <= above < max(others)
