"""The shipped configurations: what they cost, how they begin, and how two differ in words."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest
import torch

from clearhead import UserError
from clearhead.messages.table import MESSAGES
from clearhead.models.build import build
from clearhead.models.choices import ReLU, SwiGLU
from clearhead.models.config import DecoderConfig
from clearhead.models.cost import parameters
from clearhead.models.explain import explain
from clearhead.models.presets import PRESETS, preset

# Counted by others: Radford et al. 2019 (with tied head), Touvron et al. 2023, and the models' own pages.
PUBLISHED = {"gpt2": 124_439_808, "llama": 6_738_415_616, "qwen2": 494_032_768, "qwen3": 596_049_920}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_preset_has_the_published_number_of_parameters(name: str) -> None:
    assert sum(parameters(PRESETS[name]).values()) == PUBLISHED[name]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_builds_on_meta_with_as_many_parameters_as_the_formula_says(name: str) -> None:
    model = build(PRESETS[name], device="meta")
    assert sum(parameter.numel() for parameter in model.parameters()) == sum(parameters(PRESETS[name]).values())
    assert model(torch.zeros(2, 3, dtype=torch.long, device="meta")).shape == (2, 3, PRESETS[name].vocab)


@pytest.mark.parametrize("name", PRESETS)
def test_the_first_loss_of_a_preset_is_near_ln_v(name: str) -> None:
    """At the preset's own width and vocabulary where they fit; blocks, and what memory would not hold, are fewer."""
    config = PRESETS[name]
    shown = replace(config, layers=min(config.layers, 2), vocab=min(config.vocab, 50_257), context=32)
    if config.width > 1024:
        shown = replace(shown, width=1024, heads=8, feedforward_width=2752)
    model = build(shown, seed=0).eval()
    ids = torch.randint(shown.vocab, (2, 33), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).item()
    assert loss == pytest.approx(math.log(shown.vocab), rel=0.03)


def test_an_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError, match=r"gpt3.*gpt2"):
        preset("gpt3")


def test_the_course_is_the_notes_own() -> None:
    course = PRESETS["course"]
    assert isinstance(course.activation, ReLU)
    assert (course.qkv_bias, course.bias, course.head_bias, course.tied) == (False, True, True, False)


def test_every_field_of_a_decoder_has_its_words() -> None:
    assert all(f"models.explain.of_{field.name}" in MESSAGES for field in fields(DecoderConfig))


def test_explaining_names_each_difference_and_nothing_else() -> None:
    first = DecoderConfig(vocab=65)
    second = replace(first, kv_heads=2, activation=SwiGLU(), tied=False)
    lines = explain(first, second)
    assert [line.partition(":")[0] for line in lines[:3]] == ["kv_heads", "activation", "tied"]
    assert "4 → 2" in lines[0]
    assert "GELU → SwiGLU" in lines[1]
    assert "yes → no" in lines[2]
    one, other = (sum(parameters(config).values()) for config in (first, second))
    assert f"{one:,} → {other:,}" in lines[3]
    assert len(lines) == 6


def test_a_number_that_follows_from_others_is_compared_as_that_number() -> None:
    assert explain(DecoderConfig(width=128, heads=4), DecoderConfig(width=128, heads=4, kv_heads=4, head_width=32)) == [
        "the two configurations are equal"
    ]


def test_explaining_equal_configurations_says_so() -> None:
    assert explain(DecoderConfig(), DecoderConfig()) == ["the two configurations are equal"]
