"""Models of every family that is mapped, as their authors left them: every component passes, and no fault is named."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clearhead.checking.families.parts import component, parts
from clearhead.formats.hugging_face.families import FAMILIES
from tests.checking.families.models import bare, bert, decoder, found_in, gemma, made, t5
from tests.formats.hugging_face.decoders import EACH, VARIANTS

DECODER = {"embedding", "norm", "attention", "feedforward", "residual", "head", "cache", "weights"}

WHOLE: dict[str, tuple[Any, set[str]]] = {
    **{variant: (decoder(variant), DECODER) for variant in EACH},
    "neox, sequential": (decoder("neox, sequential, without biases"), DECODER),
    "gemma": (gemma, DECODER),
    "bert": (bert, DECODER - {"cache"}),
    "bert with a pooler": (lambda: bert("BertModel"), DECODER - {"cache"}),
    "t5": (t5, DECODER | {"cross-attention"}),
    "t5 1.1": (lambda: t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False), DECODER | {"cross-attention"}),
    "gpt2 without a head": (bare("GPT2Model", "gpt2"), DECODER - {"head"}),
    "llama without a head": (bare("LlamaModel", "llama"), DECODER - {"head"}),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_nobody_touched_passes_in_every_part(name: str) -> None:
    make, components = WHOLE[name]
    found = found_in(made(make))
    assert {check.id: check.verdict for check in found.checks} == {f"family.{each}": "pass" for each in components}
    assert not found.faults
    # float64 leaves no room for more than the float32 that norms and angles of theirs are computed in.
    assert max(check.largest for check in found.checks) < 1e-6


@pytest.mark.parametrize("variant", ["gpt2", "llama"])
def test_the_products_written_out_pass_as_the_kernel_does(variant: str) -> None:
    module = made(decoder(variant))
    module.config._attn_implementation = "eager"
    assert not found_in(module).faults


def test_a_model_in_bfloat16_passes_and_the_island_is_named() -> None:
    found = found_in(made(decoder("llama")).to(torch.bfloat16))
    assert not found.faults
    assert any("bfloat16" in note for note in found.notes)


@pytest.mark.slow
@pytest.mark.parametrize("variant", [each for each in VARIANTS if each not in EACH])
def test_every_variant_of_a_decoder_passes(variant: str) -> None:
    found = found_in(made(decoder(variant)))
    assert not found.faults
    assert all(check.verdict == "pass" for check in found.checks)


def test_every_family_has_a_table_and_every_part_a_component() -> None:
    class Sizes:
        layers = 2
        encoder = type("Stack", (), {"layers": 3})
        activation = None

    for family in FAMILIES:
        kinds = {component(part.stage) for part in parts(family.name, Sizes)}
        assert {"embedding", "attention", "feedforward", "residual", "norm", "head"} <= kinds
