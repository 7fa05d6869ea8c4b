"""The activations that gated and squared feed-forward parts use: against PyTorch, with gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from clearhead.ops import ACTIVATIONS, gelu, relu
from clearhead.ops.activation import relu_squared, silu
from tests.oracles.compare import assert_finite, assert_same, assert_within

Function = Callable[[Tensor], Tensor]
THEIRS: dict[str, Function] = {
    "relu": F.relu,
    "relu_squared": lambda x: F.relu(x).pow(2),
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
}


def check(ours: Function, theirs: Function) -> None:
    """Values and gradients, far out too; at the corner of a ReLU any slope between is right."""
    x = torch.cat([torch.linspace(-6, 6, 120), torch.tensor([-1e3, -90.0, -40.0, 40.0, 1e3])]).double()
    results = []
    for function in (ours, theirs):
        leaf = x.clone().requires_grad_()
        y = function(leaf)
        y.sum().backward()
        assert_finite(y, leaf.grad)
        assert leaf.grad is not None
        results.append((y.detach(), leaf.grad))
    for actual, expected in zip(*results, strict=True):
        assert_within(actual / x.abs().clamp(min=1), expected / x.abs().clamp(min=1), 1e-14)


def test_every_definition_has_a_counterpart() -> None:
    assert set(ACTIVATIONS) == set(THEIRS)


@pytest.mark.parametrize("name", THEIRS)
def test_the_definitions_are_pytorch_s(name: str) -> None:
    check(ACTIVATIONS[name], THEIRS[name])


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (gelu, "silu"),
        (lambda x: x * torch.sigmoid(1.702 * x), "gelu"),
        (lambda x: x / (1 + x.abs()), "silu"),
        (relu, "relu_squared"),
        (lambda x: x.square(), "relu_squared"),
        (lambda x: x / (1 + torch.exp(-x)), "silu"),
        (gelu, "gelu_tanh"),
    ],
    ids=["gelu", "sigmoid for erf", "softsign", "not squared", "not cut", "an exp that overflows", "erf for tanh"],
)
def test_a_faulty_activation_is_caught(fault: Function, name: str) -> None:
    with pytest.raises(AssertionError):
        check(fault, THEIRS[name])


def test_by_hand() -> None:
    x = torch.tensor([-3.0, 0.0, 2.0], dtype=torch.float64)
    assert_same(relu_squared(x), torch.tensor([0.0, 0.0, 4.0], dtype=torch.float64))
    assert_within(
        silu(torch.log(torch.tensor([3.0]).double())), torch.tensor([0.75 * 1.0986122886681098]).double(), 1e-7
    )
    assert silu(torch.zeros(1)).item() == 0
