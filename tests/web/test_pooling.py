"""Pictures keep the largest weight of each field, and bytes give back the weights."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from clearhead.web import pooling
from tests.oracles.compare import assert_same, assert_within


def check_largest() -> None:
    generator = torch.Generator().manual_seed(1)
    weights = torch.rand(2, 7, 11, generator=generator, dtype=torch.float64)
    # Rows and columns that are left over; none; fewer rows, or columns, than a field has.
    for high, wide in ((3, 4), (7, 11), (1, 5), (8, 1), (2, 13)):
        found = pooling.pooled(weights, (high, wide))
        rows, columns = range(0, 7, high), range(0, 11, wide)
        by_hand = [[weights[h, r : r + high, c : c + wide].max() for c in columns] for h in range(2) for r in rows]
        assert_same(found, torch.tensor(by_hand, dtype=torch.float64).reshape(2, len(rows), len(columns)))


def test_each_field_has_its_largest_weight() -> None:
    check_largest()


def mean(weights: Tensor, field: tuple[int, int]) -> Tensor:
    return F.avg_pool2d(weights[:, None], field, ceil_mode=True)[:, 0]


def cut(weights: Tensor, field: tuple[int, int]) -> Tensor:
    return F.max_pool2d(weights[:, None], field)[:, 0]


@pytest.mark.parametrize("fault", [mean, cut])
def test_means_and_lost_ends_are_found(
    fault: Callable[[Tensor, tuple[int, int]], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooling, "pooled", fault)
    with pytest.raises((AssertionError, RuntimeError)):
        check_largest()


def test_a_field_is_the_smallest_that_fits() -> None:
    assert [pooling.field_of(length, 64) for length in (1, 64, 65, 128, 129, 2048)] == [1, 1, 2, 2, 3, 32]


def check_roots() -> None:
    weights = torch.linspace(0, 0.7, 97, dtype=torch.float64)
    back = 0.7 * (pooling.roots(weights, 0.7).double() / 255) ** 2
    assert_within(back, weights, 0.7 / 255)
    assert int(pooling.roots(torch.tensor([1 / 2048]))) == 6
    assert pooling.roots(torch.tensor([float("nan"), 0.0, 2.0])).tolist() == [0, 0, 255]
    assert pooling.roots(torch.zeros(3), 0.0).tolist() == [0, 0, 0]


def test_bytes_give_back_the_weights_and_small_ones_are_seen() -> None:
    check_roots()


def test_bytes_of_the_weights_themselves_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooling, "roots", lambda weights, most=1.0: (weights * 255).round().to(torch.uint8))
    with pytest.raises(AssertionError):
        check_roots()
