"""Building a stranger's class: its constructor's parameters are filled by their names."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from typing import Any

from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.messages import UserError, say

USUAL: dict[str, Any] = {
    "width": 32,
    "heads": 4,
    "kv_heads": 2,
    "head_width": 8,
    "hidden": 48,
    "vocab": 61,
    "context": 32,
    "layers": 2,
    "window": 4,
    "dropout": 0.0,
    "eps": 1e-5,
    "theta": 10_000.0,
    "bias": True,
}
"""Small sizes, no two alike where one could stand for the other."""

NAMES: dict[str, tuple[str, ...]] = {
    "width": (
        "d_model", "dmodel", "embed_dim", "dim", "n_embd", "n_embed", "hidden_size", "width", "emb_dim", "model_dim", "d",
        "embedding_dim", "features", "num_features", "dim_model", "channels", "normalized_shape", "emb_size", "embed_size",
        "in_features", "in_dim", "input_dim", "d_embed", "d_in", "d_out", "out_dim", "size", "units", "embd_dim", "n_dim",
        "query_dim", "hidden", "dims", "C", "D", "emb", "kdim", "vdim", "n_state", "hidden_channels", "d_embedding",
        "feature_dim", "embedding_size", "model_size", "ndim", "nx", "n_features", "num_channels", "d_features", "hid_size",
    ),
    "heads": ("num_heads", "n_heads", "heads", "n_head", "nhead", "h", "H", "num_attention_heads", "nheads", "num_head", "n_q_heads",
        "n_q",
        "num_q", "num_q_heads", "num_query_heads", "head_num"),
    "kv_heads": ("num_kv_heads", "n_kv_heads", "kv_heads", "num_key_value_heads", "n_kv_head", "n_kv", "num_kv", "kv_n_heads", "n_query_groups", "num_groups"),
    "head_width": ("head_dim", "d_head", "dim_head", "head_size", "head_width", "d_k", "d_v", "dk", "dv", "d_key", "rotary_dim", "rope_dim", "rotary_ndims"),
    "hidden": (
        "d_ff", "dff", "ffn_dim", "intermediate_size", "mlp_dim", "dim_feedforward", "ff_dim", "hidden_dim", "d_hidden",
        "feedforward_dim", "ffn_hidden", "n_inner", "d_inner", "ff_hidden", "inner_dim", "mlp_hidden", "feedforward_width", "d_mlp", "ff",
    ),
    "vocab": ("vocab_size", "n_vocab", "vocab", "num_tokens", "n_tokens", "voc_size", "V", "num_embeddings", "vocabulary_size", "ntoken", "src_vocab_size", "tgt_vocab_size"),
    "context": (
        "context", "block_size", "max_len", "max_seq_len", "max_position_embeddings", "n_ctx", "seq_len", "max_length",
        "ctx_len", "context_length", "max_seq_length", "context_size", "n_positions", "max_positions", "sequence_length", "T", "ctx",
        "max_context", "maxlen", "max_T", "length", "num_positions", "max_position", "context_window",
    ),
    "layers": ("n_layers", "num_layers", "depth", "n_layer", "layers", "L", "num_blocks", "n_blocks", "num_hidden_layers", "nlayers", "N"),
    "window": ("window", "window_size", "sliding_window", "local_window", "W"),
    "dropout": ("dropout", "p", "drop", "attn_dropout", "dropout_p", "dropout_rate", "resid_dropout", "attention_dropout", "p_drop", "attn_pdrop", "resid_pdrop", "embd_pdrop", "drop_rate"),
    "eps": ("eps", "epsilon", "variance_epsilon", "norm_eps", "layer_norm_eps", "rms_norm_eps"),
    "theta": ("base", "theta", "rope_theta", "rotary_base", "rope_base"),
    "bias": ("bias", "qkv_bias", "use_bias", "attention_bias"),
}  # fmt: skip
"""What sizes are called in people's code."""

MEANING = {name: meaning for meaning, names in NAMES.items() for name in names}
DRAWING = r"sampl|top_?[kp]|nucleus|penalt|repetition|temperature|warp|logits|min_?p"
"""Names of classes whose parameters are settings of a draw."""
DRAWN = {"top_k": 3, "k": 3, "topk": 3, "top_p": 0.8, "p": 0.8, "topp": 0.8, "threshold": 0.8, "temperature": 0.7, "temp": 0.7, "tau": 0.7,
         "t": 0.7, "T": 0.7, "min_p": 0.1, "penalty": 1.3, "repetition_penalty": 1.3, "alpha": 1.3}  # fmt: skip
MARKING = {"pad_id": 0, "pad_token_id": 0, "padding_idx": 0, "pad_idx": 0, "pad": 0, "ignore_index": -100, "ignore_id": -100, "eos_id": 2,
           "eos_token_id": 2, "smoothing": 0.1, "label_smoothing": 0.1}  # fmt: skip
"""What a loss is told of its targets."""
CONFIGS = ("config", "cfg", "args", "conf", "hparams", "params", "opt")


class AnyConfig:
    """A configuration object that has every size under every name, for a constructor that asks for one."""

    def __init__(self, sizes: Mapping[str, Any]) -> None:
        for meaning, value in sizes.items():
            for name in NAMES[meaning]:
                setattr(self, name, value)

    def get(self, name: str, default: Any = None) -> Any:
        """As a dictionary would."""
        return getattr(self, name, default)

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


def constructed(kind: type, settings: Settings) -> tuple[Any, dict[str, Any]]:
    """An instance of a class, and the arguments that it was built with, defaults among them.

    Raises:
        UserError: if a parameter has neither a default nor a name that is known, or the constructor refuses what it is given.
    """
    try:
        parameters = list(inspect.signature(kind).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    sizes = _sizes(settings)
    values = {p.name: p.default for p in parameters if p.default is not p.empty}
    given: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in settings.values:
            given[parameter.name] = settings.values[parameter.name]
        elif _stated(parameter.name, settings) or parameter.default is parameter.empty:
            given[parameter.name] = _value(kind, parameter, sizes)
    unknown = settings.values.keys() - {p.name for p in parameters}
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        raise UserError(say("check.no_parameter", name=kind.__name__, parameter=min(unknown)))
    given |= {name: settings.values[name] for name in unknown}
    return _built(kind, given), values | given


def _built(kind: type, given: dict[str, Any]) -> Any:
    with Seeded(), Attempt() as attempt:
        return kind(**given)
    shown = ", ".join(f"{name}={value!r}"[:40] for name, value in given.items())
    raise UserError(say("check.not_built", name=kind.__name__, given=shown, reason=attempt.reason)) from attempt.error


def _sizes(settings: Settings) -> dict[str, Any]:
    stated = {name: getattr(settings, name, None) for name in USUAL}
    return USUAL | {name: value for name, value in stated.items() if value is not None}


def _stated(name: str, settings: Settings) -> bool:
    """Whether the user said what a parameter of this name should be."""
    meaning = MEANING.get(name)
    return meaning is not None and getattr(settings, meaning, None) is not None


def _value(kind: type, parameter: inspect.Parameter, sizes: Mapping[str, Any]) -> Any:
    """What a parameter gets: by its name, or as a configuration."""
    name, wanted = parameter.name, parameter.annotation
    if name in DRAWN and re.search(DRAWING, kind.__name__, re.IGNORECASE):
        return DRAWN[name]
    if name in MARKING and re.search(r"loss|entropy|nll|smooth|criterion", kind.__name__, re.IGNORECASE):
        return MARKING[name]
    if name in MEANING:
        return sizes[MEANING[name]]
    if name.lower() in MEANING:
        return sizes[MEANING[name.lower()]]
    if isinstance(wanted, str):
        wanted = getattr(inspect.getmodule(kind), wanted, None)
    if isinstance(wanted, type) and dataclasses.is_dataclass(wanted):
        filled = {
            field.name: sizes[MEANING[field.name]]
            for field in dataclasses.fields(wanted)
            if field.name in MEANING and field.default is dataclasses.MISSING
        }
        return wanted(**filled)
    if name in CONFIGS:
        return AnyConfig(sizes)
    raise UserError(say("check.fill", name=kind.__name__, parameter=name))
