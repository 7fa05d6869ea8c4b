"""The online softmax: values and gradients are those of the visible kernels, for any block, mask, bias, cap and sinks."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from clearhead.ops import (
    EVERYTHING,
    Allowed,
    Documents,
    Mask,
    Padding,
    Prefix,
    Window,
    attend_blockwise,
    attend_capped,
    attend_visible,
    attend_with_sinks,
    attention_blockwise,
    causal,
)
from clearhead.ops.attention import mix, scaled_scores, weigh
from tests.ops.test_dropout import check_dropout
from tests.oracles.compare import assert_finite, assert_within

Kernel = Callable[..., Tensor]
B, H, T, S, d, d_v = 2, 4, 3, 5, 6, 7
BLOCKS = (1, 3, S, S + 7)
QUERIES, KEYS = range(S - T, S), range(S)
NUMBERS = torch.tensor([[0, 0, 1, 1, 1], [3, 3, 3, 1, 1]])
LEFT = Padding(torch.tensor([[True] * S, [False, False, False, True, True]]))
RIGHT = Padding(torch.tensor([[True] * S, [True, True, False, False, False]]))
NONE = Padding(torch.tensor([[False] * S, [True, True, False, True, True]]))
EMPTY_ROW = Allowed(torch.ones(B, 1, T, S).index_fill(2, torch.tensor([1]), 0).bool())
WINDOW, DOCUMENTS = Window(2, QUERIES, KEYS), Documents(NUMBERS[:, -T:], NUMBERS)
MASKS: dict[str, Mask] = {
    "everything": EVERYTHING,
    "causal": causal(T, S),
    "causal square": causal(S),
    "window": causal(T, S) & WINDOW,
    "prefix": Prefix(4, QUERIES, KEYS),
    "documents": causal(T, S) & DOCUMENTS,
    "padding left": causal(T, S) & LEFT,
    "padding right": causal(T, S) & RIGHT,
    "a row of padding": causal(T, S) & NONE,
    "all of them": causal(T, S) & WINDOW & DOCUMENTS & LEFT,
    "an empty row": EMPTY_ROW,
    "one column for all keys": Allowed(EMPTY_ROW.allowed[..., :1]),
    "nothing": Allowed(torch.zeros(1, 1).bool()),
}
BIASES: dict[str, tuple[int, ...] | None] = {
    "none": None,
    "per head": (H, -1, S),
    "per key": (1, H, 1, S),
    "full": (B, H, -1, S),
    "per query": (B, 1, -1, 1),
    "keys alone": (S,),
    "one number": (),
}
TWISTS = list(itertools.product((None, 0.8), (None, torch.tensor([0.3, 1.5, -2.0, -torch.inf]).double())))


def reference(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    visible: Mask,
    *,
    bias: Tensor | None = None,
    scale: float | None = None,
    cap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """The visible kernel that does what is asked; the two twists together have none, so their steps stand here."""
    if cap is None and sinks is None:
        return attend_visible(q, k, v, visible, bias=bias, scale=scale)
    if sinks is None:
        return attend_capped(q, k, v, visible, bias=bias, scale=scale, cap=cap)
    if cap is None:
        return attend_with_sinks(q, k, v, visible, bias=bias, scale=scale, sinks=sinks)
    scores = cap * torch.tanh(scaled_scores(q, k, scale) / cap)
    return mix(weigh(scores, visible, bias=bias, sink=sinks[:, None, None]), v)


def some_inputs(T: int, K: int = 2, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    return [torch.randn(shape).to(dtype) for shape in ((B, H, T, d), (B, K, S, d), (B, K, S, d_v))]


def some_bias(shape: tuple[int, ...] | None, T: int, hidden: float = 0.0) -> Tensor | None:
    """A bias of a shape in which T stands as -1; a share of it is -inf."""
    if shape is None:
        return None
    bias = torch.randn([T if size == -1 else size for size in shape], dtype=torch.float64)
    return bias.masked_fill(torch.rand(bias.shape) < hidden, -torch.inf)


def results(attend: Kernel, leaves: list[Tensor | None], visible: Mask, **options: object) -> list[Tensor]:
    """The output, and the gradients of those of q, k, v, bias and sinks that there are, for one direction."""
    q, k, v, bias, sinks = (None if x is None else x.clone().requires_grad_() for x in leaves)
    mixed = attend(q, k, v, visible, bias=bias, sinks=sinks, **options)
    upstream = torch.randn(mixed.shape, generator=torch.Generator().manual_seed(1)).to(mixed.dtype)
    (mixed * upstream).sum().backward()
    found = [mixed.detach(), *(x.grad for x in (q, k, v, bias, sinks) if x is not None)]
    assert_finite(*found)
    return found


def check(attend: Kernel, visible: Mask, T: int = T, hidden: float = 0.0) -> None:
    """A kernel equals the reference for one mask over groups of heads, biases, caps, sinks, scales and blocks."""
    for K, shape, (cap, sinks) in itertools.product((H, 2, 1), BIASES.values(), TWISTS):
        leaves, scale = [*some_inputs(T, K), some_bias(shape, T, hidden), sinks], None if K == 2 else 0.7
        expected = results(reference, leaves, visible, cap=cap, scale=scale)
        for block in BLOCKS:
            found = results(attend, leaves, visible, cap=cap, scale=scale, block=block)
            for actual, wanted in zip(found, expected, strict=True):
                assert_within(actual, wanted, 1e-12)


@pytest.mark.parametrize("mask", MASKS)
def test_values_and_gradients_are_those_of_the_visible_kernels(mask: str) -> None:
    check(attend_blockwise, MASKS[mask], S if mask == "causal square" else T)


@pytest.mark.parametrize("hidden", [0.5, 1.0])
def test_a_bias_may_hide_keys(hidden: float) -> None:
    check(attend_blockwise, causal(T, S), hidden=hidden)


def check_dropped(attend: Kernel) -> None:
    """What was dropped in the forward is dropped in the backward: autograd's gradient for the weights that are left.

    Values that are the unit matrix show each weight; the same seed then drops the same.
    """
    for block, (cap, sinks), mask in itertools.product(BLOCKS, TWISTS, ("causal", "an empty row")):
        (q, k, v), visible, bias = some_inputs(T), MASKS[mask], torch.randn(H, 1, S).double()
        unit, options = torch.eye(S).double().expand(B, 2, S, S), {"bias": bias, "cap": cap}
        torch.manual_seed(block)
        left = attend(q, k, unit, visible, **options, sinks=sinks, dropout=0.4, block=block).ne(0).double() / 0.6

        def expected(
            q: Tensor, k: Tensor, v: Tensor, visible: Mask, *, bias: Tensor, sinks: Tensor | None, left: Tensor = left
        ) -> Tensor:
            weights = reference(q, k, unit, visible, bias=bias, cap=cap, sinks=sinks)  # noqa: B023 - called at once
            return mix(weights * left, v)

        torch.manual_seed(block)
        found = results(attend, [q, k, v, bias, sinks], visible, cap=cap, dropout=0.4, block=block)
        for actual, wanted in zip(found, results(expected, [q, k, v, bias, sinks], visible), strict=True):
            assert_within(actual, wanted, 1e-12)


def test_dropout_drops_the_same_in_the_backward() -> None:
    check_dropped(attend_blockwise)


def test_dropout_keeps_the_mean_and_drops_after_the_softmax() -> None:
    check_dropout(lambda *args, **options: attend_blockwise(*args, **options, block=2))


FAULTS = {
    "output not rescaled": ("mixed = mixed * older +", "mixed = mixed +"),
    "sum not rescaled": ("total = total * older +", "total = total +"),
    "mask of the first block": (".of_keys(start, stop)", ".of_keys(0, stop - start)"),
    "bias of the first block": ("_columns(bias, start, stop)", "_columns(bias, 0, stop - start)"),
    "ragged block left out": ("range(0, k.shape[-2], how", "range(0, max(k.shape[-2] - how.block, 0) + 1, how"),
    "the cap's derivative after the bias": ("scores = capped if", "scores = capped = capped if"),
    "sink without weight": ("total = (largest > -torch.inf)", "total = (largest > torch.inf)"),
    "empty row NaN": ("shift = _finite(larger)", "shift = larger"),
    "empty row NaN at the end": ("total.masked_fill(total == 0, 1.0)", "total"),
    "empty row NaN in the backward": ("shift = _finite(log_total)", "shift = log_total"),
    "softmax gradient without D": (" - inner)", ")"),
    "dq without scale": ("@ part.keys * how.scale", "@ part.keys"),
    "dk without scale": ("mT @ wide * how.scale", "mT @ wide"),
    "cap without derivative": ("(1 - (part.capped / how.cap) ** 2)", "1"),
    "dbias of the last block alone": ("spread += dscores", "spread[...] = dscores"),
    "dbias with scale": ("dscores.sum_to_size(spread.shape)", "(dscores * how.scale).sum_to_size(spread.shape)"),
    "sink forgotten in the backward": ("dsinks = -(", "dsinks = 0 * ("),
    "sink's gradient of the wrong sign": ("dsinks = -(", "dsinks = ("),
    "key heads in turn": (
        "like.shape[-3], -1, *x.shape[-2:]).sum(-3)",
        "-1, *like.shape[-3:-2], *x.shape[-2:]).sum(-4)",
    ),
}
DROPOUT_FAULTS = {
    "drawn anew in the backward": (".manual_seed(how.seed)", ".manual_seed(int(torch.randint(9**9, ())))"),
    "dv without dropout": ("_gather(_drop(weights, part)", "_gather(weights"),
    "dw without dropout": ("(_drop(gradient @ values.mT, part)", "((gradient @ values.mT)"),
    "kept weights do not grow": (" * grown", ""),
}


def faulty(monkeypatch: pytest.MonkeyPatch, right: str, wrong: str) -> Kernel:
    """The kernel, with a mistake in one line of its source."""
    source = Path(attention_blockwise.__file__).read_text(encoding="utf-8")
    assert source.count(right) == 1, right
    module = ModuleType("faulty_blockwise")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(source.replace(right, wrong), vars(module))
    return module.attend_blockwise


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_one_line_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attend = faulty(monkeypatch, *FAULTS[fault])
    with pytest.raises(AssertionError):
        check(attend, EMPTY_ROW & causal(T, S))


@pytest.mark.parametrize("fault", DROPOUT_FAULTS)
def test_a_fault_of_dropout_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attend = faulty(monkeypatch, *DROPOUT_FAULTS[fault])
    with pytest.raises(AssertionError):
        check_dropped(attend)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_gradients_are_those_of_finite_differences(dropout: float) -> None:
    bias, sinks = torch.randn(H, 1, S).double(), torch.randn(H).double()
    leaves = [x.requires_grad_() for x in (*some_inputs(T), bias, sinks)]

    def function(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, sinks: Tensor) -> Tensor:
        torch.manual_seed(3)
        return attend_blockwise(
            q, k, v, MASKS["a row of padding"], bias=bias, sinks=sinks, cap=0.8, dropout=dropout, block=2
        )

    assert torch.autograd.gradcheck(function, leaves)


sizes = st.integers(1, 4)


@given(small=st.tuples(*[sizes] * 6), S=st.integers(1, 9), block=st.integers(1, 11))
def test_any_shape(small: tuple[int, ...], S: int, block: int) -> None:
    batch, groups, K, T, d, d_v = small
    shapes = ((batch, K * groups, T, d), (batch, K, S, d), (batch, K, S, d_v))
    leaves = [*(torch.randn(shape).double() for shape in shapes), torch.randn(T, 1).double(), None]
    visible = Allowed(torch.rand(batch, 1, T, S) < 0.7)
    expected = results(reference, leaves, visible)
    for actual, wanted in zip(results(attend_blockwise, leaves, visible, block=block), expected, strict=True):
        assert_within(actual, wanted, 1e-12)
