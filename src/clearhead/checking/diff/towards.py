"""What two models of ours are known to differ in: fields of their configurations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

from clearhead.checking.diff.variation import Variation
from clearhead.checking.diff.variations import variations
from clearhead.messages import UserError, say
from clearhead.models.choices import Choice
from clearhead.models.config import StackConfig

IDS: Mapping[str, str] = {
    "activation": "activation.variant",
    "norm": "norm.kind",
    "norm.eps": "norm.eps-value",
    "norm.offset": "norm.offset",
    "norm.bias": "norm.shift",
    "block": "norm.placement",
    "block.shared": "norm.placement",
    "positions": "position.kind",
    "positions.theta": "rotary.base",
    "positions.fraction": "rotary.partial",
    "positions.interleaved": "rotary.pairing",
    "positions.scaling": "rotary.scaling",
    "positions.base": "sinusoid.frequency",
    "positions.halves": "sinusoid.frequency",
    "attention_scale": "scale.value",
    "softcap": "attention.softcap",
    "sinks": "attention.sinks",
    "qk_norm": "attention.qk-norm",
    "scale_embedding": "embedding.scale",
    "embedding_norm": "embedding.norm",
    "tied": "head.tied",
    "scale_head": "head.scale",
    "qkv_bias": "projection.bias",
    "bias": "projection.bias",
    "output_bias": "projection.bias",
    "head_bias": "projection.bias",
    "window": "attention.window",
    "cycle": "attention.window",
}
"""What a difference of a field is called; "config.FIELD" where it is not here."""

IDLE = ("kernel", "dropout")
"""Fields that change no number of an evaluation."""


SIZES = ("vocab", "layers", "encoder_layers", "width", "heads", "kv_heads", "head_width", "feedforward_width")
"""Fields without which no tensor of one model has a place in the other."""


DERIVED: Mapping[str, str] = {
    "kv_heads": "key_value_heads",
    "head_width": "width_of_head",
    "feedforward_width": "hidden",
}
"""Where a size is found that need not be given."""


class Differing(NamedTuple):
    """A field in which two configurations differ.

    Args:
        name: "norm.eps".
        first: its value in the first.
        second: in the second.
    """

    name: str
    first: Any
    second: Any

    def into(self, config: StackConfig) -> StackConfig | None:
        """A configuration with the second's value, None if it cannot have that."""
        name, _, inner = self.name.partition(".")
        try:
            value = replace(getattr(config, name), **{inner: self.second}) if inner else self.second
            return replace(config, **{name: value})
        except UserError:
            return None


def differing(first: StackConfig, second: StackConfig) -> list[Differing]:
    """The fields in which two configurations differ, those of a choice one by one if both chose the same."""
    shared = {each.name for each in fields(second)}
    return [
        found
        for each in fields(first)
        if each.name in shared
        for found in _of_values(each.name, getattr(first, each.name), getattr(second, each.name))
    ]


def _of_values(name: str, first: Any, second: Any) -> Iterator[Differing]:
    if isinstance(first, Choice) and type(first) is type(second):
        # Every choice is a dataclass, its families are not.
        inner: Any = type(first)
        for each in fields(inner):
            one, other = getattr(first, each.name), getattr(second, each.name)
            if one != other:
                yield Differing(f"{name}.{each.name}", one, other)
    elif first != second:
        yield Differing(name, first, second)


def sizes_apart(first: StackConfig, second: StackConfig) -> str:
    """In words, the sizes in which two configurations differ; "" if there are none.

    Models of other sizes, or of another architecture, have no tensor in common: no change of one leads to the other.
    """
    if type(first) is not type(second):
        return say("diff_ours.architectures", a=type(first).__name__, b=type(second).__name__)
    found = [(each.name, *_sizes(each.name, first, second)) for each in differing(first, second) if each.name in SIZES]
    return ", ".join(say("diff_ours.size", field=name, a=one, b=other) for name, one, other in found if one != other)


def _sizes(name: str, first: StackConfig, second: StackConfig) -> tuple[int, int]:
    """A size of both; what was left out is what the others make of it."""
    derived = DERIVED.get(name, name)
    one, other = (getattr(each, derived, getattr(each, name)) for each in (first, second))
    return one, other


def towards(config: StackConfig, other: StackConfig) -> Iterator[Variation]:
    """The changes of the one configuration, a field at a time, that lead to the other.

    Args:
        config: the one that is changed.
        other: the one that it is changed to.
    """
    known = {each.config: each for each in reversed(list(variations(config))) if each.change is None}
    for each in differing(config, other):
        if each.name in IDLE:
            continue
        after = each.into(config)
        if after is not None:
            yield known.get(after) or _plainly(each, after)


def _plainly(found: Differing, after: StackConfig) -> Variation:
    """A change that no variation makes, said with the field's name."""
    id = IDS.get(found.name, f"config.{found.name}")
    one, other = (say("variations.field", field=found.name, value=shown(x)) for x in (found.first, found.second))
    return Variation(id, after, one, other)


def shown(value: object) -> str:
    """A value of a field as a person would write it."""
    return repr(value).removesuffix("()") if isinstance(value, Choice) else str(value)
