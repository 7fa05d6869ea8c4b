"""Mistral, Qwen2 and Qwen3: Llamas whose blocks may look through a window."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clearhead.formats.fields import Fields
from clearhead.formats.hugging_face.common import simplest, unsupported, whole, whole_or_none
from clearhead.formats.hugging_face.family import Family
from clearhead.formats.hugging_face.llama import UNUSED, attention_biases, read_shared, rows, write_shared
from clearhead.messages import UserError, say
from clearhead.models.config import DecoderConfig, Sight

FULL, SLIDING = "full_attention", "sliding_attention"


def read_mistral(fields: Fields) -> DecoderConfig:
    """The configuration that a config.json of a Mistral describes.

    Raises:
        UserError: if a field is missing, of the wrong kind, or asks for what no model of ours does.
    """
    config = read_shared(fields, kv_heads=8, head_width=None, context=131_072)
    return simplest(replace(config, window=_window(fields)))


def write_mistral(config: DecoderConfig) -> dict[str, Any]:
    """The fields of config.json of a Mistral; without a window, null says so."""
    return {**write_shared(config), "sliding_window": config.window}


def read_qwen2(fields: Fields) -> DecoderConfig:
    """The configuration that a config.json of a Qwen2 describes; q, k and v have biases, nothing else has.

    Raises:
        UserError: if a field is missing, of the wrong kind, or asks for what no model of ours does.
    """
    fields.neutral("use_mrope", False)
    config = read_shared(fields, kv_heads=32, head_width=None, context=32_768)
    return simplest(replace(config, cycle=read_looks(fields, config.layers), qkv_bias=True))


def write_qwen2(config: DecoderConfig) -> dict[str, Any]:
    """The fields of config.json of a Qwen2."""
    return {**write_shared(config), **write_looks(config)}


def with_qkv_biases(config: DecoderConfig) -> DecoderConfig:
    """The same model with biases of q, k and v."""
    return simplest(replace(config, qkv_bias=True))


def read_qwen3(fields: Fields) -> DecoderConfig:
    """The configuration that a config.json of a Qwen3 describes; queries and keys are normalised.

    Raises:
        UserError: if a field is missing, of the wrong kind, or asks for what no model of ours does.
    """
    attention = fields.take("attention_bias", bool, False)
    config = read_shared(fields, kv_heads=32, head_width=128, context=32_768)
    looks = read_looks(fields, config.layers)
    return simplest(replace(config, cycle=looks, qk_norm=True, qkv_bias=attention, output_bias=attention))


def write_qwen3(config: DecoderConfig) -> dict[str, Any]:
    """The fields of config.json of a Qwen3."""
    return {**write_shared(config), **write_looks(config), "attention_bias": config.qkv_bias}


def _window(fields: Fields) -> int | None:
    """How many keys a query sees; what is missing is 4096, and null is all of them."""
    return whole_or_none(fields, "sliding_window", None if "sliding_window" in fields.data else 4096)


def read_looks(fields: Fields, layers: int) -> tuple[Sight, ...]:
    """How each block looks: by `layer_types`, or where those are not given, through the window from one block on.

    Raises:
        UserError: if a block slides and there is no window, or is of a kind that is not known.
    """
    window = _window(fields) if fields.take("use_sliding_window", bool, False) else None
    fields.ignore("sliding_window")
    first = whole(fields, "max_window_layers", 28)
    usual = [FULL if window is None or index < first else SLIDING for index in range(layers)]
    kinds = fields.raw("layer_types", usual)
    if not isinstance(kinds, list) or len(kinds) != layers:
        wanted = f"list of {layers}"
        raise UserError(
            say(
                "exchange.field_kind",
                path=fields.source,
                field="layer_types",
                value=repr(kinds)[:60],
                wanted=wanted,
            )
        )
    if any(kind not in (FULL, SLIDING) for kind in kinds) or (SLIDING in kinds and window is None):
        raise unsupported(fields, "layer_types")
    return tuple(Sight(window=window if kind == SLIDING else None) for kind in kinds)


def write_looks(config: DecoderConfig) -> dict[str, Any]:
    """How each block looks, for versions that read `layer_types` and for those that count blocks."""
    windows = {sight.window for sight in config.sights if sight.window is not None}
    if len(windows) > 1 or any(sight.positions is not None for sight in config.sights):
        return {}
    kinds = [FULL if sight.window is None else SLIDING for sight in config.sights]
    first = kinds.index(SLIDING) if SLIDING in kinds else config.layers
    return {
        "use_sliding_window": bool(windows),
        "sliding_window": next(iter(windows), None),
        "max_window_layers": first,
        "layer_types": kinds,
    }


MISTRAL = Family(
    "mistral",
    ("MistralForCausalLM", "MistralModel"),
    read_mistral,
    write_mistral,
    rows,
    simplest,
    base="model.",
    unused=UNUSED,
)
QWEN2 = Family(
    "qwen2",
    ("Qwen2ForCausalLM", "Qwen2Model"),
    read_qwen2,
    write_qwen2,
    rows,
    with_qkv_biases,
    base="model.",
    unused=UNUSED,
)
QWEN3 = Family(
    "qwen3",
    ("Qwen3ForCausalLM", "Qwen3Model"),
    read_qwen3,
    write_qwen3,
    rows,
    attention_biases,
    base="model.",
    unused=UNUSED,
)
