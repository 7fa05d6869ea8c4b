"""What a decoder's config.json says, in the spellings of all times; and what is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from clearhead.messages import UserError
from clearhead.models.choices import GELU, GELUTanh, Linear, Llama3, Rotary, SwiGLU, Unscaled, YaRN
from clearhead.models.config import Sight, StackConfig
from tests.formats.hugging_face.decoders import EACH, VARIANTS, their_config
from tests.formats.hugging_face.given import as_saved, read
from tests.formats.hugging_face.published import (
    GPT2,
    LLAMA_1,
    LLAMA_3_2_1B,
    MISTRAL_7B,
    PUBLISHED,
    PYTHIA_70M,
    QWEN2_HALF_B,
    QWEN3,
    TINY_LLAMA,
)
from tests.oracles.hf_pairs import hf


def without(data: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in names}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models(name: str) -> None:
    data, expected = copy.deepcopy(PUBLISHED[name])  # the classes of transformers write into what they are given
    assert read(data) == expected


@pytest.mark.parametrize("name", PUBLISHED)
def test_as_the_installed_version_saves_it(name: str) -> None:
    """Read from its own words, and from those of transformers that has read it."""
    data, expected = copy.deepcopy(PUBLISHED[name])  # the classes of transformers write into what they are given
    theirs = hf.AutoConfig.for_model(**{key: value for key, value in data.items() if key != "architectures"})
    assert read(as_saved(theirs)) == expected
    assert read({**theirs.to_diff_dict(), "dtype": None}) == expected


# Every field of their classes

OTHER: dict[str, Any] = {
    "architectures": ["Another"],
    "activation_function": "relu",
    "hidden_act": "gelu_new",
    "problem_type": "regression",
    "layer_types": ["sliding_attention", "full_attention", "full_attention"],
    "rope_parameters": {"rope_type": "linear", "factor": 2.0},
    "n_inner": 17,
    "id2label": {"0": "a"},
    "label2id": {"a": 0},
    "attention_dropout": 0.3,
    "hidden_dropout": 0.3,
    "num_attention_heads": 12,
    "n_head": 6,
}
"""Another value of a field, where it is not plain what that would be."""
FILE = {
    *("transformers_version", "architectures", "output_hidden_states", "return_dict", "dtype", "use_cache"),
    *("chunk_size_feed_forward", "id2label", "label2id", "problem_type", "initializer_range"),
    *("bos_token_id", "eos_token_id", "pad_token_id"),
}
QUIET = {
    "gpt2": {*FILE, "reorder_and_upcast_attn", *(f"summary_{part}" for part in ("type", "use_proj", "activation"))}
    | {"summary_proj_to_labels", "summary_first_dropout"},
    # A dropout that differs from the other is none.
    "neox": {*FILE, "classifier_dropout", "is_decoder", "attention_dropout", "hidden_dropout"},
    "llama": {*FILE, "pretraining_tp"},
    "mistral": FILE,
    # Where layers are listed, they are not counted.
    "qwen2, windows": {*FILE, "max_window_layers"},
    "qwen3": {*FILE, "max_window_layers", "sliding_window", "use_sliding_window"},
}
"""Fields of which no value changes the model."""


def changed(name: str, value: Any) -> Any:
    if name in OTHER:
        return OTHER[name]
    if name == "num_key_value_heads":
        return 3 if value == 6 else 6
    if isinstance(value, bool):
        return not value
    return {int: 2, float: 2.0}.get(type(value), 1) * value if isinstance(value, int | float) and value else 5


def quiet_fields(config: Any, reader: Callable[[dict[str, Any]], Any]) -> set[str]:
    """The fields of their class that can have another value without another model of ours, and without an error."""
    data = as_saved(config)
    quiet, expected = set(), reader(data)
    for name in (field.name for field in fields(config)):
        try:
            if reader({**data, name: changed(name, data.get(name))}) == expected:
                quiet.add(name)
        except UserError:
            pass
    return quiet


@pytest.mark.parametrize("variant", EACH)
def test_no_field_of_their_configuration_is_passed_over(variant: str) -> None:
    """With another value each is another model of ours, or refused, or on the list of those that change nothing."""
    assert quiet_fields(their_config(variant), read) == QUIET[variant]


@pytest.mark.parametrize("name", ["hidden_act", "rms_norm_eps", "rope_parameters", "attention_bias"])
def test_a_reader_that_passes_over_a_field_is_caught(name: str) -> None:
    found = quiet_fields(their_config("llama"), lambda data: read(without(data, name)))
    assert found - QUIET["llama"] == {name}


@pytest.mark.parametrize("variant", EACH)
def test_a_field_that_nobody_knows_is_refused(variant: str) -> None:
    with pytest.raises(UserError, match="logit_soft_cap"):
        read({**as_saved(their_config(variant)), "logit_soft_cap": 30.0})


# Spellings

LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 512}
SCALINGS: dict[str, tuple[dict[str, Any], Any]] = {
    "default": ({"rope_type": "default"}, Unscaled()),
    "linear": ({"rope_type": "linear", "factor": 4}, Linear(4.0)),
    "llama3": ({"rope_type": "llama3", "factor": 8.0, **LLAMA3}, Llama3(8.0, 1.0, 4.0, 512)),
    "yarn": (
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512, "beta_fast": 16},
        YaRN(4.0, 512, fast=16.0),
    ),
    "yarn of the context": ({"rope_type": "yarn", "factor": 4.0}, YaRN(4.0, 2048)),
    "yarn, steepness said": (
        {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.1386294361119891, "truncate": True},
        YaRN(4.0, 2048),
    ),
    "yarn, one scale of two": ({"rope_type": "yarn", "factor": 4.0, "mscale": 0.7}, YaRN(4.0, 2048)),
}


@pytest.mark.parametrize("name", SCALINGS)
def test_scalings_in_all_spellings(name: str) -> None:
    said, scaling = SCALINGS[name]
    older = {**without(said, "rope_type"), "type": said["rope_type"]}
    expected = replace(read(TINY_LLAMA), positions=Rotary(theta=70.0, scaling=scaling))
    bare = without(TINY_LLAMA, "rope_theta", "rope_scaling")
    assert read({**bare, "rope_theta": 70, "rope_scaling": older}) == expected
    assert read({**bare, "rope_theta": 70, "rope_scaling": {**said, **older}}) == expected
    assert read({**bare, "rope_parameters": {**said, "rope_theta": 70}}) == expected
    both = {"rope_theta": 70.0, "rope_scaling": said, "rope_parameters": {**said, "rope_theta": 70}}
    assert read({**bare, **both}) == expected


def test_the_original_context_may_stand_outside() -> None:
    said = {"rope_type": "yarn", "factor": 4.0}
    data = {**without(TINY_LLAMA, "rope_scaling"), "rope_scaling": said, "original_max_position_embeddings": 300}
    assert read(data).positions.scaling == YaRN(4.0, 300)


@pytest.mark.parametrize(
    "spelling",
    [
        {"rotary_pct": 0.5, "rotary_emb_base": 70},
        {"rotary_pct": 0.5, "partial_rotary_factor": 0.5, "rope_theta": 70.0, "rotary_emb_base": 70},
        {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5, "rope_theta": 70.0}},
    ],
)
def test_a_part_of_the_head_in_all_spellings(spelling: dict[str, Any]) -> None:
    bare = without(PYTHIA_70M, "rotary_pct", "rotary_emb_base")
    assert read({**bare, **spelling}).positions == Rotary(theta=70.0, fraction=0.5)


def test_what_is_missing_is_what_their_code_takes() -> None:
    bare = without(MISTRAL_7B, "num_key_value_heads", "sliding_window", "rms_norm_eps", "hidden_act")
    found = read(bare)
    assert (found.kv_heads, found.window, found.norm.eps, found.activation) == (8, 4096, 1e-6, SwiGLU())
    assert read({**MISTRAL_7B, "num_key_value_heads": None}).kv_heads is None
    assert read(without(QWEN3, "head_dim")).head_width == 128
    assert read(without(PYTHIA_70M, "rotary_pct")).positions.fraction == 0.25
    assert not read(without(TINY_LLAMA, "tie_word_embeddings")).tied
    assert read({**GPT2, "activation_function": "gelu"}).activation == GELU()


def test_what_some_published_files_say_beside() -> None:
    assert read({**GPT2, "_num_labels": 1, "n_special": 0, "predict_special_tokens": True}) == read(GPT2)
    assert read({**GPT2, "output_past": True, "gradient_checkpointing": False}) == read(GPT2)
    beside = {"attention_probs_dropout_prob": 0, "hidden_dropout_prob": 0, "hidden_act": "gelu_fast"}
    assert read({**PYTHIA_70M, **beside}) == replace(read(PYTHIA_70M), activation=GELUTanh())
    linear = {"rope_scaling": {"factor": 4.0, "type": "linear"}, "rope_theta": 100000}
    assert read({**LLAMA_1, **linear}).positions == Rotary(theta=1e5, scaling=Linear(4.0))


def test_windows_from_one_block_on() -> None:
    windows = {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 22}
    expected = (*(Sight(),) * 22, Sight(5), Sight(5))
    assert read({**QWEN2_HALF_B, **windows}).sights == expected
    kinds = ["full_attention", "sliding_attention"] * 12
    assert read({**QWEN2_HALF_B, **windows, "layer_types": kinds}).cycle == (Sight(), Sight(5))
    assert read({**QWEN2_HALF_B, **windows, "layer_types": ["sliding_attention"] * 24}).window == 5


@pytest.mark.parametrize(("probability", "expected"), [(0.1, 0.1), (0.3, 0.0)])
def test_dropouts_that_differ_are_none(probability: float, expected: float) -> None:
    assert read({**GPT2, "attn_pdrop": probability}).dropout == expected


# Refused

YARN = {"rope_type": "yarn", "factor": 4.0}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "activation": ({**GPT2, "activation_function": "quick_gelu"}, "activation_function"),
    "gate": ({**LLAMA_1, "hidden_act": "relu"}, "hidden_act"),
    "scores by layer": ({**GPT2, "scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
    "cross-attention": ({**GPT2, "add_cross_attention": True}, "add_cross_attention"),
    "pruned": ({**GPT2, "pruned_heads": {"0": [1]}}, "pruned_heads"),
    "quantised": ({**LLAMA_1, "quantization_config": {"bits": 4}}, "quantization_config"),
    "own code": ({**LLAMA_1, "auto_map": {"AutoModel": "x.Y"}}, "auto_map"),
    "missing": (without(LLAMA_1, "hidden_size"), "hidden_size"),
    "no number": ({**LLAMA_1, "hidden_size": "4096"}, "hidden_size"),
    "true": ({**LLAMA_1, "num_hidden_layers": True}, "num_hidden_layers"),
    "huge": ({**LLAMA_1, "vocab_size": 2**70}, "vocab_size"),
    "deep": ({**LLAMA_1, "num_hidden_layers": 10**12}, "num_hidden_layers"),
    "no heads": ({**LLAMA_1, "num_attention_heads": 0}, "heads"),
    "indivisible": ({**LLAMA_1, "num_attention_heads": 30, "head_dim": 128}, "num_attention_heads"),
    "epsilon": ({**LLAMA_1, "rms_norm_eps": float("nan")}, "eps"),
    "interleaved": ({**LLAMA_1, "rope_interleaved": True}, "rope_interleaved"),
    "a part turned": ({**LLAMA_1, "partial_rotary_factor": 0.5}, "partial_rotary_factor"),
    "odd heads": ({**TINY_LLAMA, "head_dim": 65}, "by head_dim (65) a llama turns 65 features"),
    "odd part": ({**PYTHIA_70M, "rotary_pct": 0.05}, "rotary_pct"),
    "parts differ": ({**PYTHIA_70M, "partial_rotary_factor": 0.5}, "partial_rotary_factor"),
    "dynamic": ({**LLAMA_1, "rope_scaling": {"type": "dynamic", "factor": 2.0}}, "dynamic"),
    "longrope": ({**LLAMA_1, "rope_parameters": {"rope_type": "longrope", "long_factor": [1.0]}}, "longrope"),
    "no mapping": ({**LLAMA_1, "rope_scaling": "linear"}, "rope_scaling"),
    "no factor": ({**LLAMA_1, "rope_scaling": {"type": "linear"}}, "factor"),
    "unknown entry": ({**LLAMA_1, "rope_scaling": {"type": "linear", "factor": 2.0, "finetuned": True}}, "finetuned"),
    "two types": ({**LLAMA_1, "rope_scaling": {"type": "dynamic", "rope_type": "default"}}, "rope_scaling.type"),
    "steepness": ({**LLAMA_1, "rope_scaling": {**YARN, "attention_factor": 1.0}}, "attention_factor"),
    "scales": ({**LLAMA_1, "rope_scaling": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.7}}, "mscale"),
    "not truncated": ({**LLAMA_1, "rope_scaling": {**YARN, "truncate": False}}, "truncate"),
    "spellings differ": ({**LLAMA_3_2_1B, "rope_parameters": {"rope_type": "default"}}, "rope_scaling"),
    "by kind of block": ({**QWEN3, "rope_parameters": {"full_attention": {"rope_type": "default"}}}, "full_attention"),
    "window of nothing": ({**MISTRAL_7B, "sliding_window": 0}, "window"),
    "kinds of blocks": ({**QWEN3, "layer_types": ["linear_attention"] * 28}, "layer_types"),
    "too few kinds": ({**QWEN3, "layer_types": ["full_attention"]}, "layer_types"),
    "no window to slide": ({**QWEN3, "layer_types": ["sliding_attention"] * 28}, "layer_types"),
    "kinds of Mistral": ({**MISTRAL_7B, "layer_types": ["sliding_attention"] * 32}, "layer_types"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_understood_is_refused_by_name(case: str) -> None:
    data, named = REFUSED[case]
    with pytest.raises(UserError) as error:
        read(data)
    assert named in str(error.value)
    assert "\n" not in str(error.value)


def test_every_variant_is_read() -> None:
    for variant in VARIANTS:
        assert isinstance(read(as_saved(their_config(variant))), StackConfig)
