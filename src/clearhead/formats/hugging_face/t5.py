"""T5: an encoder-decoder with relative positions, RMS norms and no biases; 1.0 with a tied and scaled head, 1.1 with one of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from clearhead.formats.fields import Fields
from clearhead.formats.hugging_face.common import GATED, PLAIN, common, layers_of, said, spelling, whole
from clearhead.formats.hugging_face.encoders import simplest
from clearhead.formats.hugging_face.family import Family
from clearhead.formats.rows import Row, row, stacked
from clearhead.formats.tensors import Tensors, equal
from clearhead.models.choices import Activation, Gated, Relative, RMSNorm
from clearhead.models.config_encoders import EncoderDecoderConfig

POSITIONS = 512
"""The longest source and target where a file names none: what T5 was trained on. Its own code has no limit."""

# What its own code calls "gated-gelu" is the approximation.
FEEDFORWARDS: dict[str, Activation] = PLAIN | {f"gated-{name}": found for name, found in GATED.items()}
FEEDFORWARDS["gated-gelu"] = GATED["gelu_new"]


def read(fields: Fields) -> EncoderDecoderConfig:
    """The configuration that a config.json describes.

    Raises:
        UserError: if a field is missing, of the wrong kind, or asks for what no model of ours does.
    """
    common(fields)
    fields.neutral("is_encoder_decoder", True)
    fields.neutral("is_decoder", False)
    fields.neutral("add_cross_attention", False)
    fields.ignore("output_past", "mem_dim", "relu_dropout")
    writes, reads = _layers(fields)
    scaled = _scaled(fields)
    return simplest(
        EncoderDecoderConfig(
            vocab=whole(fields, "vocab_size"),
            layers=writes,
            encoder_layers=reads,
            heads=whole(fields, "num_heads"),
            width=whole(fields, "d_model"),
            head_width=whole(fields, "d_kv"),
            feedforward_width=whole(fields, "d_ff"),
            context=whole(fields, "n_positions", POSITIONS),
            dropout=fields.take("dropout_rate", float, 0.1),
            activation=_activation(fields),
            norm=RMSNorm(eps=fields.take("layer_norm_epsilon", float, 1e-6)),
            positions=Relative(
                buckets=whole(fields, "relative_attention_num_buckets", 32),
                farthest=whole(fields, "relative_attention_max_distance", 128),
            ),
            attention_scale=1.0,
            # 1.1 has a head of its own, if its files have one (`with_shared_head`).
            tied=scaled,
            scale_head=scaled,
        )
    )


def _layers(fields: Fields) -> tuple[int, int]:
    reads = layers_of(fields, "num_layers")
    return (layers_of(fields, "num_decoder_layers") if "num_decoder_layers" in fields else reads), reads


def _scaled(fields: Fields) -> bool:
    """Whether the features are divided before the head: 1.0. Newer files say so, older ones by calling the head tied."""
    tied = fields.take("tie_word_embeddings", bool, True)
    return fields.take("scale_decoder_outputs", bool, tied)


def _activation(fields: Fields) -> Activation:
    """The non-linearity; newer files say it a second time, in two fields made from the first."""
    word = fields.take("feed_forward_proj", str, "relu")
    found: Activation = fields.choose("feed_forward_proj", FEEDFORWARDS, "relu")
    fields.neutral("is_gated_act", isinstance(found, Gated))
    inner = GATED if isinstance(found, Gated) else PLAIN
    fields.neutral("dense_act_fn", *(name for name, meant in inner.items() if meant == found), word)
    return found


def write(config: EncoderDecoderConfig) -> dict[str, Any]:
    """The fields of config.json; `n_positions` is asked by nothing but readers such as ours."""
    norm, positions = config.norm, config.positions
    relative = positions if isinstance(positions, Relative) else None
    return said(
        {
            "vocab_size": config.vocab,
            "num_layers": config.encoder.layers,
            "num_decoder_layers": config.layers,
            "num_heads": config.heads,
            "d_model": config.width,
            "d_kv": config.width_of_head,
            "d_ff": config.hidden,
            "n_positions": config.context,
            "dropout_rate": config.dropout,
            "feed_forward_proj": spelling(config.activation, FEEDFORWARDS, first="gated-gelu"),
            "layer_norm_epsilon": norm.eps if isinstance(norm, RMSNorm) else None,
            "relative_attention_num_buckets": relative and relative.buckets,
            "relative_attention_max_distance": relative and relative.farthest,
            "tie_word_embeddings": config.scale_head,
            "is_encoder_decoder": True,
        }
    )


def with_shared_head(config: EncoderDecoderConfig, names: Mapping[str, str], tensors: Tensors) -> EncoderDecoderConfig:
    """The same model, its head tied to the embedding if the files hold no other: no field of a 1.1 says so.

    Releases of `transformers` from 5 on tie the two in every T5, but for files in which they differ.

    Args:
        config: as `read` gave it.
        names: what the files call a tensor, by its plain name.
        tensors: those of the files.
    """
    head, shared = (names.get(f"{name}.weight") for name in ("lm_head", "shared"))
    if config.tied or (head and not (shared and equal(tensors, head, shared))):
        return config
    return replace(config, tied=True)


def rows(config: EncoderDecoderConfig) -> list[Row]:
    """Where each tensor of ours lies."""
    found = [
        row(
            "encoder.embedding.weight",
            "shared.weight",
            also=("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"),
        ),
        row("decoder.head.weight", "lm_head.weight", also=() if config.tied else ("shared.weight",)),
    ]
    for index in range(config.encoder.layers):
        found += _block(config, f"encoder.blocks.{index}", f"encoder.block.{index}", ("attention", "feedforward"))
    for index in range(config.layers):
        branches = ("attention", "cross_attention", "feedforward")
        found += _block(config, f"decoder.blocks.{index}", f"decoder.block.{index}", branches)
    for stack in ("encoder", "decoder"):
        table = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        found.append(row(f"{stack}.biases.0.table", table))
        scaled = config.scale_head and stack == "decoder"
        found.append(row(f"{stack}.norm.{'norm.' * scaled}weight", f"{stack}.final_layer_norm.weight"))
    return found


def _block(config: EncoderDecoderConfig, ours: str, theirs: str, branches: tuple[str, ...]) -> list[Row]:
    """One block: its branches in their order, each behind its norm."""
    found = []
    for number, branch in enumerate(branches):
        layer = f"{theirs}.layer.{number}"
        found.append(row(f"{ours}.{branch}_norm.weight", f"{layer}.layer_norm.weight"))
        if branch == "feedforward":
            found += _feedforward(config, f"{ours}.{branch}", f"{layer}.DenseReluDense")
        else:
            kind = f"{layer}.{'SelfAttention' if branch == 'attention' else 'EncDecAttention'}"
            size = config.heads * config.width_of_head
            found.append(stacked(f"{ours}.{branch}.qkv.weight", {f"{kind}.{part}.weight": size for part in "qkv"}))
            found.append(row(f"{ours}.{branch}.output.weight", f"{kind}.o.weight"))
    return found


def _feedforward(config: EncoderDecoderConfig, ours: str, theirs: str) -> list[Row]:
    gated = isinstance(config.activation, Gated)
    names = {"gate": "wi_0", "up": "wi_1", "down": "wo"} if gated else {"up": "wi", "down": "wo"}
    return [row(f"{ours}.{name}.weight", f"{theirs}.{there}.weight") for name, there in names.items()]


def completed(config: EncoderDecoderConfig) -> EncoderDecoderConfig:
    """The same model: T5 has no biases. A head that is not scaled is written beside the embedding, also where it is the same.

    Releases of `transformers` before 5 would draw it, or scale it if the file called it tied.
    """
    return simplest(replace(config, tied=config.tied and config.scale_head))


T5 = Family(
    "t5",
    ("T5ForConditionalGeneration", "T5WithLMHeadModel"),
    read,
    write,
    rows,
    completed,
    # An early release saved a table for the first cross-attention, which has never been read.
    unused=("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",),
)
