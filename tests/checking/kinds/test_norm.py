"""The kind `norm`: every planted fault is found and named, right norms are silent, and the formulas tell each other apart."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bench.checking.case import Case
from bench.checking.first import norm, norm_right
from clearhead.checking.check import check
from clearhead.checking.kinds.norm_case import open_norm
from clearhead.checking.kinds.norm_eps import epsilon
from clearhead.checking.kinds.norm_formulas import LAYER, RMS, affine, best, faulty, legal, other_axes
from clearhead.checking.settings import Settings
from clearhead.checking.target import target_of
from tests.checking.kinds.sets import chosen, report


@pytest.mark.parametrize("case", chosen(norm.CASES))
def test_a_planted_fault_is_named_first(case: Case) -> None:
    found = report(norm, case)
    assert not found.ok
    assert found.kind == "norm"
    assert found.faults[0].id in (case.fault, *case.also)
    assert found.faults[0].fix


@pytest.mark.parametrize("case", chosen(norm_right.CASES, 4))
def test_a_right_norm_is_silent(case: Case) -> None:
    found = report(norm_right, case)
    assert found.ok
    assert found.kind == "norm"


def rows() -> torch.Tensor:
    drawn = torch.Generator().manual_seed(0)
    size = 10 ** torch.linspace(2, 3, 15, dtype=torch.float64).reshape(3, 5, 1)
    return (torch.randn(3, 5, 24, generator=drawn, dtype=torch.float64) + 0.7) * size


def test_each_formula_is_told_from_all_others_whatever_weight_and_bias() -> None:
    x, drawn = rows(), torch.Generator().manual_seed(1)
    gamma, beta = (torch.randn(24, generator=drawn, dtype=torch.float64) for _ in range(2))
    everything = legal(x) | faulty(x)
    for name, n in everything.items():
        fit = best(everything, n * gamma + beta)
        assert fit.left < 1e-9
        assert torch.allclose(everything[fit.name], n) or fit.name == name


def test_statistics_over_tokens_are_no_norm_of_a_position() -> None:
    x = rows()
    wrong = other_axes(x)["tokens"]
    assert best(legal(x), wrong).left > 1e-2
    assert best(other_axes(x), wrong).name.strip() == "tokens"


def test_the_way_a_weight_enters_is_found_with_its_constant() -> None:
    w = torch.rand(24, generator=torch.Generator().manual_seed(2), dtype=torch.float64) + 0.5
    for form, gamma in (("w", w), ("1 + w", 1 + w), ("2 + w", 2 + w), ("w²", w * w)):
        found = affine(0.25 * gamma, {"weight": w})
        assert found is not None
        assert (found.form, round(found.constant, 9)) == (form, 0.25)
    assert affine(w.flip(0), {"weight": w}) is None


@pytest.mark.parametrize("place", ["inside", "outside", "bound", "none"])
def test_the_place_of_epsilon_is_found(place: str) -> None:
    divisors = {
        "inside": lambda v: (v + 3e-4).sqrt(),
        "outside": lambda v: v.sqrt() + 3e-4,
        "bound": lambda v: v.sqrt().clamp(min=3e-4),
        "none": lambda v: v.sqrt(),
    }

    class Norm(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x / divisors[place](x.square().mean(-1, keepdim=True))

    case = open_norm(target_of(Norm(), "Norm", Settings()), Settings(width=24))
    found = epsilon(case, Norm(), torch.ones(24, dtype=torch.float64), torch.zeros(24, dtype=torch.float64))
    assert found.place == place
    assert found.value == (0 if place == "none" else pytest.approx(3e-4, rel=1e-3))


def test_a_module_that_does_not_move_is_not_passed() -> None:
    class LayerNorm(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.zeros_like(x)

    found = check(LayerNorm(), kind="norm", width=24)
    verdict = next(each.verdict for each in found.checks if each.id == "norm.axis")
    assert verdict == "skipped"


def test_names_of_formulas_are_the_legal_ones() -> None:
    assert set(legal(rows())) == {LAYER, RMS}


def test_a_bias_does_not_hide_what_falls_with_the_size_of_the_input() -> None:
    class SquaredVariance(nn.Module):
        def __init__(self, dim: int = 16) -> None:
            super().__init__()
            self.g, self.b = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            var, mean = torch.var_mean(x, -1, keepdim=True, correction=0)
            return self.g * (x - mean) / (var + 1e-5) ** 2 + self.b

    found = check(SquaredVariance, kind="norm").faults[0]
    assert (found.id, found.certainty) == ("norm.formula", "reproduced")
