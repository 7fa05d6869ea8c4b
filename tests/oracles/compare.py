"""The assertions that many tests share."""

from __future__ import annotations

import torch
from torch import Tensor


def largest_difference(actual: Tensor, expected: Tensor) -> float:
    """The largest absolute difference of two tensors of one shape; NaN counts as infinitely far."""
    assert actual.shape == expected.shape, f"{tuple(actual.shape)} is not {tuple(expected.shape)}"
    difference = (actual.double() - expected.double()).abs().nan_to_num(nan=torch.inf)
    return difference.max().item() if difference.numel() else 0.0


def assert_within(actual: Tensor, expected: Tensor, within: float) -> None:
    """Assert one shape, one type, no NaN, and no difference above `within`."""
    assert actual.dtype == expected.dtype, f"{actual.dtype} is not {expected.dtype}"
    difference = largest_difference(actual, expected)
    assert difference <= within, f"differs by {difference:.3g}, more than {within:.3g}"


def assert_same(actual: Tensor, expected: Tensor) -> None:
    """Assert equality of every number."""
    assert_within(actual, expected, 0.0)


def assert_finite(*tensors: Tensor | None) -> None:
    """Assert that the tensors are there and hold no NaN and no infinity."""
    for tensor in tensors:
        assert tensor is not None
        assert bool(tensor.isfinite().all())
