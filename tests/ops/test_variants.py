"""Soft-capped attention and attention with sinks: against loops, gradients, and planted faults."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from clearhead.ops import Allowed, Mask, Padding, attend_visible, causal, softmax
from clearhead.ops.attention_variants import attend_capped, attend_with_sinks
from clearhead.tracing import Recorder
from tests.oracles.compare import assert_finite, assert_same, assert_within

Kernel = Callable[..., Tensor]
B, H, K, T, S, d, d_v = 2, 4, 2, 3, 5, 6, 7
CAP = 0.8
SINKS = torch.tensor([0.0, 1.5, -2.0, 0.3], dtype=torch.float64)


def some_empty() -> Mask:
    allowed = torch.rand(B, 1, T, S) < 0.6
    allowed[1, :, -1] = False
    return Allowed(allowed)


MASKS: dict[str, Callable[[], Mask]] = {
    "causal": lambda: causal(T, S),
    "padding": lambda: causal(T, S) & Padding(torch.arange(S) >= torch.tensor([[0], [2]])),
    "some empty": some_empty,
}


def inputs() -> list[Tensor]:
    return [torch.randn(shape, dtype=torch.float64) for shape in ((B, H, T, d), (B, K, S, d), (B, K, S, d_v))]


def in_loops(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    visible: Mask,
    *,
    bias: Tensor | None,
    scale: float | None,
    cap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """One number at a time, in numpy."""
    allowed = visible.matrix().expand(B, H, T, S).numpy()
    added = np.zeros((B, H, T, S)) if bias is None else bias.expand(B, H, T, S).numpy()
    mixed = np.zeros((B, H, T, d_v))
    for b, h, t in itertools.product(range(B), range(H), range(T)):
        exponentials = {}
        for s in range(S):
            if allowed[b, h, t, s]:
                score = float(np.dot(q[b, h, t].numpy(), k[b, h // (H // K), s].numpy()))
                score *= 1 / math.sqrt(d) if scale is None else scale
                score = score if cap is None else cap * math.tanh(score / cap)
                exponentials[s] = math.exp(score + added[b, h, t, s])
        total = sum(exponentials.values()) + (0.0 if sinks is None else math.exp(sinks[h]))
        for s, number in exponentials.items():
            mixed[b, h, t] += number / total * v[b, h // (H // K), s].numpy()
    return torch.from_numpy(mixed)


def check(attend: Kernel, **twist: object) -> None:
    """A kernel equals the loops over masks, biases and scales."""
    grid = itertools.product(MASKS.values(), (None, (H, 1, S), (B, 1, T, S)), (None, 0.7))
    for mask, bias_shape, scale in grid:
        visible, (q, k, v) = mask(), inputs()
        bias = None if bias_shape is None else torch.randn(bias_shape, dtype=torch.float64)
        expected = in_loops(q, k, v, visible, bias=bias, scale=scale, **twist)  # type: ignore[arg-type]
        assert_within(attend(q, k, v, visible, bias=bias, scale=scale), expected, 1e-12)


def test_capped_attention_is_the_loops() -> None:
    check(partial(attend_capped, cap=CAP), cap=CAP)


def test_attention_with_sinks_is_the_loops() -> None:
    check(partial(attend_with_sinks, sinks=SINKS), sinks=SINKS)


def cap_after_bias(
    q: Tensor, k: Tensor, v: Tensor, visible: Mask, *, bias: Tensor | None, scale: float | None
) -> Tensor:
    """The planted fault: bias and mask are squeezed too."""
    scores = q @ k.repeat_interleave(H // K, 1).mT * (d**-0.5 if scale is None else scale)
    scores = CAP * torch.tanh((scores if bias is None else scores + bias) / CAP)
    weights = softmax(scores.masked_fill(~visible.matrix(), -torch.inf))
    return weights @ v.repeat_interleave(H // K, 1)


@pytest.mark.parametrize(
    "fault",
    [attend_visible, partial(attend_capped, cap=CAP * 1.01), cap_after_bias],
    ids=["no cap", "another cap", "cap after the bias"],
)
def test_a_faulty_cap_is_caught(fault: Kernel) -> None:
    with pytest.raises(AssertionError):
        check(fault, cap=CAP)


@pytest.mark.parametrize(
    "fault",
    [
        attend_visible,
        partial(attend_with_sinks, sinks=SINKS.flip(0)),
        partial(attend_with_sinks, sinks=SINKS.roll(1)),
        partial(attend_with_sinks, sinks=-SINKS),
    ],
    ids=["no sinks", "reversed heads", "shifted heads", "signs"],
)
def test_faulty_sinks_are_caught(fault: Kernel) -> None:
    with pytest.raises(AssertionError):
        check(fault, sinks=SINKS)


@pytest.mark.parametrize(
    ("attend", "twist"),
    [(partial(attend_capped, cap=CAP), []), (attend_with_sinks, [SINKS])],
    ids=["capped", "sinks"],
)
@pytest.mark.parametrize("mask", MASKS)
def test_gradients_are_those_of_finite_differences(attend: Kernel, twist: list[Tensor], mask: str) -> None:
    """Of q, k, v, the bias, and the sinks."""
    visible, bias = MASKS[mask](), torch.randn(H, T, S, dtype=torch.float64)
    leaves = [x.clone().requires_grad_() for x in (*inputs(), bias, *twist)]

    def function(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, *sinks: Tensor) -> Tensor:
        options = {"sinks": sinks[0]} if sinks else {}
        return attend(q, k, v, visible, bias=bias, **options)

    assert torch.autograd.gradcheck(function, leaves)


def test_a_wide_cap_is_no_cap_and_a_narrow_one_makes_weights_equal() -> None:
    q, k, v = inputs()
    visible = causal(T, S)
    assert_within(attend_capped(q, k, v, visible, cap=1e6), attend_visible(q, k, v, visible), 1e-11)
    equal = attend_visible(torch.zeros_like(q), k, v, visible)
    assert_within(attend_capped(q * 1e6, k, v, visible, cap=1e-9), equal, 1e-8)


def test_capped_scores_stay_below_the_cap() -> None:
    recorder = Recorder()
    q, k, v = inputs()
    attend_capped(q * 1e4, k, v, causal(T, S), cap=CAP, tap=recorder)
    assert recorder.tensors["scores"].abs().max() <= CAP
    assert_within(recorder.tensors["weights"].sum(-1), torch.ones(B, H, T).double(), 1e-15)


def test_rows_with_sinks_sum_to_less_than_1_and_what_lacks_is_the_sink_s() -> None:
    recorder = Recorder()
    q, k, v = inputs()
    attend_with_sinks(q, k, v, causal(T, S), sinks=SINKS, tap=recorder)
    sums = recorder.tensors["weights"].sum(-1)
    hidden = recorder.tensors["scores"].masked_fill(~causal(T, S).matrix(), -torch.inf)
    sinks = SINKS[:, None, None].expand(B, H, T, 1)
    with_sink = torch.cat([hidden, sinks], -1).softmax(-1)
    assert bool((sums < 1).all())
    assert_within(1 - sums, with_sink[..., -1], 1e-15)


def test_a_sink_far_below_is_no_sink_and_one_far_above_takes_all() -> None:
    q, k, v = inputs()
    none = torch.full((H,), -torch.inf, dtype=torch.float64)
    assert_same(attend_with_sinks(q, k, v, causal(T, S), sinks=none), attend_visible(q, k, v, causal(T, S)))
    all_of_it = attend_with_sinks(q, k, v, causal(T, S), sinks=torch.full((H,), 1e3, dtype=torch.float64))
    assert_same(all_of_it, torch.zeros(B, H, T, d_v).double())


def test_a_sink_of_0_is_softmax_off_by_one() -> None:
    """exp(x) / (1 + Σ exp(x))."""
    x = torch.randn(3, 5, dtype=torch.float64)
    assert_within(softmax(x, sink=torch.zeros(1).double()), x.exp() / (1 + x.exp().sum(-1, keepdim=True)), 1e-15)
    assert_same(
        softmax(torch.full((1, 3), -torch.inf).double(), sink=torch.zeros(1).double()), torch.zeros(1, 3).double()
    )
    large = softmax(x + 1e4, sink=torch.zeros(1).double())
    assert_within(large, x.softmax(-1), 1e-12)


KERNELS = [partial(attend_capped, cap=CAP), partial(attend_with_sinks, sinks=SINKS)]


@pytest.mark.parametrize("attend", KERNELS, ids=["capped", "sinks"])
def test_a_query_that_may_look_at_nothing_gives_0_with_finite_gradients(attend: Kernel) -> None:
    q, k, v = (x.requires_grad_() for x in inputs())
    allowed = torch.ones(B, 1, T, S, dtype=torch.bool)
    allowed[0, :, 1] = False
    mixed = attend(q, k, v, Allowed(allowed))
    mixed.square().sum().backward()
    assert_same(mixed[0, :, 1].detach(), torch.zeros(H, d_v).double())
    assert mixed[0, :, 0].ne(0).all()
    assert_finite(q.grad, k.grad, v.grad)


@pytest.mark.parametrize("attend", KERNELS, ids=["capped", "sinks"])
def test_dropout_drops_weights_and_a_tap_may_replace_them(attend: Kernel) -> None:
    q, k, v = inputs()
    torch.manual_seed(3)
    dropped = attend(q, k, v, causal(T, S), dropout=0.4)
    recorder = Recorder()
    attend(q, k, v, causal(T, S), tap=recorder)
    torch.manual_seed(3)
    expected = F.dropout(recorder.tensors["weights"], 0.4) @ v.repeat_interleave(H // K, 1)
    assert_within(dropped, expected, 1e-15)

    class Nothing(Recorder):
        def __call__(self, name: str, tensor: Tensor) -> Tensor:
            return tensor * 0 if name == "weights" else tensor

    assert_same(attend(q, k, v, causal(T, S), tap=Nothing()), torch.zeros(B, H, T, d_v).double())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("attend", KERNELS, ids=["capped", "sinks"])
def test_the_type_of_the_values_is_kept(attend: Kernel, dtype: torch.dtype) -> None:
    q, k, v = (x.to(dtype) for x in inputs())
    found = attend(q, k, v, causal(T, S))
    assert found.dtype == dtype
    assert_within(found.double(), attend(q.double(), k.double(), v.double(), causal(T, S)), 8 * torch.finfo(dtype).eps)
