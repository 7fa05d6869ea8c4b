"""How two configurations differ, in words. Imports without torch."""

from __future__ import annotations

from dataclasses import fields

from clearhead.messages import say
from clearhead.models.choices import Choice
from clearhead.models.config import DecoderConfig
from clearhead.models.cost import cache_elements, flops_per_token, parameters


def explain(first: DecoderConfig, second: DecoderConfig) -> list[str]:
    """A line for each field in which the two differ and what it means, then what the difference costs.

    Args:
        first: the configuration to start from.
        second: the one to compare it with.

    Returns:
        Lines in the user's language; a single one if the two are equal.
    """
    differing = [field.name for field in fields(first) if _value(first, field.name) != _value(second, field.name)]
    if not differing:
        return [say("models.explain.equal")]
    lines = [
        say(
            "models.explain.field",
            field=name,
            first=_shown(_value(first, name)),
            second=_shown(_value(second, name)),
            meaning=say(f"models.explain.of_{name}"),
        )
        for name in differing
    ]
    costs = (
        ("parameters", sum(parameters(first).values()), sum(parameters(second).values())),
        ("flops", sum(flops_per_token(first).values()), sum(flops_per_token(second).values())),
        ("cache", cache_elements(first, 1, 1), cache_elements(second, 1, 1)),
    )
    for kind, one, other in costs:
        what = say(f"models.explain.cost_{kind}")
        lines.append(
            say("models.explain.cost", what=what, first=f"{one:,}", second=f"{other:,}", ratio=f"{other / one:.2f}")
        )
    return lines


def _value(config: DecoderConfig, field: str) -> object:
    """What a field amounts to: a number that follows from others if it was not given is that number."""
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
