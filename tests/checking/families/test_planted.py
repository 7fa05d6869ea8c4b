"""Parts that were changed from outside, in several ways and several families: each is named by its block, its component and its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

from tests.checking.families.models import bare, bert, decoder, found_in, gemma, made, t5
from tests.checking.families.plants import (
    Louder,
    another_base,
    closed_over,
    exchanged,
    first_place,
    head_off,
    hooked,
    no_attention,
    no_stream,
    one_late,
    sees_all,
    set_to,
    silent,
    wrapped,
)


class Case(NamedTuple):
    """What is planted, and what must be said: the id, the place, and words of the reason."""

    make: Callable[[], Any]
    plant: Callable[[Any], None]
    id: str
    stage: str
    where: str
    words: str


HERE = "plants.py"
CASES: dict[str, Case] = {
    "a wrapped attention": Case(
        decoder("gpt2"), wrapped, "residual.scale", "blocks.1.attention.output", HERE, "1.25 times"
    ),
    "a forward that calls the old one": Case(
        decoder("gpt2"),
        closed_over,
        "residual.scale",
        "blocks.1.attention.output",
        "transformer.h.1.attn (plants.py",
        "0.5 times",
    ),
    "a head that is off": Case(
        decoder("gpt2"), head_off, "family.changed", "blocks.2.attention.mixed", HERE, "give 0: 1"
    ),
    "a silent feed-forward part": Case(
        bare("GPT2Model", "gpt2"), silent, "family.changed", "blocks.0.feedforward.output", "h.0.mlp", "gives 0"
    ),
    "another activation": Case(
        decoder("gpt2"),
        set_to("transformer.h.1.mlp.act", nn.GELU()),
        "activation.variant",
        "blocks.1.feedforward.hidden",
        "transformer.h.1.mlp",
        "GELU",
    ),
    "another scale": Case(
        decoder("gpt2"),
        set_to("transformer.h.2.attn.scaling", 1.0),
        "scale.missing",
        "blocks.2.attention.mixed",
        "transformer.h.2.attn",
        "by 1",
    ),
    "twice the scale": Case(
        decoder("gpt2"),
        set_to("transformer.h.1.attn.scaling", 0.61),
        "scale.value",
        "blocks.1.attention.mixed",
        "transformer.h.1.attn",
        "by 0.61",
    ),
    "one position for all": Case(
        decoder("gpt2"),
        first_place,
        "position.unused",
        "(positions)",
        HERE,
        "the one of position 0",
    ),
    "an eps": Case(
        decoder("llama"),
        set_to("model.layers.2.input_layernorm.variance_epsilon", 0.017),
        "norm.eps-value",
        "blocks.2.attention_norm",
        "model.layers.2.input_layernorm",
        "0.017",
    ),
    "no attention in a block": Case(
        decoder("llama"),
        no_attention,
        "family.changed",
        "blocks.1.middle",
        "model.layers.1 (plants.py",
        "branch is dropped",
    ),
    "no mask": Case(
        decoder("llama"),
        sees_all,
        "causal.future-leak",
        "blocks.1.attention.mixed",
        "model.layers.1.self_attn",
        "query 0 sees keys 1, 2",
    ),
    "another base": Case(
        decoder("llama"), another_base, "rotary.base", "blocks.0.attention.q", "model.layers.0.self_attn", "base 500"
    ),
    "heads in another order": Case(
        decoder("neox"), exchanged, "qkv.layout", "blocks.1.attention.mixed", "gpt_neox.layers.1.attention", "2, 1, 0"
    ),
    "a block that scales": Case(
        decoder("neox"),
        hooked("gpt_neox.layers.2", lambda x: 1.01 * x),
        "residual.scale",
        "blocks.2.output",
        "gpt_neox.layers.2",
        "1.01 times the stream",
    ),
    "a bias behind a norm": Case(
        decoder("qwen3"),
        hooked("model.norm", lambda x: x + 0.1),
        "norm.shift",
        "(norm)",
        "model.norm",
        "one vector, up to 0.1",
    ),
    "half of a branch behind its norm": Case(
        gemma,
        hooked("model.layers.1.post_attention_layernorm", lambda x: 0.5 * x),
        "residual.scale",
        "blocks.1.middle",
        "model.layers.1",
        "0.5 times the branch",
    ),
    "logits that are scaled": Case(
        decoder("mistral"),
        hooked("lm_head", lambda x: 3 * x),
        "head.scale",
        "(logits)",
        "MistralForCausalLM",
        "3 times",
    ),
    "embeddings that are scaled": Case(
        decoder("qwen2, windows"),
        hooked("model.embed_tokens", lambda x: 2 * x),
        "embedding.scale",
        "(embedding)",
        "model.embed_tokens",
        "2 times",
    ),
    "a sum without the stream": Case(
        bert, no_stream, "residual.missing", "blocks.0.output", "bert.encoder.layer.0", "stream is dropped"
    ),
    "tanh for erf": Case(
        lambda: bert("BertModel"),
        set_to("encoder.layer.1.intermediate.intermediate_act_fn", nn.GELU("tanh")),
        "activation.variant",
        "blocks.1.feedforward.hidden",
        "encoder.layer.1",
        "GELU (tanh)",
    ),
    "the scale of an attention to the source": Case(
        t5,
        set_to("decoder.block.1.layer.1.EncDecAttention.scaling", 0.3),
        "scale.value",
        "decoder.blocks.1.cross_attention.mixed",
        "EncDecAttention",
        "by 0.3",
    ),
    "the last norm of a decoder": Case(
        t5,
        set_to("decoder.final_layer_norm.variance_epsilon", 0.02),
        "norm.eps-value",
        "decoder.norm",
        "T5ForConditionalGeneration",
        "0.02",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_was_changed_is_named(name: str) -> None:
    case = CASES[name]
    module = made(case.make)
    case.plant(module)
    found = found_in(module)
    faults = [fault for fault in found.faults if fault.id != "cache.mismatch"]
    assert [fault.id for fault in faults] == [case.id], faults
    assert case.stage in faults[0].evidence
    assert case.words in faults[0].evidence
    assert case.where in faults[0].where
    assert any(check.verdict == "fail" for check in found.checks)


def test_three_changes_are_three_findings() -> None:
    module = made(decoder("qwen3"))
    module.model.layers[2].self_attn = Louder(module.model.layers[2].self_attn)
    module.model.layers[0].mlp.act_fn = nn.ReLU()
    module.model.norm.variance_epsilon = 0.1
    found = {fault.id: fault.evidence for fault in found_in(module).faults}
    assert set(found) == {"activation.variant", "residual.scale", "norm.eps-value"}
    assert "blocks.0.feedforward.hidden" in found["activation.variant"]
    assert "blocks.2.attention.output" in found["residual.scale"]
    assert "(norm)" in found["norm.eps-value"]


def test_one_change_in_all_blocks_is_one_finding() -> None:
    module = made(decoder("llama"))
    for layer in module.model.layers:
        layer.mlp.act_fn = nn.ReLU()
    (fault,) = found_in(module).faults
    assert fault.id == "activation.variant"
    assert "block 0, 1, 2" in fault.evidence


def test_a_change_that_only_single_tokens_show_is_a_fault_of_the_cache() -> None:
    module = made(decoder("gpt2"))
    hooked("transformer.h.1.mlp", lambda x: x if x.shape[1] > 1 else 1.5 * x)(module)
    (fault,) = found_in(module).faults
    assert fault.id == "cache.mismatch"


def test_queries_scaled_before_the_kernel_are_no_fault() -> None:
    """What is inside of a component is its own affair as long as what it gives is right."""
    module = made(decoder("gpt2"))
    module.config._attn_implementation = "eager"
    attention = module.transformer.h[1].attn
    attention.scaling = attention.scaling / 2
    attention.c_attn.register_forward_hook(
        lambda _module, _args, output: torch.cat([2 * output[..., :12], output[..., 12:]], dim=-1)
    )
    assert not found_in(module).faults


def test_rotary_positions_that_begin_elsewhere_are_no_fault() -> None:
    """Only what lies between two tokens counts: scores are the same."""
    module = made(decoder("llama"))
    one_late(module)
    assert not found_in(module).faults
