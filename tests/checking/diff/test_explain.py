"""A model beside its varied self: the reason is found, reproduced, at its place."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from clearhead.checking.diff.candidates import Place, grafted, place_of
from clearhead.checking.diff.explain import explained
from clearhead.checking.diff.ours import ModelSide
from clearhead.checking.diff.report import Reason
from clearhead.checking.diff.variation import Variation
from clearhead.checking.diff.variations import variations
from tests.checking.diff.ours_made import CONFIGS, T, side
from tests.checking.diff.test_variations import RELATIVE, given


def found(name: str, text: str) -> Variation:
    """The variation of a model that is said so."""
    return next(each for each in variations(CONFIGS[name], T) if each.text_b == text)


def reasons(name: str, other: ModelSide) -> tuple[tuple[Reason, ...], bool]:
    """Why the model parts from the other, and whether that is all."""
    read = given(2 if name == "t5" else 1)
    told, after = explained(side(name), other.run(read), read)
    return told, after.first is None


@pytest.mark.parametrize(
    ("name", "text", "id", "place"),
    [
        ("gpt", "the activation is GELU (tanh)", "activation.variant", "blocks.0.feedforward.hidden"),
        ("gpt", "norms add eps 1e-12", "norm.eps-value", "blocks.0.attention_norm"),
        ("gpt", "LayerNorm divides the variance by n - 1", "norm.unbiased-variance", "blocks.0.attention_norm"),
        ("gpt", "the norm before the head is missing", "norm.final-missing", "norm"),
        ("llama", "the gain of a norm is 1 + w", "norm.offset", "blocks.0.attention_norm"),
        ("llama", "query head h reads key/value head h % 2", "heads.kv-tiled", "blocks.0.attention.scores"),
        ("bert", "the bias of q, k and v is missing", "projection.bias", "blocks.0.attention.q"),
        ("t5", "the activation is ReLU", "activation.variant", "encoder.blocks.0.feedforward.hidden"),
    ],
)
def test_a_change_is_named_at_its_place(name: str, text: str, id: str, place: str) -> None:
    told, whole = reasons(name, side(name).varied(found(name, text)))
    assert whole
    (reason,) = told
    assert (reason.id, reason.certainty) == (id, "reproduced")
    assert text in reason.text
    assert reason.place == place
    assert reason.after < 1e-12 < reason.before


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_every_change_is_named(name: str) -> None:
    wrong = []
    # As many tokens as the search reads: a decoder's target is shorter by one.
    for each in variations(CONFIGS[name], T - (name == "t5")):
        told, whole = reasons(name, side(name).varied(each))
        if each.id in RELATIVE:
            assert whole
            assert not told
        elif not whole or [reason.id for reason in told] != [each.id]:
            wrong.append((each.id, each.text_b, told))
    assert not wrong


def test_two_changes_at_two_places_are_two_reasons() -> None:
    first, second = (
        found("llama", text) for text in ("the activation is GEGLU (erf)", "the norm before the head is missing")
    )
    told, whole = reasons("llama", side("llama").varied(first).varied(replace(second, config=first.config)))
    assert whole
    assert [reason.id for reason in told] == ["activation.variant", "norm.final-missing"]


@pytest.mark.slow
def test_two_changes_at_one_place_are_two_reasons() -> None:
    own = side("gpt")
    eps = found("gpt", "norms add eps 1e-06")
    gain = next(each for each in variations(own.config) if each.id == "norm.offset")
    told, whole = reasons("gpt", own.varied(eps).varied(replace(gain, config=eps.config)))
    assert whole
    assert {reason.id for reason in told} == {"norm.eps-value", "norm.offset"}


@pytest.mark.parametrize("number", [0, 1])
def test_a_change_in_one_block_is_said_to_be_there_alone(number: int) -> None:
    own = side("gpt")
    changed = grafted(own, own.varied(found("gpt", "the activation is ReLU")), Place("", number))
    told, whole = reasons("gpt", changed)
    assert whole
    (reason,) = told
    assert reason.id == "activation.variant"
    assert f"blocks.{number} alone" in reason.text


@pytest.mark.slow
def test_what_no_change_explains_is_located_only() -> None:
    own = side("gpt")
    drawn = torch.Generator().manual_seed(1)
    odd = {
        name: torch.randn(x.shape, generator=drawn).double() for name, x in own.tensors.items() if "up.weight" in name
    }
    told, whole = reasons("gpt", own.with_tensors(odd))
    assert not told
    assert not whole


def test_equal_models_have_no_reason() -> None:
    assert reasons("bert", side("bert")) == ((), True)


def test_places_of_stages() -> None:
    assert place_of("encoder.blocks.3.attention.q") == Place("encoder", 3)
    assert place_of("blocks.12.output") == Place("", 12)
    assert place_of("logits") is None
