"""Which published family somebody's module is of, and our own model with its weights."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.formats.assemble import assemble
from clearhead.formats.hugging_face.families import FAMILIES
from clearhead.formats.hugging_face.family import Family
from clearhead.formats.hugging_face.folder import config_in, open_held
from clearhead.formats.opened import Config
from clearhead.formats.rows import Row
from clearhead.formats.tensors import HeldTensors
from clearhead.formats.weights import own_tensors
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig

RENAMED = {"embed_out.weight": "lm_head.weight"}
"""Names that files keep, and what newer code calls the tensor in memory."""

HEADS = ("head.weight", "head.output.weight", "decoder.head.weight")
"""What our models call the matrix that gives logits."""

FIRST = {"head.weight": "embedding.weight", "head.output.weight": "embedding.weight"}


@dataclass(frozen=True, eq=False)
class Known:
    """A module of a published family.

    Args:
        module: the module as its author left it.
        family: what `formats` knows of the family.
        home: the class of the family that it is, or is derived from.
    """

    module: nn.Module
    family: Family
    home: type

    @property
    def data(self) -> dict[str, Any]:
        """The fields of its configuration, as a file would have them."""
        config: Any = self.module.config
        fields: dict[str, Any] = json.loads(json.dumps(config.to_dict(), default=str))
        return {**fields, "architectures": [self.home.__name__]}


@dataclass(frozen=True, eq=False)
class Ours:
    """Our own model with their weights, in float64.

    Args:
        model: in evaluation mode.
        config: what it is.
        rows: which tensors of theirs each of ours is made of.
        missing: names of biases of the family that the module does not have; ours has zeros there.
        further: parameters that nothing of the family asks for.
        untied: the names of a head and an embedding that should be one tensor and are two; empty if they are as they should be.
    """

    model: nn.Module
    config: Config
    rows: tuple[Row, ...]
    missing: tuple[str, ...]
    further: tuple[str, ...]
    untied: tuple[str, ...]


def recognised(module: object) -> Known | None:
    """What family a module is of; None if of none that is mapped.

    It carries a `config` with a `model_type` that is mapped, and is of one of the family's classes, or of one derived from it.
    Nothing is imported for it: names alone tell.
    """
    config = getattr(module, "config", None)
    if not isinstance(module, nn.Module) or not callable(getattr(config, "to_dict", None)):
        return None
    name = getattr(config, "model_type", None)
    for family in FAMILIES:
        for kind in type(module).__mro__ if family.name == name else ():
            if kind.__name__ in family.architectures:
                return Known(module, family, kind)
    return None


def ours_of(known: Known) -> Ours:
    """Our model with the weights of theirs.

    Raises:
        UserError: if its configuration says what no model of ours does, a tensor is missing, or has another shape.
    """
    source, data = Path(known.home.__name__), known.data
    state = {name: tensor.detach() for name, tensor in known.module.state_dict().items()}
    config = config_in(data, source)
    names = found_names(known, config, state)
    held = {name: state[there] for name, there in names.items()}
    missing = _without_biases(known, config, held)
    tied = _pair(known.family.rows(config), held) if getattr(config, "tied", False) else ()
    untied = tied if tied and not torch.equal(held[tied[0]], held[tied[1]]) else ()
    for head in () if untied else tied[:1]:
        del held[head]
    opened = open_held(data, HeldTensors(source, held), source)
    if untied:
        opened = replace(opened, config=replace(opened.config, tied=False))
    elif (
        isinstance(opened.config, DecoderConfig)
        and not opened.config.tied
        and "head.weight" not in _filled(opened.rows, held)
    ):
        # A bare model gives features; the head that ours has then is the embedding's.
        opened = replace(opened, config=replace(opened.config, tied=True))
    opened = replace(opened, rows=tuple(known.family.rows(opened.config)))
    model, _ = assemble(opened, torch.float64, "cpu")
    further = _further(known, state, names.values())
    return Ours(model.requires_grad_(False), opened.config, opened.rows, missing, further, untied)


def found_names(known: Known, config: Config, there: Collection[str]) -> dict[str, str]:
    """What each tensor of the family is called in the module: a wrapper puts further words into a name, a bare model leaves the first out.

    Args:
        known: the module.
        config: what the family reads in its configuration.
        there: the names that it has.
    """
    wanted = dict.fromkeys(part.name for row in known.family.rows(config) for part in row.parts)
    exact = {name: _as_is(name, known.family.base, there) for name in wanted}
    taken = {name for name in exact.values() if name}
    rest = [(name, name.split(".")) for name in there if name not in taken]
    found = {}
    for name, same in exact.items():
        own = same or _wrapped(name, known.family.base, rest)
        if own:
            found[name] = own
    return found


def place(path: str, base: str, there: Iterable[str]) -> str | None:
    """The path in the module of what the family has at this one, wrapped or not; None if there is nothing.

    Args:
        path: "transformer.h.3.attn.c_proj".
        base: what a bare model leaves out, "transformer.".
        there: the paths of all modules.
    """
    names = list(there)
    return _as_is(path, base, names) or _wrapped(path, base, [(name, name.split(".")) for name in names])


def _as_is(name: str, base: str, there: Collection[str]) -> str:
    short = name.removeprefix(base) if base else name
    return next((each for each in (name, RENAMED.get(name, name), short) if each in there), "")


def _wrapped(name: str, base: str, there: Iterable[tuple[str, list[str]]]) -> str:
    """The shortest name that has all words of this one in their order, the last at the end."""
    for words in dict.fromkeys((tuple(name.split(".")), tuple(name.removeprefix(base or name + ".").split(".")))):
        found = [each for each, longer in there if longer[-1] == words[-1] and _holds(longer, words)]
        if found:
            return min(found, key=lambda each: (each.count("."), each))
    return ""


def _holds(longer: list[str], words: tuple[str, ...]) -> bool:
    left = iter(longer)
    return all(word in left for word in words)


def _without_biases(known: Known, config: Config, held: dict[str, Tensor]) -> tuple[str, ...]:
    """Biases that the family has and the module has not: `held` gets zeros for them, which do nothing."""
    shapes = own_tensors(build(config, device="meta"))
    missing = []
    for row in known.family.rows(config):
        absent = [part.name for part in row.parts if part.name not in held and part.name.endswith(".bias")]
        if absent and row.ours in shapes:
            zeros = row.split(torch.zeros(shapes[row.ours].shape))
            held.update({name: zeros[name] for name in absent})
            missing += absent
    return tuple(missing)


def _pair(rows: Iterable[Row], held: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Their names of the head and of the embedding, if both are there."""
    parts = {row.ours: row.parts[0].name for row in rows}
    for head in HEADS:
        embedding = FIRST.get(head, "encoder.embedding.weight")
        if parts.get(head) in held and parts.get(embedding) in held:
            return parts[head], parts[embedding]
    return ()


def _filled(rows: Iterable[Row], held: Mapping[str, Tensor]) -> set[str]:
    return {row.ours for row in rows if all(part.name in held for part in row.parts)}


def _further(known: Known, state: Mapping[str, Tensor], taken: Iterable[str]) -> tuple[str, ...]:
    """Parameters that no tensor of ours is made of, but for copies of those that are."""
    parameters = dict(known.module.named_parameters(remove_duplicate=False))
    used = {*taken}
    shared = {id(parameters[name]) for name in used if name in parameters}
    names = [name for name, each in parameters.items() if name not in used and id(each) not in shared]
    quiet = ("pooler.", "cls.seq_relationship.")
    return tuple(name for name in names if name in state and not any(word in name for word in quiet))
