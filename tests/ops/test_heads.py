"""Splitting, merging and sharing heads: the axes mean what they should, not only fit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.ops import merge_heads, repeat_heads, split_heads
from tests.oracles.compare import assert_same

B, T, H, K, d = 2, 3, 4, 2, 6


def check_split(split: Callable[[Tensor, int], Tensor]) -> None:
    """Head h of position t holds features h·d to (h + 1)·d - 1 of position t."""
    x = torch.arange(B * T * H * d).view(B, T, H * d)
    y = split(x, H)
    assert y.shape == (B, H, T, d)
    for h in range(H):
        assert_same(y[:, h], x[:, :, h * d : (h + 1) * d])


def check_merge(merge: Callable[[Tensor], Tensor]) -> None:
    """The heads of a position stand side by side, as `torch.cat` over a list of heads puts them."""
    y = torch.arange(B * H * T * d).view(B, H, T, d)
    assert_same(merge(y), torch.cat([y[:, h] for h in range(H)], dim=-1))


def check_repeat(repeat: Callable[[Tensor, int], Tensor]) -> None:
    """Query head h reads key/value head h // (H/K): 0, 0, 1, 1."""
    x = torch.arange(B * K * T * d).view(B, K, T, d)
    assert_same(repeat(x, H), torch.stack([x[:, h] for h in (0, 0, 1, 1)], dim=1))


def test_split_takes_neighbouring_features() -> None:
    check_split(split_heads)


def test_merge_puts_heads_side_by_side() -> None:
    check_merge(merge_heads)


def test_merge_undoes_split() -> None:
    x = torch.randn(B, T, H * d)
    assert_same(merge_heads(split_heads(x, H)), x)


def test_repeat_shares_neighbouring_heads() -> None:
    check_repeat(repeat_heads)


def test_with_a_key_head_for_each_query_head_nothing_is_copied() -> None:
    x = torch.randn(B, H, T, d)
    assert repeat_heads(x, H) is x


@pytest.mark.parametrize(
    "split",
    [
        lambda x, H: x.view(B, H, T, d),
        lambda x, H: x.view(B, T, d, H).permute(0, 3, 1, 2),
        lambda x, H: x.view(B, T, H, d),
    ],
    ids=["view", "features interleaved", "not moved"],
)
def test_a_faulty_split_is_caught(split: Callable[[Tensor, int], Tensor]) -> None:
    with pytest.raises(AssertionError):
        check_split(split)


@pytest.mark.parametrize(
    "merge",
    [lambda y: y.reshape(B, T, H * d), lambda y: y.permute(0, 2, 3, 1).reshape(B, T, H * d)],
    ids=["reshape", "features first"],
)
def test_a_faulty_merge_is_caught(merge: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(AssertionError):
        check_merge(merge)


def test_tiled_heads_are_caught() -> None:
    with pytest.raises(AssertionError):
        check_repeat(lambda x, H: x.repeat(1, H // K, 1, 1))
