"""Dropout of attention weights: after the softmax, with the expectation kept, and none at p = 0."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.ops import Allowed, Mask, attend_fused, attend_visible, causal
from tests.oracles import faulty_attention as faulty
from tests.oracles.compare import assert_finite, assert_same, assert_within
from tests.oracles.faulty_attention import Sound, name_of

Kernel = Callable[..., Tensor]
KERNELS = [attend_visible, attend_fused, Sound()]
B, H, T, S, d = 4000, 2, 3, 5, 6
P = 0.3


def one_attention_many_times() -> tuple[Tensor, Tensor, Tensor, Mask]:
    """The same q and k in every row, and values that show each weight as it is: v is the unit matrix (S,S)."""
    q, k = (torch.randn(1, H, n, d, dtype=torch.float64).expand(B, H, n, d) for n in (T, S))
    return q, k, torch.eye(S, dtype=torch.float64).expand(B, H, S, S), causal(T, S)


def check_dropout(attend: Kernel) -> None:
    """Each weight is 0 or w/(1-p); a share of p is 0; the mean is w; and what is left does not sum to 1."""
    q, k, v, visible = one_attention_many_times()
    kept = attend(q, k, v, visible)
    dropped = attend(q, k, v, visible, dropout=P)
    gone = dropped == 0
    assert_within(dropped, torch.where(gone, 0.0, kept / (1 - P)), 1e-12)
    seen = kept > 0
    share = gone[seen].double().mean().item()
    assert abs(share - P) < 5 * (P * (1 - P) / seen.sum().item()) ** 0.5
    noise = kept[0] * (P / (1 - P) / B) ** 0.5
    assert bool(((dropped.mean(0) - kept[0]).abs() <= 5 * noise).all())
    assert (dropped.sum(-1) - 1).abs().mean() > 0.1


@pytest.mark.parametrize("attend", KERNELS, ids=name_of)
def test_weights_are_dropped_after_the_softmax_and_the_rest_grows(attend: Kernel) -> None:
    check_dropout(attend)


@pytest.mark.parametrize(
    "attend", faulty.faults(faulty.DropBeforeSoftmax, faulty.DropWithoutRescale, faulty.NeverDrops), ids=name_of
)
def test_faulty_dropout_is_caught(attend: Kernel) -> None:
    with pytest.raises(AssertionError):
        check_dropout(attend)


@pytest.mark.parametrize("attend", KERNELS, ids=name_of)
def test_dropout_of_0_is_no_dropout(attend: Kernel) -> None:
    q, k, v, visible = one_attention_many_times()
    q, k, v = q[:2], k[:2], v[:2]
    assert_same(attend(q, k, v, visible, dropout=0.0), attend(q, k, v, visible))


@pytest.mark.parametrize("attend", [attend_visible, attend_fused], ids=name_of)
@pytest.mark.parametrize("biased", [False, True])
def test_dropout_with_an_empty_row_is_finite(attend: Kernel, biased: bool) -> None:
    q, k, v = (torch.randn(2, H, S, d, dtype=torch.float64, requires_grad=True) for _ in range(3))
    bias = torch.randn(S, S, dtype=torch.float64, requires_grad=True) if biased else None
    allowed = torch.ones(2, 1, S, S, dtype=torch.bool).tril()
    allowed[0, :, 2] = False
    mixed = attend(q, k, v, Allowed(allowed), bias=bias, dropout=0.5)
    mixed.sum().backward()
    assert_finite(mixed, q.grad, k.grad, v.grad)
    assert_same(mixed.detach()[0, :, 2], torch.zeros(H, d, dtype=torch.float64))
