"""What the families share: fields that every config.json may have, names of activations, the simplest form of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from clearhead.formats.fields import MISSING, Fields
from clearhead.formats.rows import AS_IS, Change, Row, row
from clearhead.messages import UserError, say
from clearhead.models import choices
from clearhead.models.config import DecoderConfig, Sight

PLAIN: dict[str, choices.Activation] = {
    "gelu": choices.GELU(),
    "gelu_python": choices.GELU(),
    "gelu_new": choices.GELUTanh(),
    "gelu_pytorch_tanh": choices.GELUTanh(),
    "gelu_python_tanh": choices.GELUTanh(),
    "gelu_fast": choices.GELUTanh(),
    "gelu_accurate": choices.GELUTanh(),
    "relu": choices.ReLU(),
    "relu2": choices.ReLUSquared(),
}
"""Non-linearities of a feed-forward part without a gate; the names of one are spellings of one formula."""

GATED: dict[str, choices.Activation] = {
    "silu": choices.SwiGLU(),
    "swish": choices.SwiGLU(),
    "gelu": choices.GEGLU(),
    "gelu_python": choices.GEGLU(),
    "gelu_pytorch_tanh": choices.GEGLUTanh(),
    "gelu_new": choices.GEGLUTanh(),
    "gelu_python_tanh": choices.GEGLUTanh(),
    "gelu_fast": choices.GEGLUTanh(),
    "gelu_accurate": choices.GEGLUTanh(),
}
"""Those of a gate."""

MOST = 2**31 - 1
MOST_LAYERS = 2048

_OF_THE_TOKENIZER = (
    *("bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "cls_token_id", "mask_token_id"),
    *("decoder_start_token_id", "prefix"),
)
_OF_THE_FILE = (
    *("architectures", "model_type", "transformers_version", "dtype", "torch_dtype", "_name_or_path", "_commit_hash"),
    *("tokenizer_class", "transformers.js_config", "unsloth_version", "unsloth_fixed", "use_cache", "xla_device"),
    *("chunk_size_feed_forward", "output_past", "tie_last_hidden_states", "cache_implementation", "name_or_path"),
    *("output_attentions", "output_hidden_states", "return_dict", "torchscript", "tf_legacy_loss", "use_bfloat16"),
    *("attn_implementation", "_attn_implementation", "_attn_implementation_autoset", "_attn_implementation_internal"),
    *("_flash_attn_2_enabled", "_pre_quantization_dtype"),
)
_OF_TRAINING = ("initializer_range", "initializer_factor", "gradient_checkpointing", "classifier_dropout")
_OF_OTHER_HEADS = (
    *("id2label", "label2id", "num_labels", "_num_labels", "problem_type", "finetuning_task", "task_specific_params"),
)
# What older versions saved of `generate` beside the model. None of it is in a forward.
_OF_GENERATION = (
    *("do_sample", "max_length", "min_length", "max_new_tokens", "early_stopping", "num_beams", "num_beam_groups"),
    *("temperature", "top_k", "top_p", "typical_p", "diversity_penalty", "repetition_penalty", "length_penalty"),
    *("no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences"),
    *("output_scores", "return_dict_in_generate", "forced_bos_token_id", "forced_eos_token_id"),
    *("remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens"),
    *("min_p", "min_new_tokens", "epsilon_cutoff", "eta_cutoff", "encoder_repetition_penalty", "renormalize_logits"),
    *("forced_decoder_ids", "num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold"),
    *("assistant_lookbehind", "target_lookbehind", "output_logits"),
)


def common(fields: Fields) -> None:
    """Pass over what every configuration may have and no forward of the model itself asks for.

    Fields that would change one, such as `pruned_heads`, have to say that they do not.
    """
    fields.ignore(*_OF_THE_TOKENIZER, *_OF_THE_FILE, *_OF_TRAINING, *_OF_OTHER_HEADS, *_OF_GENERATION)
    fields.neutral("pruned_heads", {})
    fields.neutral("tie_encoder_decoder", False)


def decoder_alone(fields: Fields) -> None:
    """Pass over `common` fields, and over those that ask a decoder to be more than that."""
    common(fields)
    fields.ignore("is_decoder")  # Decoders are causal whatever it says.
    fields.neutral("is_encoder_decoder", False)
    fields.neutral("add_cross_attention", False)


def whole(fields: Fields, name: str, default: Any = MISSING, most: int = MOST) -> int:
    """A whole number that sizes can be made of.

    Raises:
        UserError: if it is missing, none or beyond `most`, which no model has and no machine could hold.
    """
    value: int = fields.take(name, int, default)
    if value > most:
        raise UserError(say("exchange.field_large", path=fields.source, field=name, value=repr(value)[:60], most=most))
    return value


def whole_or_none(fields: Fields, name: str, default: int | None) -> int | None:
    """The same, where a field that is missing or null may mean that there is none."""
    return whole(fields, name) if name in fields else default


def layers_of(fields: Fields, name: str) -> int:
    """How many blocks: something is made for each of them before any file is asked whether it has them."""
    return whole(fields, name, most=MOST_LAYERS)


def unsupported(fields: Fields, name: str) -> UserError:
    """The error of a field that is understood and asks for what no model of ours does."""
    value = repr(fields.data[name])[:60]
    return UserError(
        say("exchange.field_unsupported", path=fields.source, field=name, value=value, family=fields.family)
    )


def must_divide(fields: Fields, heads: str, width: str) -> None:
    """Raise a UserError unless the field `heads` divides `width`: their own class refuses it, also where a head's width is given."""
    value, whole = fields.data[heads], fields.data[width]
    if whole % value:
        raise UserError(
            say(
                "exchange.field_divides",
                path=fields.source,
                family=fields.family,
                field=heads,
                value=value,
                other=width,
                whole=whole,
            )
        )


def dropout_of(fields: Fields, names: Mapping[str, float]) -> float:
    """The probability of dropping, if it is one for all places, as ours is; else 0, with which nothing is dropped in training either.

    Args:
        fields: the configuration.
        names: the fields, and what each is where it is missing.
    """
    found = {fields.take(name, float, default) for name, default in names.items()}
    return found.pop() if len(found) == 1 else 0.0


def spelling(activation: choices.Activation, known: Mapping[str, choices.Activation], *, first: str = "") -> str | None:
    """What a family calls an activation; None if it has none such.

    Args:
        activation: ours.
        known: `PLAIN` or `GATED`.
        first: the spelling to take where several mean the same.
    """
    names = [name for name, meant in known.items() if meant == activation]
    return first if first in names else next(iter(names), None)


def simplest(config: DecoderConfig) -> DecoderConfig:
    """The same model, nothing said that goes without saying: two configurations of one model become equal.

    The kernel is no part of a model that others could read.
    """
    window, cycle = _simplest_looks(config.sights)
    scale = config.attention_scale
    return replace(
        config,
        kv_heads=None if config.key_value_heads == config.heads else config.kv_heads,
        head_width=None if config.width_of_head * config.heads == config.width else config.head_width,
        feedforward_width=None if config.hidden == 4 * config.width else config.feedforward_width,
        output_bias=None if config.mixing_bias == config.bias else config.output_bias,
        attention_scale=None if scale == config.width_of_head**-0.5 else scale,
        kernel=choices.Auto(),
        window=window,
        cycle=cycle,
    )


def _simplest_looks(sights: tuple[Sight, ...]) -> tuple[int | None, tuple[Sight, ...]]:
    """A window for all blocks, or the shortest cycle."""
    length = next(
        length
        for length in range(1, len(sights) + 1)
        if all(sight == sights[index % length] for index, sight in enumerate(sights))
    )
    if length == 1 and sights[0].positions is None:
        return sights[0].window, ()
    return None, sights[:length]


def said(written: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have something to say: None stands for what a family cannot."""
    return {name: value for name, value in written.items() if value is not None}


def both(ours: str, theirs: str, *, bias: bool = True, change: Change = AS_IS) -> list[Row]:
    """A weight and its bias, if there is one; a bias is rearranged by nothing but the order of its rows."""
    rows = [row(f"{ours}.weight", f"{theirs}.weight", change)]
    return [*rows, row(f"{ours}.bias", f"{theirs}.bias")] if bias else rows
