"""The formula of attention followed in forwards: each planted fault is named, right ones are left alone, the blind say so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from bench.checking.case import Case
from bench.checking.first import (
    attention_formula,
    attention_formula_b,
    attention_formula_right,
    attention_formula_rotary,
)
from clearhead.checking.common.unused import unused
from clearhead.checking.kinds.formula import formula, formula_of_call
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.sequence import open_sequence
from clearhead.checking.order import ordered
from clearhead.checking.settings import Settings
from clearhead.checking.target import target_of

MODULES = (attention_formula, attention_formula_b, attention_formula_rotary, attention_formula_right)
EVERY = [(module, case) for module in MODULES for case in module.CASES]


def once() -> Iterator[object]:
    """Every fault once, the rest marked as slow."""
    seen: set[str] = set()
    for pair in EVERY:
        fault = pair[1].fault
        if fault is None:
            continue
        yield pytest.param(pair, id=pair[1].name, marks=[pytest.mark.slow] if fault in seen else [])
        seen.add(fault)


def found_in(module: object, case: Case) -> Found:
    target = target_of(getattr(module, case.name), case.name, Settings())
    opened = open_sequence(target, Settings())
    # A part that is cut off from its gradient follows the formula: it is found by another question of the kind.
    return formula(opened, Settings()) + (unused(opened.case) if case.fault == "parameter.unused" else Found())


@pytest.mark.parametrize("pair", list(once()))
def test_a_planted_fault_is_named_first(pair: tuple[object, Case]) -> None:
    module, case = pair
    faults = ordered(found_in(module, case).faults)
    assert faults, case.name
    assert faults[0].id in (case.fault, *case.also)
    assert case.fault == "parameter.unused" or faults[0].where.startswith("attention_formula")


@pytest.mark.parametrize("pair", [pytest.param(p, id=p[1].name) for p in EVERY if p[1].fault is None])
def test_a_right_one_is_left_alone(pair: tuple[object, Case]) -> None:
    found = found_in(*pair)
    assert not found.faults
    assert not any(each.verdict == "fail" for each in found.checks)


class Linear(nn.Module):
    """No softmax: nothing to follow."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(x)


def test_without_a_softmax_nothing_is_passed() -> None:
    module = Linear().double()
    found = formula_of_call(module, module, torch.randn(2, 7, 16, dtype=torch.float64), width=16)
    assert {each.verdict for each in found.checks} == {"skipped"}


def test_what_raises_is_not_passed() -> None:
    def call(x: Tensor) -> Tensor:
        raise ValueError("no")

    found = formula_of_call(None, call, torch.randn(2, 7, 16), width=16)
    assert {each.verdict for each in found.checks} == {"skipped"}
    assert "no" in found.checks[0].evidence


class Stack(nn.Module):
    """Two layers, the second without a scale."""

    def __init__(self, *, right: bool) -> None:
        super().__init__()
        self.first = attention_formula_right.CausalNano()
        self.second = attention_formula_right.CausalNano() if right else attention_formula.UnscaledFused()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.first(x)
        return x + self.second(x)


@pytest.mark.parametrize("right", [True, False])
def test_each_attention_of_a_stack_is_looked_at(right: bool) -> None:
    module = Stack(right=right).double().eval()
    found = formula_of_call(module, module, torch.randn(2, 7, 32, dtype=torch.float64), width=32)
    assert [each.id for each in found.faults] == ([] if right else ["scale.missing"])


def test_modes_stay_as_they_were() -> None:
    module = attention_formula_b.DroppedScores().double().eval()
    found = formula_of_call(module, module, torch.randn(2, 7, 32, dtype=torch.float64), width=32, whole=True)
    assert [each.id for each in found.faults] == ["score.dropout"]
    assert not any(each.training for each in module.modules())
