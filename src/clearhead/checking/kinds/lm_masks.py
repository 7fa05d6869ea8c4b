"""The padding mask of a language model: its shape and values are found by hiding a token and seeing whether it is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import torch

from clearhead.checking.kinds.lm_case import LmCase, logits_of
from clearhead.checking.kinds.masks_found import MaskUse
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt

DROPS = r".*(padding_mask|pad_mask|is_pad|is_padding)|pad(ding)?|ignore.*"
LENGTH, HIDDEN = 7, 2


def mask_of(case: LmCase, settings: Settings) -> MaskUse | None:
    """The mask, with what was found of it; None if the model takes none, or none in a known shape."""
    name = case.style.name("mask")
    if name is None or case.case.target.signature.parameters.get(name) is None:
        return None
    taken: list[MaskUse] = []
    for use in _forms(name, settings):
        with Attempt(), torch.no_grad():
            found = _judged(replace(case, mask=use))
            if found.vanishes:
                return replace(found, known=True)
            taken.append(found)
    acting = [use for use in taken if use.acts]
    plain = [use for use in taken if use.keeps == (re.fullmatch(DROPS, name.lower()) is None)]
    return next(iter(acting or plain or taken), None)


def _forms(name: str, settings: Settings) -> Iterator[MaskUse]:
    drops = re.fullmatch(DROPS, name.lower()) is not None
    first = not drops if settings.mask_true is None else settings.mask_true == "keep"
    for keeps in (first, not first) if settings.mask_true is None else (first,):
        yield MaskUse(name, "BS", "long", keeps)
        yield MaskUse(name, "BS", "bool", keeps)
        yield MaskUse(name, "BS", "float", keeps)
    for keeps in (first, not first):
        yield MaskUse(name, "B11S", "bool", keeps)
    yield MaskUse(name, "B11S", "added", True)


def _judged(case: LmCase) -> MaskUse:
    """Whether hiding a token changes anything, and whether what the hidden token is then matters."""
    assert case.mask is not None
    ids = case.ids(2, LENGTH)
    other = ids.clone()
    other[:, HIDDEN] = (ids[:, HIDDEN] + 1) % case.vocab
    keep = torch.ones_like(ids, dtype=torch.bool)
    hidden = keep.clone()
    hidden[:, HIDDEN] = False
    module = case.case.ready()
    seen = logits_of(case, module, ids, keep=keep)[:, HIDDEN + 1 :]
    plain = logits_of(case, module, ids)[:, HIDDEN + 1 :]
    without = logits_of(case, module, ids, keep=hidden)[:, HIDDEN + 1 :]
    changed = logits_of(case, module, other, keep=hidden)[:, HIDDEN + 1 :]
    before = logits_of(case, module, other)[:, HIDDEN + 1 :]
    size = plain.std().item()
    acts = bool((without - seen).abs().max() > case.rounding * size)
    # The other meaning would hide everything else: what the token is would matter all the more.
    gone = bool((changed - without).abs().max() <= case.rounding * size)
    matters = bool((before - plain).abs().max() > 10 * case.rounding * size)
    return replace(case.mask, acts=acts, vanishes=acts and gone and matters)
