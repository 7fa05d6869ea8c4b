"""Gemma 3, its text model: norms around each branch, blocks with a window and a base of their own between blocks that see all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeGuard

from clearhead.formats.fields import Fields
from clearhead.formats.hugging_face.common import (
    GATED,
    decoder_alone,
    dropout_of,
    layers_of,
    must_divide,
    said,
    simplest,
    spelling,
    unsupported,
    whole,
)
from clearhead.formats.hugging_face.family import Family
from clearhead.formats.hugging_face.llama import DROPOUTS, UNUSED
from clearhead.formats.hugging_face.llama import rows as llama_rows
from clearhead.formats.hugging_face.rope import Turns, rope_mapping, rotary_of
from clearhead.formats.rows import Part, Row
from clearhead.messages import UserError, say
from clearhead.models.choices import AroundNorm, Linear, Positions, RMSNorm, Rotary, Unscaled
from clearhead.models.config import DecoderConfig, Sight

FULL, SLIDING = "full_attention", "sliding_attention"
OUTSIDE = {FULL: ("rope_theta", 1_000_000.0), SLIDING: ("rope_local_base_freq", 10_000.0)}
"""What older files call the base of each kind of block, and what it is where it is missing."""
PATTERN = 6
"""Every sixth block sees all, where a file does not say."""


def read(fields: Fields) -> DecoderConfig:
    """The configuration that a config.json describes.

    Raises:
        UserError: if a field is missing, of the wrong kind, or asks for what no model of ours does.
    """
    decoder_alone(fields)
    fields.ignore("cache_implementation")
    fields.neutral("use_bidirectional_attention", False)
    fields.neutral("final_logit_softcapping")
    # Their code for Gemma 3 reads this field and does not use it: what a file means by it, nobody can say.
    fields.neutral("attn_logit_softcapping")
    attention = fields.take("attention_bias", bool, False)
    config = DecoderConfig(
        vocab=whole(fields, "vocab_size", 262_208),
        layers=layers_of(fields, "num_hidden_layers"),
        heads=whole(fields, "num_attention_heads"),
        kv_heads=whole(fields, "num_key_value_heads", 4),
        width=whole(fields, "hidden_size"),
        head_width=whole(fields, "head_dim", 256),
        feedforward_width=whole(fields, "intermediate_size"),
        context=whole(fields, "max_position_embeddings", 131_072),
        dropout=dropout_of(fields, DROPOUTS),
        activation=fields.choose("hidden_activation", GATED, "gelu_pytorch_tanh"),
        norm=RMSNorm(eps=fields.take("rms_norm_eps", float, 1e-6), offset=True),
        block=AroundNorm(),
        positions=_rotary(fields, FULL),
        attention_scale=_scale(fields),
        qk_norm=True,
        scale_embedding=True,
        tied=fields.take("tie_word_embeddings", bool, True),
        qkv_bias=attention,
        output_bias=attention,
    )
    must_divide(fields, "num_attention_heads", "hidden_size")
    return _looking(config, _sights(fields, config.layers, _rotary(fields, SLIDING)))


def _scale(fields: Fields) -> float:
    scalar = fields.take("query_pre_attn_scalar", float, 256.0)
    if scalar <= 0:
        raise unsupported(fields, "query_pre_attn_scalar")
    return float(scalar**-0.5)


def _rotary(fields: Fields, kind: str) -> Rotary:
    """The rotary positions of one kind of block, in either spelling, or in both where they agree.

    Older files have one scaling, and mean the blocks that see all.
    """
    name, default = OUTSIDE[kind]
    outside = Turns(fields.take(name, float, default), 1.0, whole(fields, "max_position_embeddings", 131_072))
    older = Rotary(theta=outside.theta)
    if kind == FULL and fields.raw("rope_scaling", None):
        older = rotary_of(fields, "rope_scaling", outside)
    nested = fields.raw("rope_parameters", {})
    if not isinstance(nested, dict) or set(nested) - {FULL, SLIDING}:
        raise unsupported(fields, "rope_parameters")
    if not nested.get(kind):
        return older
    inner = Fields({f"rope_parameters.{kind}": nested[kind]}, fields.source, fields.family)
    newer = rotary_of(inner, f"rope_parameters.{kind}", outside)
    scaled_twice = kind == FULL and "rope_scaling" in fields and newer.scaling != older.scaling
    if newer.fraction != 1 or scaled_twice or (name in fields and newer.theta != older.theta):
        raise unsupported(fields, "rope_parameters")
    return newer


def _sights(fields: Fields, layers: int, local: Rotary) -> tuple[Sight, ...]:
    """How each block looks: by `layer_types`, or one in so many sees all."""
    pattern = whole(fields, "sliding_window_pattern", whole(fields, "_sliding_window_pattern", PATTERN))
    if pattern < 1:
        raise unsupported(fields, "sliding_window_pattern")
    usual = [SLIDING if (index + 1) % pattern else FULL for index in range(layers)]
    kinds = fields.raw("layer_types", usual)
    if not isinstance(kinds, list) or len(kinds) != layers or any(kind not in (FULL, SLIDING) for kind in kinds):
        wanted = f"list of {layers}: {SLIDING}, {FULL}"
        value = repr(kinds)[:60]
        raise UserError(say("exchange.field_kind", path=fields.source, field="layer_types", value=value, wanted=wanted))
    window = whole(fields, "sliding_window", 4096)
    if SLIDING in kinds and fields.data.get("sliding_window", window) is None:
        raise unsupported(fields, "sliding_window")
    return tuple(Sight(window, local) if kind == SLIDING else Sight() for kind in kinds)


def _looking(config: DecoderConfig, sights: tuple[Sight, ...]) -> DecoderConfig:
    """The model whose blocks look like this, in its simplest form."""
    if len(set(sights)) == 1:
        positions = config.positions_of(sights[0])
        return simplest(replace(config, positions=positions, window=sights[0].window, cycle=()))
    own = tuple(replace(each, positions=None) if each.positions == config.positions else each for each in sights)
    return simplest(replace(config, window=None, cycle=own))


def write(config: DecoderConfig) -> dict[str, Any]:
    """The fields of config.json, rotary positions and kinds of blocks in both spellings."""
    norm = config.norm
    return said(
        {
            "vocab_size": config.vocab,
            "num_hidden_layers": config.layers,
            "num_attention_heads": config.heads,
            "num_key_value_heads": config.key_value_heads,
            "hidden_size": config.width,
            "head_dim": config.width_of_head,
            "intermediate_size": config.hidden,
            "max_position_embeddings": config.context,
            **dict.fromkeys(DROPOUTS, config.dropout),
            "hidden_activation": spelling(config.activation, GATED, first="gelu_pytorch_tanh"),
            "rms_norm_eps": norm.eps if isinstance(norm, RMSNorm) else None,
            "query_pre_attn_scalar": _scalar(config),
            "attention_bias": config.qkv_bias,
            "tie_word_embeddings": config.tied,
            **_looks(config),
        }
    )


def _scalar(config: DecoderConfig) -> int | None:
    """The whole number whose root divides the scores, if it is one: their class takes no other."""
    scale = config.width_of_head**-0.5 if config.attention_scale is None else config.attention_scale
    scalar = round(scale**-2)
    return scalar if scalar > 0 and scalar**-0.5 == scale else None


def _looks(config: DecoderConfig) -> dict[str, Any]:
    """Windows and rotary positions, if blocks are of two kinds at most, and those without a window turn as the model does."""
    sliding = {(each.window, config.positions_of(each)) for each in config.sights if each.window is not None}
    if len(sliding) > 1 or any(each.window is None and each.positions is not None for each in config.sights):
        return {}
    window, local = next(iter(sliding), (None, config.positions))
    if not (_can_say(config.positions) and _can_say(local)):
        return {}
    scaling = config.positions.scaling
    return {
        "layer_types": [FULL if each.window is None else SLIDING for each in config.sights],
        "sliding_window": window,
        "rope_parameters": {FULL: rope_mapping(config.positions), SLIDING: rope_mapping(local)},
        "rope_theta": config.positions.theta,
        "rope_local_base_freq": local.theta,
        "rope_scaling": {"rope_type": "linear", "factor": scaling.factor} if isinstance(scaling, Linear) else None,
    }


def _can_say(positions: Positions) -> TypeGuard[Rotary]:
    """Whether both spellings can name these positions."""
    if not isinstance(positions, Rotary) or not isinstance(positions.scaling, Unscaled | Linear):
        return False
    return positions.fraction == 1 and not positions.interleaved


def rows(config: DecoderConfig) -> list[Row]:
    """Where each tensor of ours lies: as in a Llama, but for the names of the norms."""
    return [_renamed(each) for each in llama_rows(config)] + [
        Row(f"blocks.{index}.{ours}.weight", (Part(f"model.layers.{index}.{theirs}.weight"),))
        for index in range(config.layers)
        for ours, theirs in AFTER.items()
    ]


AFTER = {"attention_after": "post_attention_layernorm", "feedforward_after": "post_feedforward_layernorm"}


def _renamed(each: Row) -> Row:
    """What a Llama calls the norm after attention stands before the feed-forward part, and here is called so."""
    if "feedforward_norm" not in each.ours:
        return each
    part = each.parts[0]
    return replace(each, parts=(replace(part, name=part.name.replace("post_attention", "pre_feedforward")),))


def completed(config: DecoderConfig) -> DecoderConfig:
    """The same model with biases in all projections of attention, if it has them in one."""
    attention = config.qkv_bias or config.mixing_bias
    return _looking(replace(config, qkv_bias=attention, output_bias=attention), config.sights)


GEMMA3 = Family(
    "gemma3_text",
    ("Gemma3ForCausalLM", "Gemma3TextModel"),
    read,
    write,
    rows,
    completed,
    base="model.",
    unused=UNUSED,
)
