"""Softmax, layer norm, GELU and cross-entropy against numbers by hand, PyTorch, and planted faults."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from clearhead.ops import at_least_float32, cross_entropy, gelu, gelu_tanh, layer_norm, relu, softmax
from tests.oracles.compare import assert_finite, assert_same, assert_within

Formula = Callable[..., Tensor]


def numbers(*values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


# Softmax


def check_softmax(function: Formula) -> None:
    assert_within(function(numbers([0.0, math.log(3)])), numbers([0.25, 0.75]), 1e-15)
    assert_within(function(numbers([0.1, 0.7, 0.2]).log()), numbers([0.1, 0.7, 0.2]), 1e-15)
    x = torch.randn(3, 5, dtype=torch.float64)
    assert_within(function(x + 100), function(x), 1e-14)
    assert_same(function(numbers([1e4, 0.0], [-1e4, 0.0])), numbers([1.0, 0.0], [0.0, 1.0]))
    assert_same(function(numbers([0.0, -math.inf, 0.0])), numbers([0.5, 0.0, 0.5]))
    assert_within(function(x), torch.softmax(x, -1), 1e-15)


def test_softmax_by_hand_shifted_large_and_hidden() -> None:
    check_softmax(softmax)


@pytest.mark.parametrize(
    "faulty",
    [
        lambda x: x.exp() / x.exp().sum(-1, keepdim=True),
        lambda x: softmax(x, dim=0),
        lambda x: softmax(x.nan_to_num(neginf=-1.0)),
        lambda x: softmax(x.clamp(-10, 10)),
    ],
    ids=["no shift", "axis", "finite mask", "clamped"],
)
def test_a_faulty_softmax_is_caught(faulty: Formula) -> None:
    with pytest.raises(AssertionError):
        check_softmax(faulty)


def test_a_row_that_is_all_hidden_is_0_with_a_gradient_of_0() -> None:
    x = numbers([-math.inf, -math.inf], [0.0, 1.0]).requires_grad_()
    weights = softmax(x)
    (weights * numbers(2.0, 3.0)).sum().backward()
    assert_same(weights[0].detach(), numbers(0.0, 0.0))
    assert_finite(x.grad)
    assert x.grad is not None
    assert x.grad[0].tolist() == [0.0, 0.0]
    assert x.grad[1].ne(0).all()


def test_softmax_gradient_is_pytorch_s() -> None:
    x, y = torch.randn(2, 3, 5, dtype=torch.float64), torch.randn(3, 5, dtype=torch.float64)
    gradients = []
    for function in (softmax, torch.softmax):
        leaf = x[0].clone().requires_grad_()
        (function(leaf, -1) * y).sum().backward()
        gradients.append(leaf.grad)
    assert gradients[0] is not None
    assert gradients[1] is not None
    assert_within(gradients[0], gradients[1], 1e-15)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
    ids=str,
)
def test_sums_run_in_at_least_float32(given: torch.dtype, used: torch.dtype) -> None:
    assert at_least_float32(given) == used
    assert softmax(torch.zeros(2, dtype=given)).dtype == used
    assert cross_entropy(torch.zeros(1, 2, dtype=given), torch.tensor([0]))[0].dtype == used
    assert layer_norm(torch.zeros(2, dtype=given)).dtype == given


# Layer norm


def check_layer_norm(function: Formula) -> None:
    """(1,1,5,5): mean 3, population variance 4; with ε = 5 the divisor is √(4 + 5) = 3, so ±2/3."""
    x = numbers([1.0, 1.0, 5.0, 5.0])
    weight, bias = numbers(3.0, 6.0, 9.0, 12.0), numbers(1.0, 2.0, 3.0, 4.0)
    assert_within(function(x, weight, bias, 5.0), numbers([-1.0, -2.0, 9.0, 12.0]), 1e-14)
    assert_within(function(x, weight, None, 5.0), numbers([-2.0, -4.0, 6.0, 8.0]), 1e-14)
    assert_within(function(x, None, None, 5.0), numbers([-2.0, -2.0, 2.0, 2.0]) / 3, 1e-14)
    x = torch.randn(2, 3, 4, dtype=torch.float64) * 5 + 7
    norm = torch.nn.LayerNorm(4, dtype=torch.float64)
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    assert_within(function(x, norm.weight, norm.bias, 1e-5), norm(x), 1e-12)


def normed(x: Tensor, weight: Tensor | None, bias: Tensor | None, divisor: Tensor, axis: int = -1) -> Tensor:
    y = (x - x.mean(axis, keepdim=True)) / divisor
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def test_layer_norm_by_hand_and_against_pytorch() -> None:
    check_layer_norm(layer_norm)


@pytest.mark.parametrize(
    "faulty",
    [
        lambda x, w, b, eps: normed(x, w, b, (x.var(-1, keepdim=True) + eps).sqrt()),
        lambda x, w, b, eps: normed(x, w, b, x.std(-1, keepdim=True, correction=0) + eps),
        lambda x, w, b, eps: normed(x, w, b, (x.var(-2, keepdim=True, correction=0) + eps).sqrt(), -2),
        lambda x, w, b, eps: normed(x, w, b, (x.square().mean(-1, keepdim=True) + eps).sqrt()),
        lambda x, w, b, eps: layer_norm(x, None if w is None else 1 + w, b, eps),
        lambda x, w, b, eps: layer_norm(x, w, b, 1e-6),
    ],
    ids=["unbiased variance", "eps outside the root", "over positions", "second moment", "offset weight", "other eps"],
)
def test_a_faulty_layer_norm_is_caught(faulty: Formula) -> None:
    with pytest.raises(AssertionError):
        check_layer_norm(faulty)


def test_the_statistics_of_bfloat16_run_in_float32() -> None:
    """A mean of 100 and a spread of 1 would be lost in bfloat16's 8 bits."""
    x = (torch.randn(3, 64) + 100).bfloat16()
    exact = layer_norm(x.double())
    assert_within(layer_norm(x).double(), exact, 0.02)
    lost = x - x.mean(-1, keepdim=True)
    assert (lost / lost.square().mean(-1, keepdim=True).sqrt() - exact).abs().max() > 0.1


# Activations

GELU = {  # x: (GELU(x), GPT-2's approximation), to ten digits
    -3.0: (-0.0040496941, -0.0036373920),
    -1.0: (-0.1586552539, -0.1588080094),
    -0.5: (-0.1542687694, -0.1542859718),
    0.0: (0.0, 0.0),
    0.5: (0.3457312306, 0.3457140282),
    1.0: (0.8413447461, 0.8411919906),
    2.0: (1.9544997361, 1.9545976940),
    3.0: (2.9959503059, 2.9963626080),
}


def check_gelu(function: Formula, *, approximate: bool) -> None:
    x = torch.tensor(list(GELU), dtype=torch.float64)
    assert_within(function(x), torch.tensor([pair[approximate] for pair in GELU.values()]).double(), 1e-7)
    for value in x.tolist():
        exact = value * 0.5 * (1 + math.erf(value / math.sqrt(2)))
        inside = math.sqrt(2 / math.pi) * (value + 0.044715 * value**3)
        expected = 0.5 * value * (1 + math.tanh(inside)) if approximate else exact
        assert_within(function(numbers(value)), numbers(expected), 1e-15)
    x = torch.linspace(-6, 6, 101, dtype=torch.float64)
    assert_within(function(x), F.gelu(x, approximate="tanh" if approximate else "none"), 1e-15)


def test_gelu_by_hand_and_against_pytorch() -> None:
    check_gelu(gelu, approximate=False)
    check_gelu(gelu_tanh, approximate=True)


@pytest.mark.parametrize(
    ("faulty", "approximate"),
    [(gelu_tanh, False), (gelu, True), (F.silu, False), (relu, False), (lambda x: gelu(x) / x.abs().clamp(1), False)],
    ids=["tanh for erf", "erf for tanh", "silu", "relu", "scaled"],
)
def test_a_faulty_gelu_is_caught(faulty: Formula, approximate: bool) -> None:
    with pytest.raises(AssertionError):
        check_gelu(faulty, approximate=approximate)


def test_relu_by_hand() -> None:
    assert_same(relu(numbers(-2.0, 0.0, 3.0)), numbers(0.0, 0.0, 3.0))


# Cross-entropy


def check_cross_entropy(function: Callable[..., tuple[Tensor, Tensor]]) -> None:
    """-ln ½ - ln ¼ = ln 8 over two targets; an ignored one adds nothing; logits may be shifted."""
    logits = numbers([0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.1, 0.1, 0.8]).log() + 7
    total, count = function(logits, torch.tensor([0, 2, -100]))
    assert_within(total, torch.tensor(math.log(8)).double(), 1e-7)
    assert count.item() == 2
    logits = torch.randn(2, 3, 11, dtype=torch.float64)
    targets = torch.tensor([[0, 10, -100], [-100, 5, 5]])
    total, count = function(logits, targets)
    assert count.item() == 4
    official = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
    assert_within(total, official, 1e-13)
    total, _ = function(numbers([1e4, 0.0]), torch.tensor([1]))
    assert_within(total, torch.tensor(1e4).double(), 1e-9)


def test_cross_entropy_by_hand_and_against_pytorch() -> None:
    check_cross_entropy(cross_entropy)


@pytest.mark.parametrize(
    "faulty",
    [
        lambda z, y: cross_entropy(z.softmax(-1), y),
        lambda z, y: cross_entropy(z, y.clamp(0)),
        lambda z, y: (cross_entropy(z, y)[0], torch.tensor(y.numel())),
        lambda z, y: (cross_entropy(z, y)[0] / cross_entropy(z, y)[1], cross_entropy(z, y)[1]),
        lambda z, y: (cross_entropy(z, y)[0] / math.log(2), cross_entropy(z, y)[1]),
        lambda z, y: (-z.softmax(-1).log().gather(-1, y.clamp(0)[..., None])[..., 0][y >= 0].sum(), (y >= 0).sum()),
    ],
    ids=["softmax first", "ignored counts", "count of all", "mean", "bits", "log of softmax"],
)
def test_a_faulty_cross_entropy_is_caught(faulty: Callable[..., tuple[Tensor, Tensor]]) -> None:
    with pytest.raises(AssertionError):
        check_cross_entropy(faulty)


def test_cross_entropy_gradient_is_pytorch_s_and_0_where_ignored() -> None:
    targets = torch.tensor([3, -100, 0])
    logits = torch.randn(3, 11, dtype=torch.float64)
    ours, theirs = (logits.clone().requires_grad_() for _ in range(2))
    cross_entropy(ours, targets)[0].backward()
    F.cross_entropy(theirs, targets, reduction="sum").backward()
    assert ours.grad is not None
    assert theirs.grad is not None
    assert_within(ours.grad, theirs.grad, 1e-14)
    assert_same(ours.grad[1], torch.zeros(11, dtype=torch.float64))


def test_with_every_target_ignored_sum_count_and_gradient_are_0() -> None:
    logits = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    total, count = cross_entropy(logits, torch.full((2,), -100))
    total.backward()
    assert (total.item(), count.item()) == (0.0, 0)
    assert logits.grad is not None
    assert_same(logits.grad, torch.zeros(2, 5, dtype=torch.float64))


def test_the_ignored_target_is_a_choice() -> None:
    assert cross_entropy(torch.zeros(3, 2), torch.tensor([1, 1, 0]), ignored=1)[1].item() == 1
