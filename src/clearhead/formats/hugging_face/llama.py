"""What Llama, Mistral, Qwen2 and Qwen3 share: rotary positions, RMSNorm, a gated feed-forward part, grouped queries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clearhead.formats.fields import Fields
from clearhead.formats.hugging_face.common import (
    GATED,
    both,
    decoder_alone,
    dropout_of,
    layers_of,
    must_divide,
    said,
    simplest,
    spelling,
    unsupported,
    whole,
    whole_or_none,
)
from clearhead.formats.hugging_face.family import Family
from clearhead.formats.hugging_face.rope import read_rotary, rope_fields
from clearhead.formats.rows import Row, row, stacked
from clearhead.models.choices import NoPositions, RMSNorm, Rotary
from clearhead.models.config import DecoderConfig

DROPOUTS = {"attention_dropout": 0.0}


def read_shared(fields: Fields, *, kv_heads: int | None, head_width: int | None, context: int) -> DecoderConfig:
    """The configuration but for biases, windows and norms of heads.

    Args:
        fields: the configuration.
        kv_heads: K where the field is missing; None is as many as heads, which is also what null means.
        head_width: d where the field is missing; width / heads if None.
        context: the most positions where the field is missing.

    Raises:
        UserError: if a field is missing, of the wrong kind, or asks for what no model of ours does.
    """
    decoder_alone(fields)
    # Llama 2 was trained with products taken in slices, whose sum is the same; the others name the file, not the model.
    fields.ignore("pretraining_tp", "is_llama_config", "max_sequence_length")
    fields.neutral("rope_interleaved", False)
    null = "num_key_value_heads" in fields.data
    config = DecoderConfig(
        vocab=whole(fields, "vocab_size"),
        layers=layers_of(fields, "num_hidden_layers"),
        heads=whole(fields, "num_attention_heads"),
        kv_heads=whole_or_none(fields, "num_key_value_heads", None if null else kv_heads),
        width=whole(fields, "hidden_size"),
        head_width=whole_or_none(fields, "head_dim", head_width),
        feedforward_width=whole(fields, "intermediate_size"),
        context=whole(fields, "max_position_embeddings", context),
        dropout=dropout_of(fields, DROPOUTS),
        activation=fields.choose("hidden_act", GATED, "silu"),
        norm=RMSNorm(eps=fields.take("rms_norm_eps", float, 1e-6)),
        positions=NoPositions(),
        tied=fields.take("tie_word_embeddings", bool, False),
    )
    positions = read_rotary(
        fields,
        head_width=config.width_of_head,
        context=config.context,
        theta={"rope_theta": 10_000.0},
        fraction={"partial_rotary_factor": 1.0},
    )
    if positions.fraction != 1:
        raise unsupported(fields, "partial_rotary_factor" if "partial_rotary_factor" in fields else "rope_parameters")
    return replace(config, positions=positions)


def write_shared(config: DecoderConfig) -> dict[str, Any]:
    """The fields of config.json that all four have, rotary positions in both spellings."""
    norm, rotary = config.norm, config.positions
    turned = isinstance(rotary, Rotary) and not rotary.interleaved and rotary.fraction == 1
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
            "hidden_act": spelling(config.activation, GATED, first="gelu_pytorch_tanh"),
            "rms_norm_eps": norm.eps if isinstance(norm, RMSNorm) and not norm.offset else None,
            "tie_word_embeddings": config.tied,
            **(rope_fields(rotary) if isinstance(rotary, Rotary) and turned else {}),
        }
    )


def rows(config: DecoderConfig) -> list[Row]:
    """Where each tensor of ours lies, in all four."""
    d, heads = config.width_of_head, {"q": config.heads, "k": config.key_value_heads, "v": config.key_value_heads}
    found = [row("embedding.weight", "model.embed_tokens.weight")]
    for index in range(config.layers):
        ours, theirs = f"blocks.{index}", f"model.layers.{index}"
        found += both(f"{ours}.attention_norm", f"{theirs}.input_layernorm", bias=False)
        for kind in ("weight", "bias") if config.qkv_bias else ("weight",):
            parts = {f"{theirs}.self_attn.{name}_proj.{kind}": d * count for name, count in heads.items()}
            found.append(stacked(f"{ours}.attention.qkv.{kind}", parts))
        if config.qk_norm:
            for name in ("q_norm", "k_norm"):
                found += both(f"{ours}.attention.{name}", f"{theirs}.self_attn.{name}", bias=False)
        found += both(f"{ours}.attention.output", f"{theirs}.self_attn.o_proj", bias=config.mixing_bias)
        found += both(f"{ours}.feedforward_norm", f"{theirs}.post_attention_layernorm", bias=False)
        for name in ("gate", "up", "down"):
            found += both(f"{ours}.feedforward.{name}", f"{theirs}.mlp.{name}_proj", bias=config.bias)
    return [*found, *both("norm", "model.norm", bias=False), row("head.weight", "lm_head.weight")]


def attention_biases(config: DecoderConfig) -> DecoderConfig:
    """The same model with biases in all projections of attention, if it has them in one."""
    attention = config.qkv_bias or config.mixing_bias
    return simplest(replace(config, qkv_bias=attention, output_bias=attention))


def read(fields: Fields) -> DecoderConfig:
    """The configuration that a config.json of a Llama describes.

    Raises:
        UserError: if a field is missing, of the wrong kind, or asks for what no model of ours does.
    """
    attention, feedforward = (fields.take(f"{part}_bias", bool, False) for part in ("attention", "mlp"))
    config = read_shared(fields, kv_heads=None, head_width=None, context=2048)
    must_divide(fields, "num_attention_heads", "hidden_size")
    return simplest(replace(config, qkv_bias=attention, bias=feedforward, output_bias=attention))


def write(config: DecoderConfig) -> dict[str, Any]:
    """The fields of config.json of a Llama."""
    return {**write_shared(config), "attention_bias": config.qkv_bias, "mlp_bias": config.bias}


UNUSED = ("*.rotary_emb.inv_freq",)

LLAMA = Family(
    "llama",
    ("LlamaForCausalLM", "LlamaModel"),
    read,
    write,
    rows,
    attention_biases,
    base="model.",
    unused=UNUSED,
)
