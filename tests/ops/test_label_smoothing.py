"""Label smoothing in the definition of the loss: by hand, against PyTorch, and what it cannot be."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from clearhead.ops import cross_entropy
from tests.oracles.compare import assert_same, assert_within

SmoothLoss = Callable[[Tensor, Tensor, float], Tensor]


def definition(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    return cross_entropy(logits, targets, smoothing=smoothing)[0]


def check(loss: SmoothLoss) -> None:
    """p = ½ ¼ ¼ and target 0, ε = 0.3: 0.7 ln 2 + 0.1 (ln 2 + 2 ln 4) = 1.2 ln 2; then PyTorch's, ignored targets among them."""
    logits = torch.tensor([[0.5, 0.25, 0.25]], dtype=torch.float64).log() + 3
    assert loss(logits, torch.tensor([0]), 0.3).item() == pytest.approx(1.2 * math.log(2), abs=1e-13)
    logits = torch.randn(2, 3, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    targets = torch.tensor([[0, 6, -100], [-100, 5, 5]])
    for smoothing in (0.0, 0.1, 0.9):
        ours, theirs = (logits.clone().requires_grad_() for _ in range(2))
        found = loss(ours, targets, smoothing)
        wanted = F.cross_entropy(theirs.flatten(0, 1), targets.flatten(), reduction="sum", label_smoothing=smoothing)
        assert_within(found.detach(), wanted.detach(), 1e-13)
        assert_within(torch.autograd.grad(found, ours)[0], torch.autograd.grad(wanted, theirs)[0], 1e-14)


def test_smoothing_by_hand_and_against_pytorch() -> None:
    check(definition)


def spread(z: Tensor, y: Tensor) -> Tensor:
    """Σ over real targets of the mean over the vocabulary of -ln p."""
    return -(z.log_softmax(-1).mean(-1) * (y >= 0)).sum()


@pytest.mark.parametrize(
    "faulty",
    [
        lambda z, y, e: definition(z, y, 0.0),
        lambda z, y, e: definition(z, y, 0.0) + e * spread(z, y),
        lambda z, y, e: (1 - e) * definition(z, y, 0.0) + e * z.shape[-1] * spread(z, y),
        lambda z, y, e: (1 - e) * definition(z, y, 0.0) - e * z.log_softmax(-1).mean(-1).sum(),
        lambda z, y, e: definition(z, y, e * z.shape[-1] / (z.shape[-1] - 1)),
    ],
    ids=["none", "more than 1 in all", "sum for mean", "ignored are smoothed", "spread over the others"],
)
def test_faulty_smoothing_is_caught(faulty: SmoothLoss) -> None:
    with pytest.raises(AssertionError):
        check(faulty)


def test_nothing_is_added_without_smoothing() -> None:
    """A logit of -∞ has a mean of -∞, and 0 times that is no number."""
    logits = torch.tensor([[0.0, -math.inf, 0.0]], dtype=torch.float64)
    assert definition(logits, torch.tensor([0]), 0.0).item() == pytest.approx(math.log(2), abs=1e-15)


def test_it_is_least_at_the_mixture_and_there_its_entropy() -> None:
    mixture = torch.full((5,), 0.3 / 5, dtype=torch.float64)
    mixture[2] += 0.7
    logits = mixture.log().requires_grad_()
    loss = definition(logits[None], torch.tensor([2]), 0.3)
    loss.backward()
    assert loss.item() == pytest.approx(-(mixture * mixture.log()).sum().item(), abs=1e-14)
    assert logits.grad is not None
    assert_within(logits.grad, torch.zeros(5, dtype=torch.float64), 1e-15)


def test_with_every_target_ignored_the_smoothed_loss_and_its_gradient_are_0() -> None:
    logits = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    total = definition(logits, torch.full((2,), -100), 0.2)
    total.backward()
    assert total.item() == 0
    assert logits.grad is not None
    assert_same(logits.grad, torch.zeros(2, 5, dtype=torch.float64))
