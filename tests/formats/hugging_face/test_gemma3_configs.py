"""Gemma 3's config.json: published ones, both spellings, what is refused, what is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from clearhead.messages import UserError
from clearhead.models import choices as kinds
from clearhead.models.config import DecoderConfig, Sight
from tests.formats.hugging_face.gemmas import FULL, SLIDING, VARIANTS, config_of, hf, ids, theirs_of
from tests.formats.hugging_face.given import as_saved, family_of, read

PUBLISHED: dict[str, Any] = {
    "architectures": ["Gemma3ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attn_logit_softcapping": None,
    "bos_token_id": 2,
    "cache_implementation": "hybrid",
    "eos_token_id": [1, 106],
    "final_logit_softcapping": None,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "initializer_range": 0.02,
    "intermediate_size": 6912,
    "max_position_embeddings": 32768,
    "model_type": "gemma3_text",
    "num_attention_heads": 4,
    "num_hidden_layers": 26,
    "num_key_value_heads": 1,
    "pad_token_id": 0,
    "query_pre_attn_scalar": 256,
    "rms_norm_eps": 1e-06,
    "rope_local_base_freq": 10000,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "sliding_window": 512,
    "sliding_window_pattern": 6,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.50.0.dev0",
    "use_cache": True,
    "vocab_size": 262144,
}
"""gemma-3-1b-it; gemma-3-270m names the kinds of its blocks one by one."""
SMALLEST = PUBLISHED | {
    "_sliding_window_pattern": 6,
    "hidden_size": 640,
    "intermediate_size": 2048,
    "num_hidden_layers": 18,
    "layer_types": [FULL if index % 6 == 5 else SLIDING for index in range(18)],
    "rope_local_base_freq": 10000.0,
    "use_bidirectional_attention": False,
}
del SMALLEST["sliding_window_pattern"], SMALLEST["cache_implementation"]
ONE_B = DecoderConfig(
    vocab=262_144,
    layers=26,
    heads=4,
    kv_heads=1,
    width=1152,
    head_width=256,
    feedforward_width=6912,
    context=32_768,
    activation=kinds.GEGLUTanh(),
    norm=kinds.RMSNorm(eps=1e-6, offset=True),
    block=kinds.AroundNorm(),
    positions=kinds.Rotary(theta=1e6),
    qk_norm=True,
    scale_embedding=True,
    cycle=(Sight(512, kinds.Rotary(theta=1e4)),) * 5 + (Sight(),),
)


def test_published_configurations() -> None:
    assert read(PUBLISHED) == ONE_B
    assert read(SMALLEST) == replace(ONE_B, layers=18, width=640, feedforward_width=2048)
    four = PUBLISHED | {"rope_scaling": {"factor": 8.0, "rope_type": "linear"}}
    assert read(four) == replace(ONE_B, positions=kinds.Rotary(theta=1e6, scaling=kinds.Linear(8.0)))


@pytest.mark.parametrize("name", VARIANTS)
def test_both_spellings_say_the_same(name: str) -> None:
    """What transformers saves, and the older file of the same model; and both at once."""
    newer = as_saved(config_of(VARIANTS[name]))
    older = {key: value for key, value in newer.items() if key != "rope_parameters"} | {
        "rope_theta": 200.0,
        "rope_scaling": {"type": "linear", "factor": 3.0},
        "rope_local_base_freq": 30.0,
    }
    assert read(older) == read(newer) == read(newer | older)
    assert read(older | {"rope_local_base_freq": 31.0}) != read(newer) or name == "all see all"


@pytest.mark.parametrize("data", [PUBLISHED, SMALLEST], ids=["1b", "270m"])
def test_what_is_written_is_read_back(data: dict[str, Any]) -> None:
    family = family_of("gemma3_text")
    written = family.write(read(data)) | {"model_type": "gemma3_text"}
    assert read(written) == read(data)
    assert read(as_saved(hf.Gemma3TextConfig(**written))) == read(data)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("final_logit_softcapping", 30.0),
        ("attn_logit_softcapping", 50.0),
        ("use_bidirectional_attention", True),
        ("hidden_activation", "mish"),
        ("query_pre_attn_scalar", 0),
        ("layer_types", [FULL]),
        ("layer_types", ["chunked_attention"] * 26),
        ("sliding_window_pattern", 0),
        ("sliding_window", None),
        ("num_attention_heads", 5),
        ("rope_scaling", {"rope_type": "dynamic", "factor": 2.0}),
        ("rope_parameters", {"rope_theta": 5.0, "rope_type": "default"}),
        ("rope_parameters", {FULL: {"rope_theta": 5.0, "rope_type": "default"}}),
        ("rope_parameters", {SLIDING: {"partial_rotary_factor": 0.5, "rope_type": "default"}}),
        ("vision_config", {}),
    ],
)
def test_what_is_not_understood_is_refused(field: str, value: Any) -> None:
    with pytest.raises(UserError) as caught:
        read(PUBLISHED | {field: value})
    assert field in str(caught.value)
    assert "\n" not in str(caught.value)


@torch.no_grad()
def test_their_code_does_not_cap_scores() -> None:
    """Why a file that asks for it is refused: the field is read, and changes nothing."""
    theirs, prompt = theirs_of(), ids()
    plain = theirs(prompt).logits
    for module in theirs.modules():
        if hasattr(module, "attn_logit_softcapping"):
            module.attn_logit_softcapping = 0.01
    assert torch.equal(theirs(prompt).logits, plain)


def test_what_goes_without_saying_is_not_lost() -> None:
    """A model of ours that names the positions of each block though they are the model's."""
    family, rotary = family_of("gemma3_text"), kinds.Rotary(theta=77.0)
    for cycle in [(Sight(4, rotary), Sight()), (Sight(4, rotary),), (Sight(4, kinds.Rotary(theta=5.0)), Sight())]:
        mine = family.completed(replace(ONE_B, positions=rotary, cycle=cycle, qkv_bias=True))
        assert mine.output_bias
        assert read(family.write(mine) | {"model_type": "gemma3_text"}) == mine


@pytest.mark.parametrize(
    "fields",
    [
        {"positions": kinds.Rotary(interleaved=True)},
        {"positions": kinds.Rotary(scaling=kinds.Llama3())},
        {"cycle": (Sight(4), Sight(5), Sight())},
        {"cycle": (Sight(None, kinds.Rotary(theta=5.0)), Sight(3))},
        {"attention_scale": 0.3},
        {"norm": kinds.RMSNorm()},
        {"softcap": 2.0},
    ],
    ids=str,
)
def test_what_gemma_cannot_say_is_lost(fields: dict[str, Any]) -> None:
    """Export compares, and refuses."""
    family, mine = family_of("gemma3_text"), replace(ONE_B, **fields)
    assert read(family.write(mine) | {"model_type": "gemma3_text"}) != family.completed(mine)
