"""One vector a row: by hand, with padding on either side, rows without a token, and what is no number at padding."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.ops import pool_first, pool_max, pool_mean
from clearhead.ops.pooling import unit_length
from tests.oracles.compare import assert_finite, assert_same, assert_within

Pool = Callable[[Tensor, Tensor], Tensor]
POOLS = [pool_first, pool_mean, pool_max]
B, T, D = 4, 3, 2
# One row full, one padded at the right, one at the left, one without a real token.
REAL = torch.tensor([[1, 1, 1], [1, 1, 0], [0, 1, 1], [0, 0, 0]], dtype=torch.bool)
X = torch.tensor(
    [
        [[1.0, -6.0], [2.0, -5.0], [6.0, -1.0]],
        [[4.0, -8.0], [2.0, -2.0], [900.0, 900.0]],
        [[900.0, 900.0], [-3.0, -1.0], [-5.0, 7.0]],
        [[900.0, 900.0], [900.0, 900.0], [900.0, 900.0]],
    ],
    dtype=torch.float64,
)
BY_HAND = {
    pool_first: [[1.0, -6.0], [4.0, -8.0], [-3.0, -1.0], [0.0, 0.0]],
    pool_mean: [[3.0, -4.0], [3.0, -5.0], [-4.0, 3.0], [0.0, 0.0]],
    pool_max: [[6.0, -1.0], [4.0, -2.0], [-3.0, 7.0], [0.0, 0.0]],
}


def name_of(pool: Pool) -> str:
    return getattr(pool, "__name__", str(pool))


def check_by_hand(pool: Pool, expected: list[list[float]]) -> None:
    assert_within(pool(X, REAL), torch.tensor(expected, dtype=torch.float64), 1e-15)


def check_padding(pool: Pool) -> None:
    """What stands at padding, number or not, reaches neither the value nor the gradient."""
    for stranger in (torch.nan, torch.inf, -torch.inf, 1e300):
        x = X.masked_fill(~REAL[..., None], stranger).requires_grad_()
        pooled = pool(x, REAL)
        assert_same(pooled.detach(), pool(X, REAL))
        (gradient,) = torch.autograd.grad(pooled.sum(), x)
        assert_finite(gradient)
        assert_same(gradient[~REAL], torch.zeros_like(gradient[~REAL]))


@pytest.mark.parametrize("pool", POOLS, ids=name_of)
def test_by_hand(pool: Pool) -> None:
    check_by_hand(pool, BY_HAND[pool])


@pytest.mark.parametrize("pool", POOLS, ids=name_of)
def test_padding_reaches_nothing(pool: Pool) -> None:
    check_padding(pool)


@pytest.mark.parametrize("pool", POOLS, ids=name_of)
def test_gradients_are_those_of_differences(pool: Pool) -> None:
    x = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda x: pool(x, REAL), (x,))


@pytest.mark.parametrize("pool", POOLS, ids=name_of)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_type_stays(pool: Pool, dtype: torch.dtype) -> None:
    """The numbers by hand are whole and small: exact in every type."""
    assert_same(pool(X.to(dtype), REAL), torch.tensor(BY_HAND[pool], dtype=dtype))


def test_the_mean_is_summed_in_float32() -> None:
    """Of 4,096 ones in bfloat16 a sum in bfloat16 gives 256; the mean of large float16 numbers does not overflow."""
    T = 4096
    ones, every = torch.ones(1, T, 1, dtype=torch.bfloat16), torch.ones(1, T, dtype=torch.bool)
    assert pool_mean(ones, every).item() == 1.0
    assert pool_mean(torch.full((1, T, 1), 60_000.0, dtype=torch.float16), every).item() == 60_000.0
    in_bfloat16 = torch.zeros(1, dtype=torch.bfloat16)
    for one in ones[0]:
        in_bfloat16 = in_bfloat16 + one
    assert in_bfloat16.item() == 256.0


@pytest.mark.parametrize("pool", POOLS, ids=name_of)
def test_shapes_on_meta(pool: Pool) -> None:
    pooled = pool(X.to("meta"), REAL.to("meta"))
    assert (pooled.device.type, tuple(pooled.shape), pooled.dtype) == ("meta", (B, D), torch.float64)


# Faults


def place_zero(x: Tensor, real: Tensor) -> Tensor:
    """With left padding, place 0 is no token."""
    return x[:, 0].masked_fill(~real.any(-1, keepdim=True), 0.0)


def last_real(x: Tensor, real: Tensor) -> Tensor:
    last = real.shape[1] - 1 - real.int().flip(-1).argmax(-1)
    return x[torch.arange(len(x)), last].masked_fill(~real.any(-1, keepdim=True), 0.0)


def over_all_places(x: Tensor, real: Tensor) -> Tensor:
    """The sum of the real ones over the number of all."""
    return x.masked_fill(~real[..., None], 0.0).mean(-2)


def multiplied(x: Tensor, real: Tensor) -> Tensor:
    """0 · NaN is NaN."""
    return (x * real[..., None]).sum(-2) / real.sum(-1, keepdim=True).clamp(min=1)


def empty_is_nan(x: Tensor, real: Tensor) -> Tensor:
    return x.masked_fill(~real[..., None], 0.0).sum(-2) / real.sum(-1, keepdim=True)


def zero_filled(x: Tensor, real: Tensor) -> Tensor:
    """Where all real values are negative, the filling is the maximum."""
    return x.masked_fill(~real[..., None], 0.0).amax(-2)


def empty_is_minus_infinity(x: Tensor, real: Tensor) -> Tensor:
    return x.masked_fill(~real[..., None], -torch.inf).amax(-2)


@pytest.mark.parametrize(
    ("sound", "fault"),
    [
        (pool_first, place_zero),
        (pool_first, last_real),
        (pool_mean, over_all_places),
        (pool_mean, empty_is_nan),
        (pool_max, zero_filled),
        (pool_max, empty_is_minus_infinity),
    ],
    ids=name_of,
)
def test_a_faulty_pool_is_caught(sound: Pool, fault: Pool) -> None:
    with pytest.raises(AssertionError):
        check_by_hand(fault, BY_HAND[sound])


@pytest.mark.parametrize("fault", [multiplied, lambda x, real: x.mean(-2), lambda x, real: x.amax(-2)])
def test_padding_that_leaks_is_caught(fault: Pool) -> None:
    with pytest.raises(AssertionError):
        check_padding(fault)


# Unit length


def check_unit(unit: Callable[[Tensor], Tensor]) -> None:
    """A vector of length 1 that points where the given one does; zeros stay zeros; float32 or wider inside."""
    assert_within(unit(torch.tensor([[3.0, -4.0], [0.0, 0.0]])), torch.tensor([[0.6, -0.8], [0.0, 0.0]]), 1e-7)
    assert_finite(unit(torch.full((2, 5), 1e4).half()))
    assert_within(unit(torch.full((1, 4), 1e4).half()), torch.full((1, 4), 0.5).half(), 0.0)


def test_unit_length() -> None:
    check_unit(unit_length)
    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(unit_length, x)


@pytest.mark.parametrize(
    "fault",
    [
        lambda x: x,
        lambda x: x / x.abs().sum(-1, keepdim=True).clamp(min=1),
        lambda x: x / x.float().norm(dim=-1, keepdim=True),
        lambda x: x / (x * x).sum(-1, keepdim=True).sqrt().clamp(min=1),
    ],
    ids=["as it is", "by the sum", "zeros become no numbers", "squares overflow"],
)
def test_what_is_not_of_unit_length_is_caught(fault: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(AssertionError):
        check_unit(fault)
