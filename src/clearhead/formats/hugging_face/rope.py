"""Rotary positions in config.json, in the newer spelling (`rope_parameters`) and the older (`rope_theta`, `rope_scaling`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from clearhead.formats.fields import Fields
from clearhead.formats.hugging_face.common import unsupported, whole
from clearhead.messages import UserError, say
from clearhead.models.choices import Linear, Llama3, Rotary, Scaling, Unscaled, YaRN
from clearhead.ops.rotary import yarn_attention_factor


class Turns(NamedTuple):
    """What a file says of rotary positions outside the mapping of them, and what holds where the mapping is silent."""

    theta: float
    fraction: float
    context: int
    """The most positions; also those of the training, where no other number says."""


def read_rotary(
    fields: Fields,
    *,
    head_width: int,
    context: int,
    theta: Mapping[str, float],
    fraction: Mapping[str, float],
) -> Rotary:
    """The rotary positions of a configuration that has one kind for all its blocks.

    Args:
        fields: the configuration.
        head_width: d.
        context: the most positions.
        theta: what the field of the base is called outside the mapping, spellings of one thing, and what it is where it is missing.
        fraction: the same for the part of a head that is turned.

    Raises:
        UserError: on a scaling that is not known, or one that no model of ours computes, or two spellings that differ.
    """
    original = whole(fields, "original_max_position_embeddings", context)
    outside = Turns(_spelled(fields, theta), _spelled(fields, fraction), original)
    found = [rotary_of(fields, name, outside) for name in ("rope_scaling", "rope_parameters") if fields.raw(name, None)]
    if len(set(found)) > 1:
        raise unsupported(fields, "rope_scaling")
    rotary = found[0] if found else Rotary(theta=outside.theta, fraction=outside.fraction)
    # Theirs turns an odd number of features and one more, ours an even number.
    count = int(rotary.fraction * head_width)
    if count % 2:
        field, value = ("head_dim", head_width) if rotary.fraction == 1 else (next(iter(fraction)), rotary.fraction)
        raise UserError(
            say("exchange.field_odd", path=fields.source, family=fields.family, field=field, value=value, count=count)
        )
    return rotary


def _spelled(fields: Fields, names: Mapping[str, float]) -> float:
    """The value of a field that has several names; those that are there must agree."""
    values = {name: fields.take(name, float, default) for name, default in names.items()}
    there = [name for name in names if name in fields] or list(names)[:1]
    for name in there[1:]:
        if values[name] != values[there[0]]:
            raise unsupported(fields, name)
    return values[there[0]]


def rotary_of(fields: Fields, name: str, outside: Turns) -> Rotary:
    """The rotary positions that the mapping `name` describes, every entry of it understood.

    Args:
        fields: the configuration.
        name: the field that holds the mapping.
        outside: what holds where it is silent.

    Raises:
        UserError: if it is no mapping, or on an entry that is not understood.
    """
    data = fields.raw(name)
    if not isinstance(data, dict):
        raise UserError(
            say("exchange.field_kind", path=fields.source, field=name, value=repr(data)[:60], wanted="dict")
        )
    inner = Fields({f"{name}.{key}": value for key, value in data.items()}, fields.source, fields.family)
    word = f"{name}.rope_type" if f"{name}.rope_type" in inner else f"{name}.type"
    if "original_max_position_embeddings" in fields:
        inner.neutral(f"{name}.original_max_position_embeddings", outside.context)
    scaling = inner.choose(word, _READERS, "default")(inner, name, outside)
    # The name of older versions, which may stand beside the newer one and say the same.
    inner.neutral(f"{name}.type", inner.data.get(word, "default"))
    rotary = Rotary(
        theta=inner.take(f"{name}.rope_theta", float, outside.theta),
        fraction=inner.take(f"{name}.partial_rotary_factor", float, outside.fraction),
        scaling=scaling,
    )
    inner.done()
    return rotary


def _unscaled(inner: Fields, name: str, outside: Turns) -> Scaling:
    return Unscaled()


def _linear(inner: Fields, name: str, outside: Turns) -> Scaling:
    return Linear(inner.take(f"{name}.factor", float))


def _llama3(inner: Fields, name: str, outside: Turns) -> Scaling:
    return Llama3(
        factor=inner.take(f"{name}.factor", float),
        low=inner.take(f"{name}.low_freq_factor", float),
        high=inner.take(f"{name}.high_freq_factor", float),
        original_context=whole(inner, f"{name}.original_max_position_embeddings", outside.context),
    )


def _yarn(inner: Fields, name: str, outside: Turns) -> Scaling:
    original = whole(inner, f"{name}.original_max_position_embeddings", outside.context)
    factor = inner.take(f"{name}.factor", float)
    inner.neutral(f"{name}.truncate", True)
    found = YaRN(
        factor=factor,
        original_context=original,
        fast=inner.take(f"{name}.beta_fast", float, 32.0),
        slow=inner.take(f"{name}.beta_slow", float, 1.0),
    )
    _must_be_steep(inner, name, factor)
    return found


def _must_be_steep(inner: Fields, name: str, factor: float) -> None:
    """Raise a UserError unless cos and sin are multiplied as the paper does, whichever of three fields says by what."""
    given = inner.take(f"{name}.attention_factor", float, None)
    top = inner.take(f"{name}.mscale", float, None)
    bottom = inner.take(f"{name}.mscale_all_dim", float, None)
    said = given
    if given is None and top and bottom:
        said = _steepness(factor, top) / _steepness(factor, bottom)
    if said is not None and not math.isclose(said, yarn_attention_factor(factor), rel_tol=1e-6):
        raise unsupported(inner, f"{name}.mscale" if given is None else f"{name}.attention_factor")


def _steepness(factor: float, scale: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1.0


_READERS: dict[str, Callable[[Fields, str, Turns], Scaling]] = {
    "default": _unscaled,
    "linear": _linear,
    "llama3": _llama3,
    "yarn": _yarn,
}


def rope_mapping(rotary: Rotary) -> dict[str, Any]:
    """`rope_parameters` of all blocks, or of one kind of them; the part that is turned is left to whoever can say it."""
    return {**_scaling_fields(rotary.scaling), "rope_theta": rotary.theta}


def rope_fields(rotary: Rotary) -> dict[str, Any]:
    """Both spellings: versions before 5 read `rope_theta` and `rope_scaling`, those after it `rope_parameters`."""
    newer = {"rope_parameters": rope_mapping(rotary), "rope_theta": rotary.theta}
    match rotary.scaling:
        case Unscaled():
            return newer
        case Linear(factor=factor):
            # Versions that knew no other scaling insisted on these two entries.
            return {**newer, "rope_scaling": {"type": "linear", "factor": factor}}
    return {**newer, "rope_scaling": _scaling_fields(rotary.scaling)}


def _scaling_fields(scaling: Scaling) -> dict[str, Any]:
    match scaling:
        case Linear(factor=factor):
            return {"rope_type": "linear", "factor": factor}
        case Llama3(factor=factor, low=low, high=high, original_context=context):
            ends = {"low_freq_factor": low, "high_freq_factor": high}
            return {
                "rope_type": "llama3",
                "factor": factor,
                **ends,
                "original_max_position_embeddings": context,
            }
        case YaRN(factor=factor, original_context=context, fast=fast, slow=slow):
            ends = {"beta_fast": fast, "beta_slow": slow}
            return {
                "rope_type": "yarn",
                "factor": factor,
                **ends,
                "original_max_position_embeddings": context,
            }
    return {"rope_type": "default"}
