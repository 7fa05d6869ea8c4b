"""GPT-NeoX and Pythia: parallel branches, a part of each head turned, q, k and v of a head side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clearhead.formats.fields import Fields
from clearhead.formats.hugging_face.common import (
    PLAIN,
    both,
    decoder_alone,
    dropout_of,
    layers_of,
    said,
    simplest,
    spelling,
    whole,
)
from clearhead.formats.hugging_face.family import Family
from clearhead.formats.hugging_face.rope import read_rotary, rope_fields
from clearhead.formats.rows import Row, by_head, row
from clearhead.models.choices import LayerNorm, NoPositions, Parallel, PreNorm, Rotary
from clearhead.models.config import DecoderConfig

DROPOUTS = {"hidden_dropout": 0.0, "attention_dropout": 0.0}


def read(fields: Fields) -> DecoderConfig:
    """The configuration that a config.json describes.

    Raises:
        UserError: if a field is missing, of the wrong kind, or asks for what no model of ours does.
    """
    decoder_alone(fields)
    # Names of other families' dropouts, which GPT-NeoX-20B's file has and no code of theirs reads.
    fields.ignore("attention_probs_dropout_prob", "hidden_dropout_prob")
    attention_bias = fields.take("attention_bias", bool, True)
    config = DecoderConfig(
        vocab=whole(fields, "vocab_size"),
        layers=layers_of(fields, "num_hidden_layers"),
        heads=whole(fields, "num_attention_heads"),
        width=whole(fields, "hidden_size"),
        feedforward_width=whole(fields, "intermediate_size"),
        context=whole(fields, "max_position_embeddings", 2048),
        dropout=dropout_of(fields, DROPOUTS),
        activation=fields.choose("hidden_act", PLAIN, "gelu"),
        norm=LayerNorm(eps=fields.take("layer_norm_eps", float, 1e-5)),
        block=Parallel() if fields.take("use_parallel_residual", bool, True) else PreNorm(),
        positions=NoPositions(),
        tied=fields.take("tie_word_embeddings", bool, False),
        qkv_bias=attention_bias,
        bias=True,
        output_bias=attention_bias,
    )
    positions = read_rotary(
        fields,
        head_width=config.width_of_head,
        context=config.context,
        theta={"rotary_emb_base": 10_000.0, "rope_theta": 10_000.0},
        fraction={"rotary_pct": 0.25, "partial_rotary_factor": 0.25},
    )
    return simplest(replace(config, positions=positions))


def write(config: DecoderConfig) -> dict[str, Any]:
    """The fields of config.json, rotary positions in both spellings."""
    norm, blocks = config.norm, {Parallel(): True, PreNorm(): False}
    return said(
        {
            "vocab_size": config.vocab,
            "num_hidden_layers": config.layers,
            "num_attention_heads": config.heads,
            "hidden_size": config.width,
            "intermediate_size": config.hidden,
            "max_position_embeddings": config.context,
            **dict.fromkeys(DROPOUTS, config.dropout),
            "hidden_act": spelling(config.activation, PLAIN, first="gelu_pytorch_tanh"),
            "layer_norm_eps": norm.eps if isinstance(norm, LayerNorm) else None,
            "use_parallel_residual": blocks.get(config.block),
            "tie_word_embeddings": config.tied,
            "attention_bias": config.qkv_bias,
            **_positions(config),
        }
    )


def _positions(config: DecoderConfig) -> dict[str, Any]:
    rotary = config.positions
    if not isinstance(rotary, Rotary) or rotary.interleaved:
        return {}
    part, written = {"partial_rotary_factor": rotary.fraction}, rope_fields(rotary)
    mappings = {name: {**value, **part} for name, value in written.items() if isinstance(value, dict)}
    return {**mappings, "rotary_pct": rotary.fraction, "rotary_emb_base": rotary.theta}


def rows(config: DecoderConfig) -> list[Row]:
    """Where each tensor of ours lies."""
    found, grouped = [row("embedding.weight", "gpt_neox.embed_in.weight")], by_head(config.heads)
    for index in range(config.layers):
        ours, theirs = f"blocks.{index}", f"gpt_neox.layers.{index}"
        found += both(f"{ours}.attention_norm", f"{theirs}.input_layernorm")
        qkv = f"{theirs}.attention.query_key_value"
        found.append(row(f"{ours}.attention.qkv.weight", f"{qkv}.weight", grouped))
        if config.qkv_bias:
            found.append(row(f"{ours}.attention.qkv.bias", f"{qkv}.bias", grouped))
        found += both(f"{ours}.attention.output", f"{theirs}.attention.dense", bias=config.mixing_bias)
        found += both(f"{ours}.feedforward_norm", f"{theirs}.post_attention_layernorm")
        found += both(f"{ours}.feedforward.up", f"{theirs}.mlp.dense_h_to_4h")
        found += both(f"{ours}.feedforward.down", f"{theirs}.mlp.dense_4h_to_h")
    return [*found, *both("norm", "gpt_neox.final_layer_norm"), row("head.weight", "embed_out.weight")]


def completed(config: DecoderConfig) -> DecoderConfig:
    """The same model with the biases that NeoX has: of norms and feed-forward always, of attention in all places or none."""
    norm = replace(config.norm, bias=True) if isinstance(config.norm, LayerNorm) else config.norm
    attention = config.qkv_bias or config.mixing_bias
    return simplest(replace(config, norm=norm, qkv_bias=attention, bias=True, output_bias=attention))


NEOX = Family(
    "gpt_neox",
    ("GPTNeoXForCausalLM", "GPTNeoXModel"),
    read,
    write,
    rows,
    completed,
    base="gpt_neox.",
    unused=("*.attention.bias", "*.attention.masked_bias", "*.rotary_emb.inv_freq"),
)
