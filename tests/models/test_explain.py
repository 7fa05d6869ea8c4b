"""How two configurations differ, in words."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from clearhead.messages.table import MESSAGES
from clearhead.models.choices import Mean, Pooled, SwiGLU
from clearhead.models.config import DecoderConfig, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.cost import cache_elements, flops_per_token, parameters
from clearhead.models.explain import explain
from clearhead.models.presets import PRESETS

KINDS: list[type[StackConfig]] = [DecoderConfig, EncoderConfig, EncoderDecoderConfig]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_and_every_field_of_it_has_its_words(kind: type[StackConfig]) -> None:
    assert f"models.explain.kind_{kind.__name__}" in MESSAGES
    assert [field.name for field in fields(kind) if f"models.explain.of_{field.name}" not in MESSAGES] == []


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


def test_explaining_two_encoders_names_segments_and_head() -> None:
    first = EncoderConfig(vocab=65)
    lines = explain(first, replace(first, segments=2, head=Pooled(Mean(), dense=True)))
    assert [line.partition(":")[0] for line in lines[:2]] == ["segments", "head"]
    assert "0 → 2" in lines[0]
    assert "MaskedToken → Pooled(pooling=Mean(), dense=True, unit=False)" in lines[1]
    # Parameters and operations; neither has a cache.
    assert len(lines) == 4


def test_explaining_two_encoder_decoders_compares_what_their_sizes_amount_to() -> None:
    first = EncoderDecoderConfig(layers=3, context=20)
    assert explain(first, replace(first, encoder_layers=3, source_context=20)) == ["the two configurations are equal"]
    lines = explain(first, replace(first, encoder_layers=2, source_context=30, source_vocab=99))
    assert [line.partition(":")[0] for line in lines[:3]] == ["encoder_layers", "source_context", "source_vocab"]
    assert "3 → 2" in lines[0]
    assert "20 → 30" in lines[1]
    assert "not given → 99" in lines[2]
    deeper = explain(first, replace(first, layers=4))
    assert [line.partition(":")[0] for line in deeper[:2]] == ["layers", "encoder_layers"]


@pytest.mark.parametrize(("first", "second"), [("gpt2", "bert"), ("bert", "bart"), ("t5", "gpt2")])
def test_models_of_different_kinds_are_said_to_be_and_compared_where_they_can_be(first: str, second: str) -> None:
    one, other = PRESETS[first], PRESETS[second]
    lines = explain(one, other)
    words = [MESSAGES[f"models.explain.kind_{type(config).__name__}"][0] for config in (one, other)]
    assert lines[0].startswith(f"the first is {words[0]}, the second {words[1]};")
    named = [line.partition(":")[0] for line in lines[1:-3]]
    # Numbers that follow from others are compared as what they are.
    amounts = {"kv_heads": "key_value_heads", "head_width": "width_of_head", "feedforward_width": "hidden"}
    shared = {field.name: amounts.get(field.name, field.name) for field in fields(StackConfig)}
    assert named == [name for name, amount in shared.items() if getattr(one, amount) != getattr(other, amount)]


def test_what_a_difference_costs_is_what_cost_says() -> None:
    gpt2, bert, bart = (PRESETS[name] for name in ("gpt2", "bert", "bart"))
    for one, other in ((gpt2, bert), (gpt2, bart), (bart, bart.decoder)):  # type: ignore[attr-defined]
        said = explain(one, other)[-3:]
        for line, count in zip(said, (parameters, flops_per_token), strict=False):
            assert f"{sum(count(one).values()):,} → {sum(count(other).values()):,} (" in line
        cached = [cache_elements(config, 1, 1, source=0) for config in (one, other)]
        assert f"{cached[0]:,} → {cached[1]:,} (" in said[2]
    assert "a token of the target and one of the source" in explain(gpt2, bart)[-2]
    assert "of the source" not in explain(gpt2, bert)[-2]


def test_a_cache_that_was_not_there_before_has_no_ratio() -> None:
    assert explain(PRESETS["bert"], PRESETS["gpt2"])[-1] == "numbers in the KV cache for each token: none → 18,432"


def test_kinds_alone_may_differ() -> None:
    lines = explain(EncoderDecoderConfig().decoder, EncoderDecoderConfig().encoder)
    assert lines[0].startswith("the first is a decoder, the second an encoder;")
    assert len(lines) == 4
