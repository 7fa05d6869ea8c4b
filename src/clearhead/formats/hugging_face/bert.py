"""BERT and MiniLM: post-norm encoders with biases everywhere, and the heads that their files have."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from clearhead.formats.fields import Fields
from clearhead.formats.hugging_face.common import (
    PLAIN,
    both,
    common,
    dropout_of,
    layers_of,
    said,
    spelling,
    unsupported,
    whole,
)
from clearhead.formats.hugging_face.encoders import simplest
from clearhead.formats.hugging_face.family import Family
from clearhead.formats.rows import Part, Row, row
from clearhead.formats.safetensors_files import read_object
from clearhead.messages import UserError, say
from clearhead.models.choices import (
    EncoderHead,
    Features,
    First,
    LayerNorm,
    MaskedToken,
    Max,
    Mean,
    Pooled,
    Pooling,
    PostNorm,
)
from clearhead.models.config_encoders import EncoderConfig

DROPOUTS = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
MASKED = ("BertForMaskedLM", "BertForPreTraining")
"""The classes whose head guesses tokens; the second one's guess at the next sentence is not taken over."""

POOLINGS: dict[str, Pooling] = {
    "pooling_mode_cls_token": First(),
    "pooling_mode_mean_tokens": Mean(),
    "pooling_mode_max_tokens": Max(),
}
OTHER_POOLINGS = ("pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken")

_LONGEST = 1 << 20


def read_masked(fields: Fields) -> EncoderConfig:
    """The configuration of a model that guesses masked tokens.

    Raises:
        UserError: as `read_pooled`.
    """
    tied = fields.take("tie_word_embeddings", bool, True)
    return simplest(replace(read_pooled(fields), head=MaskedToken(), head_bias=True, tied=tied))


def read_pooled(fields: Fields) -> EncoderConfig:
    """The configuration of a bare model with its pooler; `with_head` looks whether the folder has another head.

    Raises:
        UserError: if a field is missing, of the wrong kind, or asks for what no model of ours does.
    """
    common(fields)
    fields.neutral("is_encoder_decoder", False)
    fields.neutral("is_decoder", False)
    fields.neutral("add_cross_attention", False)
    fields.neutral("position_embedding_type", "absolute")
    # As the first releases of bert-base-chinese and -multilingual describe themselves.
    fields.neutral("directionality", "bidi")
    fields.neutral("pooler_type", "first_token_transform")
    fields.ignore("pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head")
    fields.ignore("tie_word_embeddings")
    segments = whole(fields, "type_vocab_size", 2)
    if segments < 1:
        raise unsupported(fields, "type_vocab_size")
    return simplest(
        EncoderConfig(
            vocab=whole(fields, "vocab_size"),
            layers=layers_of(fields, "num_hidden_layers"),
            heads=whole(fields, "num_attention_heads"),
            width=whole(fields, "hidden_size"),
            feedforward_width=whole(fields, "intermediate_size"),
            context=whole(fields, "max_position_embeddings"),
            dropout=dropout_of(fields, DROPOUTS),
            activation=fields.choose("hidden_act", PLAIN, "gelu"),
            norm=LayerNorm(eps=fields.take("layer_norm_eps", float, 1e-12)),
            block=PostNorm(),
            embedding_norm=True,
            qkv_bias=True,
            bias=True,
            segments=segments,
            head=Pooled(First(), dense=True),
        )
    )


def write(config: EncoderConfig) -> dict[str, Any]:
    """The fields of config.json; which head there is, the class of the model says."""
    norm = config.norm
    return said(
        {
            "vocab_size": config.vocab,
            "num_hidden_layers": config.layers,
            "num_attention_heads": config.heads,
            "hidden_size": config.width,
            "intermediate_size": config.hidden,
            "max_position_embeddings": config.context,
            "type_vocab_size": config.segments,
            **dict.fromkeys(DROPOUTS, config.dropout),
            "hidden_act": spelling(config.activation, PLAIN, first="gelu"),
            "layer_norm_eps": norm.eps if isinstance(norm, LayerNorm) else None,
            "position_embedding_type": "absolute",
            "tie_word_embeddings": config.tied,
        }
    )


def rows(config: EncoderConfig) -> list[Row]:
    """Where each tensor of ours lies."""
    found = [
        row("embedding.weight", "bert.embeddings.word_embeddings.weight"),
        row("positions.table", "bert.embeddings.position_embeddings.weight"),
        row("segments.table", "bert.embeddings.token_type_embeddings.weight"),
        *both("embedding_norm", "bert.embeddings.LayerNorm"),
    ]
    for index in range(config.layers):
        ours, theirs = f"blocks.{index}", f"bert.encoder.layer.{index}"
        for kind in ("weight", "bias"):
            parts = [f"{theirs}.attention.self.{name}.{kind}" for name in ("query", "key", "value")]
            found.append(Row(f"{ours}.attention.qkv.{kind}", tuple(Part(name, config.width) for name in parts)))
        found += both(f"{ours}.attention.output", f"{theirs}.attention.output.dense")
        found += both(f"{ours}.attention_norm", f"{theirs}.attention.output.LayerNorm")
        found += both(f"{ours}.feedforward.up", f"{theirs}.intermediate.dense")
        found += both(f"{ours}.feedforward.down", f"{theirs}.output.dense")
        found += both(f"{ours}.feedforward_norm", f"{theirs}.output.LayerNorm")
    return found + _head(config)


def _head(config: EncoderConfig) -> list[Row]:
    match config.head:
        case MaskedToken():
            theirs = "cls.predictions"
            # One bias with two names, in older files the first, in newer ones both; the second is the one that is read.
            names = [f"{theirs}.bias", f"{theirs}.decoder.bias"]
            first, second = names if config.tied else reversed(names)
            return [
                *both("head.transform", f"{theirs}.transform.dense"),
                *both("head.norm", f"{theirs}.transform.LayerNorm"),
                row("head.output.weight", f"{theirs}.decoder.weight"),
                row("head.output.bias", first, also=(second,)),
            ]
        case Pooled(dense=True):
            return both("head.after.0", "bert.pooler.dense")
    return []


def completed(config: EncoderConfig) -> EncoderConfig:
    """The same model with all biases that BERT has, and with the vector of one kind of segments, which is another bias."""
    norm = replace(config.norm, bias=True) if isinstance(config.norm, LayerNorm) else config.norm
    return simplest(
        replace(
            config,
            norm=norm,
            qkv_bias=True,
            bias=True,
            output_bias=None,
            segments=max(1, config.segments),
            head_bias=isinstance(config.head, MaskedToken),
        )
    )


def with_head(
    config: EncoderConfig, folder: Path, architectures: Sequence[str], names: Collection[str]
) -> EncoderConfig:
    """The same encoder with the head that its folder says it has.

    Args:
        config: as a family read it.
        folder: where it lies.
        architectures: what config.json calls the class of the model.
        names: the tensors that are there.

    Raises:
        UserError: as `head_of`.
    """
    head = head_of(folder, architectures, names)
    return simplest(replace(config, head=head, head_bias=config.head_bias and isinstance(head, MaskedToken)))


def head_of(folder: Path, architectures: Sequence[str], names: Collection[str]) -> EncoderHead:
    """What is made of the features, as a folder says it.

    A folder of sentence-transformers (`modules.json`) says how its features are pooled, and whether the vector is divided by its
    length. Otherwise the class of the model says that tokens are guessed, or the pooler is used if its weights are there.

    Raises:
        UserError: if the folder's modules are damaged or of a kind that no head of ours is.
    """
    modules = folder / "modules.json"
    if modules.exists():
        return _of_modules(_modules(modules), folder, modules)
    if set(architectures) & {*MASKED}:
        return MaskedToken()
    pooled = any(name.endswith("pooler.dense.weight") for name in names)
    return Pooled(First(), dense=True) if pooled else Features()


def _of_modules(found: list[tuple[str, str]], folder: Path, source: Path) -> EncoderHead:
    """The head that sentence-transformers makes of these modules, each a kind and a folder."""
    kinds = [kind for kind, _ in found]
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        raise UserError(say("exchange.modules", path=source, found=", ".join(kinds)[:100]))
    inner = found[1][1]
    if Path(inner).name != inner or inner in ("", ".."):
        raise UserError(say("exchange.modules_leave", path=source, name=repr(inner)[:60]))
    return Pooled(_pooling(folder / inner / "config.json"), unit=kinds[2:] == ["Normalize"])


def _modules(source: Path) -> list[tuple[str, str]]:
    """The kind and the folder of each module of a sentence-transformers folder."""
    try:
        with source.open("rb") as file:
            data = json.loads(file.read(_LONGEST))
        return [(str(each["type"]).rpartition(".")[2], str(each["path"])) for each in data]
    except (OSError, ValueError, RecursionError, TypeError, KeyError) as error:
        raise UserError(say("exchange.modules_damaged", path=source, reason=type(error).__name__)) from error


def _pooling(source: Path) -> Pooling:
    """The one kind of pooling that a file asks for."""
    fields = Fields(read_object(source), source, "sentence-transformers pooling")
    fields.ignore("word_embedding_dimension", "include_prompt")
    for name in OTHER_POOLINGS:
        fields.neutral(name, False)
    asked = [pooling for name, pooling in POOLINGS.items() if fields.take(name, bool, False)]
    fields.done()
    if len(asked) != 1:
        names = [type(pooling).__name__ for pooling in asked]
        raise UserError(say("exchange.poolings", path=source, found=", ".join(names) or "0", known=", ".join(POOLINGS)))
    return asked[0]


# Older files hold the numbers of the positions, 0, 1, 2 ..., as if they were weights.
NUMBERS = "bert.embeddings.position_ids"
BERT = Family(
    "bert",
    MASKED,
    read_masked,
    write,
    rows,
    completed,
    base="bert.",
    unused=(NUMBERS, "bert.pooler.*", "cls.seq_relationship.*"),
)
BERT_POOLED = Family(
    "bert",
    ("BertModel",),
    read_pooled,
    write,
    rows,
    completed,
    base="bert.",
    unused=(NUMBERS, "bert.pooler.*", "cls.*"),
)
