"""A decoder of ours written as each family says it: read again it is the same, and transformers computes the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.models import choices as c
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig, Sight
from tests.equalities.variants import redrawn
from tests.formats.hugging_face.given import V, as_saved, assert_near, family_of, read
from tests.oracles.hf_pairs import hf

SIZES = DecoderConfig(vocab=V, layers=3, heads=6, width=24, feedforward_width=14, context=19, tied=False)
LLAMA = replace(
    SIZES,
    kv_heads=2,
    head_width=8,
    activation=c.SwiGLU(),
    norm=c.RMSNorm(eps=1e-4),
    positions=c.Rotary(theta=50.0, scaling=c.Llama3(factor=4.0, original_context=16)),
)
OURS: dict[str, tuple[str, DecoderConfig]] = {
    # Without the biases that theirs always has: zeros are written.
    "gpt2": ("gpt2", replace(SIZES, norm=c.LayerNorm(bias=False), activation=c.GELUTanh())),
    "gpt2, unscaled": ("gpt2", replace(SIZES, attention_scale=1.0, activation=c.ReLUSquared(), tied=True)),
    "neox": (
        "gpt_neox",
        replace(SIZES, width=48, block=c.Parallel(), output_bias=True, positions=c.Rotary(fraction=0.5, theta=70.0)),
    ),
    "neox, linear": (
        "gpt_neox",
        replace(SIZES, activation=c.GELUTanh(), positions=c.Rotary(scaling=c.Linear(factor=2.0)), bias=True),
    ),
    "llama": ("llama", LLAMA),
    "llama, a bias": ("llama", replace(LLAMA, qkv_bias=True, tied=True, activation=c.GEGLUTanh())),
    "llama, linear": ("llama", replace(LLAMA, positions=c.Rotary(scaling=c.Linear(factor=3.0)))),
    "llama, yarn": (
        "llama",
        replace(LLAMA, bias=True, positions=c.Rotary(theta=50.0, scaling=c.YaRN(4.0, 16, fast=3.0, slow=0.5))),
    ),
    "mistral": ("mistral", replace(LLAMA, window=3)),
    "mistral, all seen": ("mistral", replace(LLAMA, positions=c.Rotary())),
    "qwen2": ("qwen2", replace(LLAMA, head_width=None, cycle=(Sight(), Sight(2)))),
    "qwen3": ("qwen3", replace(LLAMA, qk_norm=True, output_bias=True, cycle=(Sight(3), Sight(), Sight(3)))),
}


def written(family: str, config: DecoderConfig) -> dict[str, Any]:
    """The config.json that is written of a model."""
    quiet = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    return {"model_type": family, **quiet, **family_of(family).write(config)}


@torch.no_grad()
def check_theirs(family: str, config: DecoderConfig, change: Callable[[dict[str, Any]], dict[str, Any]] = dict) -> None:
    """Theirs, from what is written of ours, with our weights: the same logits."""
    ours = redrawn(build(config, seed=1)).float()
    completed = family_of(family).completed(config)
    theirs = hf.AutoModelForCausalLM.from_config(hf.AutoConfig.for_model(**change(written(family, completed)))).eval()
    state = ours.state_dict()
    whole = build(completed, device="meta").state_dict()
    tensors = {
        name.replace("embed_out.", "lm_head."): part
        for row in family_of(family).rows(completed)
        for name, part in row.split(state.get(row.ours, torch.zeros(whole[row.ours].shape))).items()
    }
    theirs.load_state_dict(tensors)
    ids = torch.randint(V, (2, 11))
    assert_near(ours(ids), theirs(ids).logits, 1e-5)


@pytest.mark.parametrize("name", OURS)
def test_transformers_computes_what_was_written(name: str) -> None:
    family, config = OURS[name]
    completed = family_of(family).completed(config)
    data = written(family, completed)
    assert read(data) == completed
    assert read(as_saved(hf.AutoConfig.for_model(**data))) == completed
    check_theirs(family, config)


FAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "epsilon": ("llama", {"rms_norm_eps": 1e-2}),
    "scaling": ("llama", {"rope_scaling": None, "rope_parameters": None}),
    "window": ("mistral", {"sliding_window": None}),
    "kinds of blocks": ("qwen2", {"layer_types": None}),
    "part of the head": ("neox", {"rope_parameters": None, "rotary_pct": 0.25}),
    "scale": ("gpt2, unscaled", {"scale_attn_weights": True}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_another_word_in_the_file_is_caught(fault: str) -> None:
    name, words = FAULTS[fault]
    with pytest.raises(AssertionError, match=r"^differs by"):
        check_theirs(*OURS[name], change=lambda data: {**data, **words})


# Whatever a family can say


NUMBERS = st.sampled_from([1e-6, 1e-5, 3e-4])
SCALINGS = st.one_of(
    st.just(c.Unscaled()),
    st.builds(c.Linear, st.sampled_from([2.0, 3.5])),
    st.builds(c.Llama3, st.sampled_from([2.0, 8.0]), st.just(1.5), st.just(3.0), st.sampled_from([8, 64])),
    st.builds(c.YaRN, st.sampled_from([2.0, 4.0]), st.sampled_from([8, 64]), st.just(20.0), st.just(2.0)),
)


@st.composite
def drawn(draw: st.DrawFn, family: str) -> DecoderConfig:
    """A configuration that the family can say, perhaps without biases that it has."""
    heads, kv_heads = draw(st.sampled_from([(4, 2), (6, 3), (6, 6), (3, 1)]))
    llama = family not in ("gpt2", "gpt_neox")
    config = DecoderConfig(
        vocab=draw(st.integers(1, 99)),
        layers=draw(st.integers(1, 5)),
        heads=heads,
        width=heads * 8,
        kv_heads=kv_heads if llama else None,
        head_width=draw(st.sampled_from([None, 8, 10])) if llama else None,
        feedforward_width=draw(st.sampled_from([None, 17, 32 * heads])),
        context=draw(st.integers(1, 99)),
        dropout=draw(st.sampled_from([0.0, 0.25])),
        tied=draw(st.booleans()),
        qkv_bias=draw(st.booleans()) if family != "mistral" else False,
        bias=draw(st.booleans()) if family in ("gpt2", "gpt_neox", "llama") else False,
        output_bias=draw(st.sampled_from([None, True, False])) if family in ("gpt2", "gpt_neox", "llama") else None,
        kernel=draw(st.sampled_from([c.Auto(), c.Visible()])),
    )
    if family == "gpt2":
        activation = draw(st.sampled_from([c.ReLU(), c.ReLUSquared(), c.GELU(), c.GELUTanh()]))
        norm = c.LayerNorm(draw(NUMBERS), draw(st.booleans()))
        return replace(config, activation=activation, norm=norm, attention_scale=draw(st.sampled_from([None, 1.0])))
    rotary = c.Rotary(theta=draw(st.sampled_from([1e4, 5e5])), scaling=draw(SCALINGS))
    if family == "gpt_neox":
        block = draw(st.sampled_from([c.Parallel(), c.PreNorm()]))
        fraction = draw(st.sampled_from([0.25, 0.5, 1.0]))
        norm = c.LayerNorm(draw(NUMBERS), draw(st.booleans()))
        return replace(config, norm=norm, block=block, positions=replace(rotary, fraction=fraction))
    activation = draw(st.sampled_from([c.SwiGLU(), c.GEGLU(), c.GEGLUTanh()]))
    config = replace(config, activation=activation, norm=c.RMSNorm(draw(NUMBERS)), positions=rotary)
    window = draw(st.sampled_from([None, 3]))
    if family == "mistral":
        return replace(config, window=window)
    if family.startswith("qwen"):
        looks = st.lists(st.sampled_from([Sight(), Sight(window=5)]), max_size=4)
        return replace(config, cycle=tuple(draw(looks)), qk_norm=family == "qwen3")
    return config


@pytest.mark.parametrize("family", ["gpt2", "gpt_neox", "llama", "mistral", "qwen2", "qwen3"])
@settings(max_examples=25)
@given(data=st.data())
def test_what_is_written_is_read_again(family: str, data: st.DataObject) -> None:
    config = data.draw(drawn(family))
    completed = family_of(family).completed(config)
    assert family_of(family).completed(completed) == completed
    assert read(written(family, completed)) == completed
    # But for biases and what goes without saying it is the model that was given.
    assert (completed.sights, completed.hidden, completed.width_of_head) == (
        config.sights,
        config.hidden,
        config.width_of_head,
    )


LOST: dict[str, tuple[str, DecoderConfig]] = {
    "a gate": ("gpt2", replace(SIZES, activation=c.SwiGLU())),
    "rotary": ("gpt2", replace(SIZES, positions=c.Rotary())),
    "a scale": ("gpt2", replace(SIZES, attention_scale=0.3)),
    "a window": ("gpt2", replace(SIZES, window=3)),
    "a norm": ("gpt_neox", replace(SIZES, norm=c.RMSNorm(), positions=c.Rotary())),
    "around": ("gpt_neox", replace(SIZES, block=c.AroundNorm(), positions=c.Rotary())),
    "shared": ("gpt_neox", replace(SIZES, block=c.Parallel(shared=True), positions=c.Rotary())),
    "neighbours": ("gpt_neox", replace(SIZES, width=48, positions=c.Rotary(interleaved=True))),
    "no gate": ("llama", replace(LLAMA, activation=c.GELU())),
    "offset": ("llama", replace(LLAMA, norm=c.RMSNorm(offset=True))),
    "a part": ("llama", replace(LLAMA, positions=c.Rotary(fraction=0.5))),
    "windows": ("mistral", replace(LLAMA, cycle=(Sight(), Sight(3)))),
    "two windows": ("qwen3", replace(LLAMA, qk_norm=True, cycle=(Sight(2), Sight(3)))),
    "no positions": ("qwen3", replace(LLAMA, qk_norm=True, cycle=(Sight(2), Sight(positions=c.NoPositions())))),
    "norms of heads": ("llama", replace(LLAMA, qk_norm=True)),
    "no norms of heads": ("qwen3", LLAMA),
    "a bias of the head": ("llama", replace(LLAMA, head_bias=True)),
    "a softcap": ("llama", replace(LLAMA, softcap=30.0)),
    "scaled embedding": ("llama", replace(LLAMA, scale_embedding=True)),
}


@pytest.mark.parametrize("part", LOST)
def test_what_a_family_cannot_say_is_not_there_when_read_again(part: str) -> None:
    family, config = LOST[part]
    completed = family_of(family).completed(config)
    assert read(written(family, completed)) != completed
