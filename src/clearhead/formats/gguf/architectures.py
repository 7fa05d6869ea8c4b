"""The architectures of GGUF files: what their keys say of the model, and which tensors ours are made of."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, NamedTuple

from clearhead.formats.fields import Fields
from clearhead.formats.gguf.header import GgufHeader
from clearhead.formats.gguf.rotation import FACTORS, decimal, rotary
from clearhead.formats.impossible import possible
from clearhead.formats.rows import AS_IS, Change, Part, Row, halves_from_pairs, row
from clearhead.messages import UserError, say
from clearhead.models.choices import GELUTanh, LayerNorm, Learned, RMSNorm, SwiGLU
from clearhead.models.config import DecoderConfig

UNUSED = (FACTORS, "blk.*.attn_rot_embd.weight")
"""Tensors of frequencies: the first is read with the configuration, the others are what the configuration says again."""
_PER_BLOCK = ("attention.head_count", "attention.head_count_kv", "feed_forward_length")
"""Keys that may hold a number for each block."""
_NEUTRAL: dict[str, tuple[object, ...]] = {
    "attention.causal": (True,),
    "attention.clamp_kqv": (0.0,),
    "attention.max_alibi_bias": (0.0,),
    "attention.shared_kv_layers": (0,),
    "expert_count": (0,),
    "expert_used_count": (0,),
    "nextn_predict_layers": (0,),
    "pooling_type": (0,),
    "tensor_data_layout": ("Meta AI original pth",),
    "use_parallel_residual": (False,),
}
"""Keys that some converters write for every model, and what they hold where they change nothing."""


class Described(NamedTuple):
    """What a header says of a model."""

    architecture: str
    config: DecoderConfig
    rows: tuple[Row, ...]


class _Architecture(NamedTuple):
    read: Callable[[Fields, GgufHeader, dict[str, Any]], DecoderConfig]
    """The configuration, given the arguments that all architectures have."""
    rows: Callable[[DecoderConfig, str, str], list[Row]]
    """The rows of attention's projections in the block that we and they call so."""


def describe(header: GgufHeader) -> Described:
    """The model that a header describes.

    Raises:
        UserError: if it is of an unknown architecture, or one of its keys changes what is computed and is not understood.
    """
    name = header.take("general.architecture", str)
    if name not in _ARCHITECTURES:
        known = sorted(_ARCHITECTURES)
        nearest = get_close_matches(name, known, 1, 0.0)[0]
        raise UserError(
            say("gguf.architecture", path=header.path, found=repr(name)[:60], known=", ".join(known), nearest=nearest)
        )
    own = {key.removeprefix(f"{name}."): value for key, value in header.fields.items() if key.startswith(f"{name}.")}
    fields = Fields(_alike(header, own), header.path, f"GGUF {name}")
    architecture = _ARCHITECTURES[name]
    with possible(fields):
        config = architecture.read(fields, header, _shared(fields, header))
    for neutral, values in _NEUTRAL.items():
        fields.neutral(neutral, *values)
    fields.done()
    _must_agree(header, config)
    rows = _rows(config)
    for index in range(config.layers):
        rows += architecture.rows(config, f"blocks.{index}", f"blk.{index}")
    return Described(name, config, tuple(rows))


def _alike(header: GgufHeader, own: dict[str, Any]) -> dict[str, Any]:
    """The architecture's keys, a number for each block that is the same for all of them once.

    Raises:
        UserError: if it is not.
    """
    for key in _PER_BLOCK:
        value = own.get(key)
        if isinstance(value, list):
            if not value or any(each != value[0] for each in value):
                raise UserError(say("gguf.uneven", path=header.path, name=key, value=repr(value[:8])[:60]))
            own[key] = value[0]
    return own


def _shared(fields: Fields, header: GgufHeader) -> dict[str, Any]:
    """Arguments of the configuration that all architectures take from the same keys and tensors."""
    layers = fields.take("block_count", int)
    if layers > len(header.tensors):
        # Nothing may grow with a number that only the header claims.
        raise UserError(say("gguf.blocks", path=header.path, blocks=layers, tensors=len(header.tensors)))
    return {
        "vocab": _vocab(fields, header),
        "layers": layers,
        "heads": fields.take("attention.head_count", int),
        "kv_heads": fields.take("attention.head_count_kv", int, None),
        "width": fields.take("embedding_length", int),
        "feedforward_width": fields.take("feed_forward_length", int),
        "context": fields.take("context_length", int),
        "window": fields.take("attention.sliding_window", int, None) or None,
        "tied": "output.weight" not in header.tensors,
        "head_bias": "output.bias" in header.tensors,
        "output_bias": "blk.0.attn_output.bias" in header.tensors,
        "bias": "blk.0.ffn_up.bias" in header.tensors,
    }


def _vocab(fields: Fields, header: GgufHeader) -> int:
    tokens = header.fields.get("tokenizer.ggml.tokens")
    embedding = header.tensors.get("token_embd.weight")
    default = len(tokens) if isinstance(tokens, list) else embedding.shape[0] if embedding is not None else 0
    return fields.take("vocab_size", int, default)


def _llama(fields: Fields, header: GgufHeader, shared: dict[str, Any]) -> DecoderConfig:
    """Llama: neighbouring features are turned, all of them."""
    config = _gated(fields, header, shared)
    # Other readers of such files refuse to turn a part: which features would be neighbours is not defined.
    fields.neutral("rope.dimension_count", config.width_of_head)
    return config


def _gated(fields: Fields, header: GgufHeader, shared: dict[str, Any]) -> DecoderConfig:
    """Llama, Qwen 2 and Qwen 3, which differ in the tensors that they have."""
    heads, width = shared["heads"], shared["width"]
    head_width = fields.take("attention.key_length", int, width // heads if heads > 0 else 1)
    fields.neutral("attention.value_length", head_width)
    return DecoderConfig(
        **shared,
        head_width=head_width,
        activation=SwiGLU(),
        norm=RMSNorm(decimal(fields.take("attention.layer_norm_rms_epsilon", float))),
        positions=rotary(fields, header, head_width),
        qkv_bias="blk.0.attn_q.bias" in header.tensors,
        qk_norm="blk.0.attn_q_norm.weight" in header.tensors,
    )


def _gpt2(fields: Fields, header: GgufHeader, shared: dict[str, Any]) -> DecoderConfig:
    return DecoderConfig(
        **shared,
        activation=GELUTanh(),
        norm=LayerNorm(
            decimal(fields.take("attention.layer_norm_epsilon", float)), bias="output_norm.bias" in header.tensors
        ),
        positions=Learned(),
        qkv_bias="blk.0.attn_qkv.bias" in header.tensors,
    )


def _must_agree(header: GgufHeader, config: DecoderConfig) -> None:
    """Hold every width of the configuration against a tensor, before anything is built from it.

    Raises:
        UserError: if one is missing or of another shape.
    """
    D = config.width
    for name, wanted in {
        "token_embd.weight": (config.vocab, D),
        "blk.0.attn_output.weight": (D, config.heads * config.width_of_head),
        "blk.0.ffn_up.weight": (config.hidden, D),
    }.items():
        if name not in header.tensors:
            raise UserError(say("formats.missing", path=header.path, name=name, count=1))
        found = header.tensors[name].shape
        if found != wanted:
            raise UserError(say("formats.shape", path=header.path, name=name, found=found, wanted=wanted))


def _rows(config: DecoderConfig) -> list[Row]:
    """All rows but those of attention's projections."""
    rows = [row("embedding.weight", "token_embd.weight")]
    if isinstance(config.positions, Learned):
        rows.append(row("positions.table", "position_embd.weight"))
    norm = _kinds(isinstance(config.norm, LayerNorm) and config.norm.bias)
    branches = {"attention.output": ("attn_output", _kinds(config.mixing_bias))}
    if isinstance(config.activation, SwiGLU):
        branches["feedforward.gate"] = ("ffn_gate", _kinds(config.bias))
    for side in ("up", "down"):
        branches[f"feedforward.{side}"] = (f"ffn_{side}", _kinds(config.bias))
    branches |= {"attention_norm": ("attn_norm", norm), "feedforward_norm": ("ffn_norm", norm)}
    for index in range(config.layers):
        for ours, (theirs, kinds) in branches.items():
            rows += [row(f"blocks.{index}.{ours}.{kind}", f"blk.{index}.{theirs}.{kind}") for kind in kinds]
    rows += [row(f"norm.{kind}", f"output_norm.{kind}") for kind in norm]
    if not config.tied:
        rows.append(row("head.weight", "output.weight"))
    if config.head_bias:
        rows.append(row("head.bias", "output.bias"))
    return rows


def _kinds(bias: bool) -> tuple[str, ...]:
    return ("weight", "bias") if bias else ("weight",)


def _apart(config: DecoderConfig, ours: str, theirs: str, q: Change = AS_IS, k: Change = AS_IS) -> list[Row]:
    """Projections that the file holds one by one, and the norms of q and k."""
    d, kv_heads = config.width_of_head, config.key_value_heads
    rows = []
    for kind in _kinds(config.qkv_bias):
        parts = (
            Part(f"{theirs}.attn_q.{kind}", config.heads * d, q),
            Part(f"{theirs}.attn_k.{kind}", kv_heads * d, k),
            Part(f"{theirs}.attn_v.{kind}", kv_heads * d),
        )
        rows.append(Row(f"{ours}.attention.qkv.{kind}", parts))
    if config.qk_norm:
        rows += [row(f"{ours}.attention.{each}_norm.weight", f"{theirs}.attn_{each}_norm.weight") for each in "qk"]
    return rows


def _paired(config: DecoderConfig, ours: str, theirs: str) -> list[Row]:
    """The same, of files whose heads turn neighbouring features: their rows are put as ours lie."""
    return _apart(config, ours, theirs, halves_from_pairs(config.heads), halves_from_pairs(config.key_value_heads))


def _fused(config: DecoderConfig, ours: str, theirs: str) -> list[Row]:
    """One projection to q, k and v."""
    return [row(f"{ours}.attention.qkv.{kind}", f"{theirs}.attn_qkv.{kind}") for kind in _kinds(config.qkv_bias)]


_ARCHITECTURES = {
    "llama": _Architecture(_llama, _paired),
    "qwen2": _Architecture(_gated, _apart),
    "qwen3": _Architecture(_gated, _apart),
    "gpt2": _Architecture(_gpt2, _fused),
}
