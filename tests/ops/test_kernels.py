"""Two kernels, one meaning: values and gradients over all that both can honour, in float64 within 1e-12."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.ops import EVERYTHING, Allowed, Causal, Mask, Padding, attend_fused, attend_visible, causal
from tests.oracles import faulty_attention as faulty
from tests.oracles.compare import assert_finite, assert_same, assert_within
from tests.oracles.faulty_attention import Sound, name_of

Kernel = Callable[..., Tensor]
B, H, d = 2, 4, 6
SIZES = {"T<S": (3, 5), "T=S": (5, 5), "T=1": (1, 5), "S=1": (1, 1)}
BIASES: dict[str, Callable[[int, int], tuple[int, ...]]] = {
    "per head": lambda T, S: (H, T, S),
    "per row": lambda T, S: (B, 1, 1, S),
    "full": lambda T, S: (B, H, T, S),
    "keys": lambda T, S: (S,),
}


def some_empty(T: int, S: int) -> Mask:
    """Any pattern; the last query of the second row may look at nothing."""
    allowed = torch.rand(B, 1, T, S) < 0.6
    allowed[1, :, -1] = False
    return Allowed(allowed)


def all_padding(T: int, S: int) -> Mask:
    """The first row is padding from end to end, the second has one padded key."""
    real = torch.ones(B, S, dtype=torch.bool)
    real[0] = False
    real[1, S // 2] = S == 1
    return causal(T, S) & Padding(real)


MASKS: dict[str, Callable[[int, int], Mask]] = {
    "everything": lambda T, S: EVERYTHING,
    "causal": causal,
    "causal & everything": lambda T, S: causal(T, S) & EVERYTHING,
    "left padding": lambda T, S: causal(T, S) & Padding(torch.arange(S) >= torch.tensor([[0], [S // 2]])),
    "all padding": all_padding,
    "positions per row": lambda T, S: Causal(torch.arange(T) + torch.tensor([[0], [1]]), torch.arange(S).expand(B, S)),
    "some empty": some_empty,
    "nothing": lambda T, S: Allowed(torch.zeros(1, 1, dtype=torch.bool)),
}


def results(
    attend: Kernel, inputs: list[Tensor], visible: Mask, *, bias: Tensor | None, scale: float | None, upstream: Tensor
) -> list[Tensor]:
    """The output, and the gradients of q, k, v and bias for one direction of the output."""
    leaves = [x.clone().requires_grad_() for x in (*inputs, *([] if bias is None else [bias]))]
    mixed = attend(*leaves[:3], visible, bias=None if bias is None else leaves[3], scale=scale)
    (mixed * upstream).sum().backward()
    assert_finite(mixed, *(leaf.grad for leaf in leaves))
    return [mixed.detach(), *(leaf.grad for leaf in leaves if leaf.grad is not None)]


def check_equal_to_visible(attend: Kernel, mask: str, heads: tuple[int, ...] = (H, 2, 1)) -> None:
    """A kernel equals `attend_visible` for one kind of mask over sizes, groups, widths of v, biases and scales."""
    grid = itertools.product(SIZES.values(), heads, (d, 7), (None, *BIASES.values()), (None, 0.3))
    for (T, S), K, d_v, bias_shape, scale in grid:
        visible = MASKS[mask](T, S)
        inputs = [torch.randn(shape, dtype=torch.float64) for shape in ((B, H, T, d), (B, K, S, d), (B, K, S, d_v))]
        bias = None if bias_shape is None else torch.randn(bias_shape(T, S), dtype=torch.float64)
        upstream = torch.randn(B, H, T, d_v, dtype=torch.float64)
        expected = results(attend_visible, inputs, visible, bias=bias, scale=scale, upstream=upstream)
        for actual, wanted in zip(
            results(attend, inputs, visible, bias=bias, scale=scale, upstream=upstream), expected, strict=True
        ):
            assert_within(actual, wanted, 1e-12)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("attend", [attend_fused, Sound()], ids=name_of)
def test_values_and_gradients_are_those_of_the_visible_kernel(attend: Kernel, mask: str) -> None:
    check_equal_to_visible(attend, mask)


@pytest.mark.parametrize(
    ("kind", "mask"),
    [
        (faulty.NoScale, "everything"),
        (faulty.MaskAfterSoftmax, "causal"),
        (faulty.MaskReversed, "causal"),
        (faulty.TopLeft, "causal"),
        (faulty.StrictTriangle, "causal"),
        (faulty.NoMask, "left padding"),
        (faulty.TopLeft, "positions per row"),
        (faulty.FiniteMask, "some empty"),
        (faulty.EmptyRowIsNaN, "some empty"),
        (faulty.EmptyRowIsNaN, "all padding"),
        (faulty.FiniteMask, "nothing"),
        (faulty.HeadsTiled, "everything"),
    ],
)
def test_a_faulty_kernel_is_told_apart(kind: type[Sound], mask: str) -> None:
    with pytest.raises(AssertionError):
        check_equal_to_visible(kind(), mask)


@pytest.mark.parametrize("attend", [attend_visible, attend_fused], ids=name_of)
@pytest.mark.parametrize("biased", [False, True])
def test_a_query_that_may_look_at_nothing_gives_exactly_0(attend: Kernel, biased: bool) -> None:
    q, k, v = (torch.randn(B, H, 5, d, dtype=torch.float64) for _ in range(3))
    bias = torch.randn(5, 5, dtype=torch.float64) if biased else None
    allowed = torch.ones(B, 1, 5, 5, dtype=torch.bool)
    allowed[0, :, 2] = False
    q.requires_grad_()
    mixed = attend(q, k, v, Allowed(allowed), bias=bias)
    mixed.square().sum().backward()
    assert_same(mixed[0, :, 2], torch.zeros(H, d, dtype=torch.float64))
    assert mixed[0, :, 1].ne(0).all()
    assert q.grad is not None
    assert_same(q.grad[0, :, 2], torch.zeros(H, d, dtype=torch.float64))
    assert q.grad[0, :, 1].ne(0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("mask", ["causal", "all padding"])
def test_both_kernels_agree_in_the_precision_of_the_input(dtype: torch.dtype, mask: str) -> None:
    """Within a few of its roundings of the float64 result: the softmax loses nothing of its own."""
    T, S = SIZES["T=S"]
    q, k, v = (torch.randn(B, H, T, d, dtype=torch.float64).to(dtype) for _ in range(3))
    visible = MASKS[mask](T, S)
    exact = attend_visible(q.double(), k.double(), v.double(), visible).to(dtype)
    for attend in (attend_visible, attend_fused):
        assert_within(attend(q, k, v, visible), exact, 8 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("kept", ["everything", "causal"])
def test_the_fused_kernel_builds_no_matrix_where_it_needs_none(monkeypatch: pytest.MonkeyPatch, kept: str) -> None:
    """Not for everything, not for the triangle alone or with everything beside it, not for the newest position."""

    def refuse(self: Mask, device: torch.device | None = None) -> Tensor:
        raise AssertionError("a matrix was built")

    for kind in (Causal, type(EVERYTHING)):
        monkeypatch.setattr(kind, "matrix", refuse)
    q, k, v = (torch.randn(B, H, 5, d) for _ in range(3))
    masks = [EVERYTHING] if kept == "everything" else [causal(5), causal(5) & EVERYTHING, EVERYTHING & causal(5)]
    for visible in masks:
        attend_fused(q, k, v, visible)
    attend_fused(q[..., -1:, :], k, v, causal(1, 5))
