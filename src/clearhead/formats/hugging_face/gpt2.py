"""GPT-2: learned positions, LayerNorm and biases everywhere, matrices stored (in, out)."""

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
    whole_or_none,
)
from clearhead.formats.hugging_face.family import Family
from clearhead.formats.rows import TRANSPOSED, Row, row
from clearhead.models.choices import LayerNorm
from clearhead.models.config import DecoderConfig

DROPOUTS = {"resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1}


def read(fields: Fields) -> DecoderConfig:
    """The configuration that a config.json describes.

    Raises:
        UserError: if a field is missing, of the wrong kind, or asks for what no model of ours does.
    """
    decoder_alone(fields)
    # How large the saved masks are; and whether scores are taken in float32, which changes nothing but their rounding.
    fields.ignore("n_ctx", "reorder_and_upcast_attn")
    fields.ignore("summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels")
    fields.ignore("summary_first_dropout", "n_special", "predict_special_tokens")
    fields.neutral("scale_attn_by_inverse_layer_idx", False)
    return simplest(
        DecoderConfig(
            vocab=whole(fields, "vocab_size"),
            layers=layers_of(fields, "n_layer"),
            heads=whole(fields, "n_head"),
            width=whole(fields, "n_embd"),
            feedforward_width=whole_or_none(fields, "n_inner", None),
            context=whole(fields, "n_positions"),
            dropout=dropout_of(fields, DROPOUTS),
            activation=fields.choose("activation_function", PLAIN, "gelu_new"),
            norm=LayerNorm(eps=fields.take("layer_norm_epsilon", float, 1e-5)),
            attention_scale=None if fields.take("scale_attn_weights", bool, True) else 1.0,
            tied=fields.take("tie_word_embeddings", bool, True),
            qkv_bias=True,
            bias=True,
        )
    )


def write(config: DecoderConfig) -> dict[str, Any]:
    """The fields of config.json; `n_ctx` is for versions that size their masks by it."""
    scale, norm = simplest(config).attention_scale, config.norm
    return said(
        {
            "vocab_size": config.vocab,
            "n_layer": config.layers,
            "n_head": config.heads,
            "n_embd": config.width,
            "n_inner": config.hidden,
            "n_positions": config.context,
            "n_ctx": config.context,
            **dict.fromkeys(DROPOUTS, config.dropout),
            "activation_function": spelling(config.activation, PLAIN, first="gelu_new"),
            "layer_norm_epsilon": norm.eps if isinstance(norm, LayerNorm) else None,
            "scale_attn_weights": {None: True, 1.0: False}.get(scale),
            "tie_word_embeddings": config.tied,
        }
    )


def rows(config: DecoderConfig) -> list[Row]:
    """Where each tensor of ours lies."""
    found = [row("embedding.weight", "transformer.wte.weight"), row("positions.table", "transformer.wpe.weight")]
    for index in range(config.layers):
        ours, theirs = f"blocks.{index}", f"transformer.h.{index}"
        found += both(f"{ours}.attention_norm", f"{theirs}.ln_1")
        found += both(f"{ours}.attention.qkv", f"{theirs}.attn.c_attn", change=TRANSPOSED)
        found += both(f"{ours}.attention.output", f"{theirs}.attn.c_proj", change=TRANSPOSED)
        found += both(f"{ours}.feedforward_norm", f"{theirs}.ln_2")
        found += both(f"{ours}.feedforward.up", f"{theirs}.mlp.c_fc", change=TRANSPOSED)
        found += both(f"{ours}.feedforward.down", f"{theirs}.mlp.c_proj", change=TRANSPOSED)
    return [*found, *both("norm", "transformer.ln_f"), row("head.weight", "lm_head.weight")]


def completed(config: DecoderConfig) -> DecoderConfig:
    """The same model with all biases that GPT-2 has."""
    norm = replace(config.norm, bias=True) if isinstance(config.norm, LayerNorm) else config.norm
    return simplest(replace(config, norm=norm, qkv_bias=True, bias=True, output_bias=None))


GPT2 = Family(
    "gpt2",
    ("GPT2LMHeadModel", "GPT2Model"),
    read,
    write,
    rows,
    completed,
    base="transformer.",
    unused=("*.attn.bias", "*.attn.masked_bias"),
)
