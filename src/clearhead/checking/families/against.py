"""The weights of a module, or of a model, held against those of a given original."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from clearhead.checking.common.trial import apart
from clearhead.checking.diff.relations import Shapes, relation
from clearhead.checking.families.known import Known, Ours
from clearhead.checking.families.naming import part_word, place_word
from clearhead.checking.families.parts import component
from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Check, Fault
from clearhead.checking.rounding import UNIT
from clearhead.formats.load import Loaded, load
from clearhead.formats.opened import Config
from clearhead.formats.weights import own_tensors
from clearhead.messages import say

CHECK = "weights.changed"
SHOWN = 4


class Changed(NamedTuple):
    """A tensor that is not the original's.

    Args:
        name: ours, of q, k and v each its own: "blocks.1.attention.qkv.weight (k)".
        text: what became of it.
    """

    name: str
    text: str


def held_against(known: Known, ours: Ours, against: str | Path | Loaded | None) -> Found:
    """Whether a module has the weights of the original; nothing if none is given.

    Args:
        known: the module.
        ours: our model with its weights.
        against: a MODEL, or one that is loaded.

    Raises:
        UserError: if the original cannot be opened.
    """
    if against is None:
        return Found()
    kinds = {tensor.dtype for tensor in known.module.state_dict().values() if tensor.dtype in UNIT}
    kind = max(kinds, key=lambda each: UNIT[each], default=torch.float32)
    return compared(ours.model, ours.config, kind, against)


def compared(model: nn.Module, config: Config, kind: torch.dtype, against: str | Path | Loaded) -> Found:
    """Whether a model of ours has the weights of the original.

    Args:
        model: the one under check.
        config: what it is.
        kind: the number type that its weights were kept in.
        against: a MODEL, or one that is loaded.

    Raises:
        UserError: if the original cannot be opened.
    """
    original = against if isinstance(against, Loaded) else load(against, dtype="float64", device="cpu")
    notes = _configurations(config, original.config)
    mine, theirs = own_tensors(model), own_tensors(original.model)
    changed, rounded = list[Changed](), 0
    count = 0
    for name, one, other in _pieces(theirs, mine, config):
        count += 1
        if one is None or other is None:
            lone = str(original.source) if other is None else say("families.target")
            changed.append(Changed(name, say("families.against_missing", name=lone)))
        elif one.shape != other.shape:
            text = say("families.against_shape", ours=tuple(one.shape), theirs=tuple(other.shape))
            changed.append(Changed(name, text))
        elif not torch.equal(one, other):
            if torch.equal(one.to(kind).double(), other):
                rounded += 1
            else:
                changed.append(Changed(name, _how(one, other, config)))
    if rounded:
        word = str(kind).removeprefix("torch.")
        notes += (say("families.against_rounded", count=rounded, against=original.source, kind=word),)
    return _told(changed, count, original.source, notes)


def _told(changed: list[Changed], count: int, against: Path, notes: tuple[str, ...]) -> Found:
    if not changed:
        return Found((Check(CHECK, "pass", say("families.against_right", count=count, against=against)),), (), notes)
    names = ", ".join(each.name for each in changed[:SHOWN]) + (" ..." if len(changed) > SHOWN else "")
    text = say("families.against_wrong", wrong=len(changed), count=count, against=against, names=names)
    faults = tuple(
        Fault(CHECK, "reproduced", _evidence(each), each.name, say("families.weights_fix")) for each in changed
    )
    return Found((Check(CHECK, "fail", text),), faults, notes)


def _evidence(changed: Changed) -> str:
    stage = changed.name.partition(" ")[0].rpartition(".")[0]
    return say(
        "families.against_found",
        place=place_word([stage]),
        part=part_word(component(stage)),
        name=changed.name,
        reason=changed.text,
    )


def _pieces(
    theirs: Mapping[str, Tensor], mine: Mapping[str, Tensor], config: Config
) -> Iterator[tuple[str, Tensor | None, Tensor | None]]:
    """The original's tensors and mine by name, in float64; those of q, k and v apart."""
    width = config.width_of_head
    sizes = [config.heads * width, config.key_value_heads * width, config.key_value_heads * width]
    for name in dict.fromkeys((*theirs, *mine)):
        one, other = (each[name].detach().double() if name in each else None for each in (theirs, mine))
        fused = ".qkv." in name and one is not None and other is not None and one.shape == other.shape
        if fused and one is not None and other is not None and len(one) == sum(sizes):
            for word, first, second in zip("qkv", torch.split(one, sizes), torch.split(other, sizes), strict=True):
                yield f"{name} ({word})", first, second
        else:
            yield name, one, other


def _how(one: Tensor, other: Tensor, config: Config) -> str:
    """What relates the two, or how far apart they are."""
    found = relation(one, other, Shapes(config.heads, config.key_value_heads, config.width_of_head, config.width))
    if found is not None:
        return say("families.against_related", text=found.text)
    wrong = (one != other).reshape(len(one), -1).any(dim=1)
    gap = f"{apart(one, other):.1e}"
    return say("families.against_changed", gap=gap, rows=int(wrong.sum()), all=len(one))


def _configurations(mine: Config, original: Config) -> tuple[str, ...]:
    """A note of the fields in which the two differ."""
    if type(mine) is not type(original):
        return (say("families.against_config", fields=f"{type(original).__name__}, {type(mine).__name__}"),)
    names = [each.name for each in fields(mine) if getattr(mine, each.name) != getattr(original, each.name)]
    return (say("families.against_config", fields=", ".join(names)),) if names else ()
