"""How two configurations differ, in words. Imports without torch."""

from __future__ import annotations

from dataclasses import fields

from clearhead.messages import say
from clearhead.models.choices import Choice
from clearhead.models.config import StackConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.cost import cache_elements, flops_per_token, parameters


def explain(first: StackConfig, second: StackConfig) -> list[str]:
    """A line for each field in which the two differ and what it means, then what the difference costs.

    Two of different kinds, say an encoder and a decoder, are compared in the fields that both have, and a line before all
    others says so.

    Args:
        first: the configuration to start from.
        second: the one to compare it with.

    Returns:
        Lines in the user's language; a single one if the two are equal.
    """
    shared = {field.name for field in fields(second)}
    differing = [
        field.name
        for field in fields(first)
        if field.name in shared and _value(first, field.name) != _value(second, field.name)
    ]
    lines = [] if type(first) is type(second) else [_kinds(first, second)]
    if not lines and not differing:
        return [say("models.explain.equal")]
    lines += [
        say(
            "models.explain.field",
            field=name,
            first=_shown(_value(first, name)),
            second=_shown(_value(second, name)),
            meaning=say(f"models.explain.of_{name}"),
        )
        for name in differing
    ]
    return lines + _costs(first, second)


def _kinds(first: StackConfig, second: StackConfig) -> str:
    """That the two are of different kinds, and which."""
    one, other = (say(f"models.explain.kind_{type(config).__name__}") for config in (first, second))
    return say("models.explain.kinds", first=one, second=other)


def _costs(first: StackConfig, second: StackConfig) -> list[str]:
    """What either costs, and how many times more the second does; no line for what neither has."""
    pair = any(isinstance(config, EncoderDecoderConfig) for config in (first, second))
    costs = (
        ("parameters", sum(parameters(first).values()), sum(parameters(second).values())),
        (
            "flops_pair" if pair else "flops",
            sum(flops_per_token(first).values()),
            sum(flops_per_token(second).values()),
        ),
        ("cache_pair" if pair else "cache", _cached(first), _cached(second)),
    )
    return [_cost(say(f"models.explain.cost_{kind}"), one, other) for kind, one, other in costs if one or other]


def _cost(what: str, one: int, other: int) -> str:
    if not one:
        return say("models.explain.none_before", what=what, second=f"{other:,}")
    return say("models.explain.cost", what=what, first=f"{one:,}", second=f"{other:,}", ratio=f"{other / one:.2f}")


def _cached(config: StackConfig) -> int:
    """Numbers in the KV cache for one token of the own sequence; a token of a source has as many."""
    return cache_elements(config, 1, 1, source=0)


def _value(config: StackConfig, field: str) -> object:
    """What a field amounts to: a number that follows from others if it was not given is that number."""
    match config, field:
        case EncoderDecoderConfig(), "encoder_layers":
            return config.encoder.layers
        case EncoderDecoderConfig(), "source_context":
            return config.encoder.context
    property_of = {"kv_heads": "key_value_heads", "head_width": "width_of_head", "feedforward_width": "hidden"}
    return getattr(config, property_of.get(field, field))


def _shown(value: object) -> str:
    """A value as a person would write it: a choice by its name and what it was given."""
    if value is None:
        return say("models.explain.none")
    if isinstance(value, bool):
        return say("models.explain.yes" if value else "models.explain.no")
    if isinstance(value, Choice):
        return repr(value).removesuffix("()")
    if isinstance(value, tuple):
        return "(" + ", ".join(_shown(item) for item in value) + ")"
    return f"{value:,}" if isinstance(value, int) else str(value)
