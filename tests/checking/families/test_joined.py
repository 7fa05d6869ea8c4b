"""The checks of a family as part of `check`: beside those of the kind, its own names first, and chosen by `only`."""

from __future__ import annotations

from typing import Any

import pytest

from clearhead.checking.check import check
from tests.checking.families.models import decoder, made, t5
from tests.checking.families.plants import Louder, set_to


def with_eps() -> Any:
    module = made(t5)
    set_to("decoder.final_layer_norm.variance_epsilon", 0.02)(module)
    return module


def test_one_family_of_checks_can_be_asked_alone() -> None:
    only = check(with_eps(), only=["family"])
    assert {each.id.partition(".")[0] for each in only.checks} == {"family"}
    assert [fault.id for fault in only.faults] == ["norm.eps-value"]
    assert only.kind == "seq2seq"
    assert not only.ok


def test_how_to_wrap_what_is_known_is_not_told() -> None:
    report = check(made(t5), only=["family"])
    (note,) = [each for each in report.notes if "its kind (seq2seq)" in each]
    assert "def call" not in note
    assert len(note) < 200


@pytest.mark.slow
def test_a_changed_part_is_the_first_fault_of_the_report() -> None:
    report = check(with_eps())
    assert report.faults[0].id == "norm.eps-value"
    assert "decoder.norm" in report.faults[0].evidence
    assert check(made(t5), only=["family"]).ok


@pytest.mark.slow
def test_a_decoder_is_asked_both() -> None:
    assert check(made(decoder("gpt2"))).ok
    module = made(decoder("gpt2"))
    module.transformer.h[1].attn = Louder(module.transformer.h[1].attn)
    report = check(module)
    assert report.faults[0].id == "residual.scale"
    assert {"family.attention", "causal.future-leak"} <= {each.id for each in report.checks}
