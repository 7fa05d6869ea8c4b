"""A foreign configuration of which no model can be made, said in the words of its own file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from clearhead.formats.fields import Fields
from clearhead.messages import UserError, say

__all__ = ["possible"]

_SPELLINGS: dict[str, tuple[str, ...]] = {
    "vocab": ("vocab_size",),
    "layers": ("num_hidden_layers", "n_layer", "num_decoder_layers", "num_layers", "block_count"),
    "heads": ("num_attention_heads", "n_head", "num_heads", "attention.head_count"),
    "kv_heads": ("num_key_value_heads", "attention.head_count_kv"),
    "width": ("hidden_size", "n_embd", "d_model", "embedding_length"),
    "head_width": ("head_dim", "d_kv", "attention.key_length"),
    "feedforward_width": ("intermediate_size", "n_inner", "d_ff", "feed_forward_length"),
    "context": ("max_position_embeddings", "n_positions", "block_size", "context_length"),
    "window": ("sliding_window", "attention.sliding_window"),
    "dropout": ("dropout", "attention_dropout", "resid_pdrop", "hidden_dropout", "hidden_dropout_prob", "dropout_rate"),
    "norm.eps": (
        *("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon"),
        *("attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"),
    ),
    "positions.theta": ("rope_theta", "rotary_emb_base", "rope_local_base_freq", "rope.freq_base"),
    "positions.fraction": ("rotary_pct", "partial_rotary_factor"),
    "positions.buckets": ("relative_attention_num_buckets",),
    "positions.farthest": ("relative_attention_max_distance",),
    "scaling.factor": ("factor", "rope.scaling.factor", "rope.scale_linear"),
    "scaling.low": ("low_freq_factor",),
    "scaling.high": ("high_freq_factor",),
    "scaling.fast": ("beta_fast", "rope.scaling.yarn_beta_fast"),
    "scaling.slow": ("beta_slow", "rope.scaling.yarn_beta_slow"),
    "scaling.original_context": (
        "original_max_position_embeddings",
        "rope.scaling.original_context_length",
    ),
}
"""What other people's files call what we call so."""

_SAID = re.compile(r"([a-z_]+(?:\.[a-z_]+)?) = (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
_ADVICE = re.compile("[;；]")


@contextmanager
def possible(fields: Fields) -> Iterator[None]:
    """What a configuration of ours refuses inside the `with`, as a fault of the file: its path, and its own name of the field.

    Args:
        fields: those that the configuration is made from.

    Raises:
        UserError: where one is raised inside; one that names the file already is left as it is.
    """
    try:
        yield
    except UserError as error:
        if str(fields.source) in str(error):
            raise
        # Whoever builds a model is told what to choose instead. Whoever loads one chooses nothing.
        reason, numbers = _ADVICE.split(str(error))[0], _numbers(fields.data)
        reason = _SAID.sub(lambda said: f"{_theirs(said[1], float(said[2]), numbers)} = {said[2]}", reason)
        raise UserError(say("exchange.impossible", path=fields.source, reason=reason)) from error


def _theirs(ours: str, value: float, numbers: Mapping[str, float]) -> str:
    """What the file calls a field, if it has one of that meaning with this value."""
    spellings = _SPELLINGS.get(ours, ())
    # Of a mapping in the configuration, the last part of the name is the field's own.
    there = (name for name in numbers if name in spellings or name.rpartition(".")[2] in spellings)
    return next((name for name in there if numbers[name] == value), ours)


def _numbers(data: Mapping[str, Any], before: str = "") -> dict[str, float]:
    """The numbers of a configuration by their names, those of a mapping inside it by `mapping.name`."""
    found: dict[str, float] = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            found |= _numbers(value, f"{before}{name}.")
        elif isinstance(value, int | float):
            found[f"{before}{name}"] = value
    return found
