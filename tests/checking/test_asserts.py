"""Assertions pass on what is right, show the smallest counter-example of what is wrong, and never pass on what they cannot see."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from torch import nn

from bench.checking.first.attention_right import NanoGPT
from bench.checking.first.weights import Heads, RowsMixed
from clearhead.checking import (
    assert_batch_independent,
    assert_causal,
    assert_padding_invariant,
    assert_rounding_only,
    assert_same,
    asserts,
)
from clearhead.messages import UserError
from tests.checking.diff.examples import EQUAL, PARTED


def test_right_modules_pass_and_give_the_report():
    assert assert_causal(NanoGPT, kind="attention").kind == "attention"
    assert assert_batch_independent(Heads(), kind="attention").checks


def test_a_leak_is_shown_as_text():
    with pytest.raises(AssertionError) as raised:
        assert_causal(Heads(), kind="attention")
    text = str(raised.value)
    assert "causal.future-leak" in text
    assert "fix:" in text
    assert "█ !" in text


def test_mixed_rows_are_shown():
    with pytest.raises(AssertionError, match=r"batch\.mixing.*row"):
        assert_batch_independent(RowsMixed(), kind="attention")


def test_what_cannot_be_seen_does_not_pass():
    with pytest.raises(AssertionError, match="could not be seen"):
        assert_padding_invariant(Heads(), kind="attention")


X = torch.linspace(-2, 3, 30, dtype=torch.float64).view(5, 6)


@pytest.mark.parametrize(
    ("other", "verdict"),
    [(X + 1e-15, "rounding"), (X.float().double(), "island"), (X.float(), "rounding"), (X.bfloat16(), "rounding")],
)
def test_rounding_of_tensors(other, verdict):
    assert assert_rounding_only(X, other).verdict == verdict


@pytest.mark.parametrize(
    "other", [X + 1e-3, X.clone().fill_(float("nan")), X[:4], (X + 1e-3).float(), (X * 1.5).bfloat16()]
)
def test_more_than_rounding_is_a_fault(other):
    with pytest.raises(AssertionError):
        assert_rounding_only(X, other)


def test_the_place_of_the_largest_difference_is_said():
    wrong = X.clone()
    wrong[3, 2] += 0.1
    with pytest.raises(AssertionError, match=r"\[3, 2\]"):
        assert_rounding_only(X, wrong)


def test_of_functions_the_types_that_ran_decide():
    layer = nn.Linear(6, 6).double()
    shift = 1e-7
    assert assert_rounding_only(layer, lambda x: x @ layer.weight.T + layer.bias, X).verdict == "rounding"
    assert assert_rounding_only(torch.softmax, lambda x, _: x.float().softmax(-1).double(), X, -1).verdict == "island"
    with pytest.raises(AssertionError):
        assert_rounding_only(layer, lambda x: layer(x) + shift, X)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(UserError):
        assert_rounding_only(X, torch.tanh)
    with pytest.raises(UserError):
        assert_rounding_only(lambda: 3, lambda: 3)


def test_the_same_give_what_was_compared(monkeypatch):
    monkeypatch.setattr(asserts, "diff", lambda *_, **__: EQUAL)
    assert assert_same("a", "b") is EQUAL


def test_two_that_part_are_shown_with_the_reason_and_the_stages(monkeypatch):
    monkeypatch.setattr(asserts, "diff", lambda *_, **__: PARTED)
    with pytest.raises(AssertionError, match=r"(?s)are not the same.*blocks\.4\.norm.*norm\.eps.*eps 1e-05.*DIFFERS"):
        assert_same("a", "b")


def test_two_of_one_name_are_told_apart():
    class Linear(nn.Linear):
        def forward(self, x):
            return super().forward(x) * 1.5

    with pytest.raises(
        AssertionError, match=r"torch\.nn\.modules\.linear\.Linear and \S+test_asserts\S+Linear are not"
    ):
        assert_same(nn.Linear(6, 6), Linear(6, 6), weights="a")
    assert assert_same(nn.Linear(6, 6), nn.Linear(6, 6), weights="a").ok


def test_what_shows_nothing_is_not_the_same(monkeypatch):
    bare = replace(EQUAL, pairs=(replace(EQUAL.pairs[0], b="", held="unpaired"),))
    monkeypatch.setattr(asserts, "diff", lambda *_, **__: bare)
    with pytest.raises(AssertionError, match="nothing is shown"):
        assert_same("a", "b")


def test_the_names_cost_no_torch():
    code = "import sys, clearhead.checking, clearhead.checking.pytest_plugin; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
