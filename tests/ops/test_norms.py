"""RMS norm, and why batch norm is not among the norms; layer norm stands in test_formulas."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from clearhead.layers import LayerNorm, OffsetRMSNorm, RMSNorm
from clearhead.ops import layer_norm
from clearhead.ops.norm import rms_norm
from tests.oracles.batch_norm import BatchNorm
from tests.oracles.compare import assert_finite, assert_same, assert_within

B, T, D = 2, 3, 5
Norm = Callable[..., Tensor]


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def check_rms(norm: Norm) -> None:
    """By hand: the root of the mean of 1, 4, 4, 16, 0 squares; PyTorch's own; a tiny and a large input."""
    x = torch.tensor([1.0, 2.0, -2.0, 4.0, 0.0], dtype=torch.float64)
    assert_within(norm(x, None, 1e-30), x / 5**0.5, 1e-15)
    weight, mixed = random(D), random(B, T, D) * 3 + 2
    for eps, scale in ((1e-6, 1.0), (0.1, 1.0), (1e-6, 1e-5), (1e-6, 1e150), (1e-6, 0.0)):
        theirs = nn.RMSNorm(D, eps=eps, dtype=torch.float64)
        nn.init.ones_(theirs.weight)
        theirs.weight.data.copy_(weight)
        assert_within(norm(mixed * scale, weight, eps), theirs(mixed * scale).detach(), 1e-12)


def test_rms_norm_by_hand_and_as_pytorch() -> None:
    check_rms(rms_norm)


@pytest.mark.parametrize(
    "fault",
    [
        lambda x, w, eps: layer_norm(x, w, None, eps),
        lambda x, w, eps: rms_norm(x, w, 1e-5),
        lambda x, w, eps: rms_norm(x, None if w is None else 1 + w, eps),
        lambda x, w, eps: x / (x.square().mean(-1, keepdim=True).sqrt() + eps) * (1 if w is None else w),
        lambda x, w, eps: x / (x.square().sum(-1, keepdim=True) + eps).sqrt() * (1 if w is None else w),
        lambda x, w, eps: x / (x.square().mean() + eps).sqrt() * (1 if w is None else w),
    ],
    ids=["mean taken off", "eps", "1 + w", "eps outside", "sum", "all positions"],
)
def test_a_faulty_rms_norm_is_caught(fault: Norm) -> None:
    with pytest.raises(AssertionError):
        check_rms(fault)


def test_gradients_are_pytorch_s() -> None:
    x, y = random(B, T, D), random(B, T, D)
    gradients = []
    for part in (RMSNorm(D, eps=0.01).double(), nn.RMSNorm(D, eps=0.01, dtype=torch.float64)):
        nn.init.constant_(part.weight, 0.7)
        leaf = x.clone().requires_grad_()
        (part(leaf) * y).sum().backward()
        assert leaf.grad is not None
        assert part.weight.grad is not None
        gradients.append((leaf.grad, part.weight.grad))
    for ours, theirs in zip(*gradients, strict=True):
        assert_within(ours, theirs, 1e-12)


def test_the_parts_are_the_formula_with_their_own_weights() -> None:
    x = random(B, T, D)
    for part, gain in ((RMSNorm(D, eps=0.1), lambda w: w), (OffsetRMSNorm(D, eps=0.1), lambda w: 1 + w)):
        part.double()
        assert_within(part(x), rms_norm(x, None, 0.1), 1e-15)  # fresh: a gain of 1 either way
        nn.init.normal_(part.weight)
        assert_within(part(x), rms_norm(x, gain(part.weight), 0.1), 1e-15)
        assert not torch.allclose(part(x), rms_norm(x, gain(part.weight) + 1, 0.1))
    assert_same(OffsetRMSNorm(D).weight.detach(), torch.zeros(D))


def check_16_bits(norm: Norm) -> None:
    """The mean of squares of 300 in float16 is infinite, in bfloat16 a sum of 4096 ones stops at 256."""
    large = torch.full((1, 64), 300.0, dtype=torch.float16)
    assert_same(norm(large), torch.ones(1, 64, dtype=torch.float16))
    x = random(3, 4096) + 2
    found = norm(x.bfloat16())
    assert found.dtype == torch.bfloat16
    assert_within(found.double(), rms_norm(x.bfloat16().double()), 2**-7)


def test_statistics_of_16_bit_types_run_in_float32() -> None:
    check_16_bits(rms_norm)


@pytest.mark.parametrize(
    "fault", [lambda x: x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()], ids=["in the type of x"]
)
def test_statistics_in_16_bits_are_caught(fault: Norm) -> None:
    with pytest.raises(AssertionError):
        check_16_bits(fault)


@pytest.mark.parametrize("part", [RMSNorm(64), OffsetRMSNorm(64), LayerNorm(64)], ids=lambda p: type(p).__name__)
def test_the_parts_keep_16_bit_types(part: nn.Module) -> None:
    part = part.bfloat16()
    assert part(torch.randn(2, 64).bfloat16()).dtype == torch.bfloat16


def test_a_gain_of_1_plus_w_is_summed_in_float32() -> None:
    """1 + 2^-9 is 1 in bfloat16; the stored w holds it, and the product must, too."""
    part = OffsetRMSNorm(64).bfloat16()
    nn.init.constant_(part.weight, 2**-9 + 2**-10)
    x = torch.full((1, 64), 1.34375).bfloat16()
    exact = rms_norm(x.double(), 1 + part.weight.double())
    assert_within(part(x).double(), exact, 2**-8)


def test_zeros_and_tiny_variance_have_finite_gradients() -> None:
    for x in (torch.zeros(1, D).double(), torch.full((1, D), 1e-200).double()):
        leaf = x.requires_grad_()
        rms_norm(leaf).sum().backward()
        assert_finite(leaf.grad)


# Batch norm


def test_the_teaching_class_is_pytorch_s_batch_norm() -> None:
    ours, theirs = BatchNorm(D).double(), nn.BatchNorm1d(D, dtype=torch.float64)
    for _ in range(3):
        x = random(B, T, D) * 2 + 3
        assert_within(ours(x), theirs(x.mT).mT, 1e-13)
    assert_within(ours.mean, theirs.running_mean, 1e-14)
    assert_within(ours.variance, theirs.running_var, 1e-14)
    ours.eval(), theirs.eval()
    assert_within(ours(x), theirs(x.mT).mT, 1e-13)


def moved(part: nn.Module, where: tuple[int, int]) -> list[tuple[int, int]]:
    """Which (row, position) of the output move when the input at one of them does."""
    x = random(B, T, D)
    other = x.clone()
    other[where] += 1
    return [tuple(place) for place in (part(x) != part(other)).any(-1).nonzero().tolist()]


def test_batch_norm_is_not_layer_norm() -> None:
    """A change at the last position of one row moves every row and every position before: a leak of the future.

    And evaluation gives other numbers than training; a layer norm or an RMS norm does nothing of it.
    """
    x = random(B, T, D) + 3
    for part in (LayerNorm(D).double(), RMSNorm(D).double(), OffsetRMSNorm(D).double()):
        assert moved(part, (1, T - 1)) == [(1, T - 1)]
        assert_same(part.train()(x), part.eval()(x))
    batch = BatchNorm(D).double()
    assert moved(batch, (1, T - 1)) == [(b, t) for b in range(B) for t in range(T)]
    assert not torch.allclose(batch.train()(x), batch.eval()(x))
    assert not torch.allclose(BatchNorm(D).double()(x), LayerNorm(D).double()(x))
