"""What the online softmax is for, counted and not timed: memory that grows with T and not with T², and the same arithmetic.

Besides: what it may be asked for and where it runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from clearhead.ops import (
    Documents,
    Mask,
    Padding,
    Window,
    attend_blockwise,
    attend_fused,
    attend_visible,
    attention_blockwise,
    causal,
)
from tests.oracles.compare import assert_finite, assert_same, assert_within

Kernel = Callable[..., Tensor]
B, H, K, T, S, d, d_v = 2, 4, 2, 3, 5, 6, 7


def bytes_of(tensor: Tensor) -> int:
    """What it occupies: nothing on `meta`, and a view no more than what it views."""
    return 0 if tensor.device.type == "meta" else tensor.untyped_storage().nbytes()


class Largest(TorchDispatchMode):
    """Remembers the largest tensor that any operation made, in the forward or the backward."""

    bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.bytes = max([self.bytes, *(bytes_of(x) for x in tree_leaves(made) if isinstance(x, Tensor))])
        return made


def all_masks(T: int) -> Mask:
    """Every mask that knows positions or documents, together."""
    numbers, real = torch.arange(T)[None] // 50, torch.arange(T)[None] > 2
    return causal(T) & Window(40, range(T), range(T)) & Documents(numbers, numbers) & Padding(real)


def memory(attend: Kernel, T: int, dropout: float) -> tuple[int, int]:
    """Bytes of the largest tensor of forward and backward, and bytes kept between the two."""
    q, k, v = (torch.randn(1, 3, T, 4, requires_grad=True) for _ in range(3))
    kept: dict[int, int] = {}

    def remember(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = bytes_of(tensor)
        return tensor

    with Largest() as largest, saved_tensors_hooks(remember, lambda tensor: tensor):
        mixed = attend(q, k, v, all_masks(T), dropout=dropout)
        mixed.square().sum().backward()
    assert_finite(q.grad, k.grad, v.grad)
    return largest.bytes, sum(kept.values())


def check_linear(attend: Kernel, dropout: float = 0.0) -> None:
    once, twice, four = (memory(attend, T, dropout) for T in (128, 256, 512))
    assert twice == tuple(2 * x for x in once)
    assert four == tuple(4 * x for x in once)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_memory_grows_with_the_length(dropout: float) -> None:
    check_linear(partial(attend_blockwise, block=16), dropout)


def test_memory_of_the_visible_kernel_grows_with_its_square() -> None:
    (largest, kept), (largest_4, kept_4) = (memory(attend_visible, T, 0.0) for T in (128, 512))
    assert largest_4 == 16 * largest
    assert kept_4 > 14 * kept


def left_to_autograd(q: Tensor, k: Tensor, v: Tensor, visible: Mask, *, dropout: float) -> Tensor:
    """The planted fault: the same forward, block by block, without a backward of its own."""
    how = attention_blockwise._How(visible, 0.5, None, dropout, None, 16)
    return attention_blockwise._Blockwise.forward(q, k, v, None, None, how)[0]


@pytest.mark.parametrize(
    "attend",
    [attend_visible, left_to_autograd, lambda *args, dropout: attend_blockwise(*args, dropout=dropout, block=2**20)],
    ids=["visible", "autograd keeps the blocks", "one block"],
)
def test_a_kernel_that_holds_the_matrix_is_caught(attend: Kernel) -> None:
    with pytest.raises(AssertionError):
        check_linear(attend)


def test_a_mask_that_is_made_whole_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Documents.matrix
    part = Documents.of_keys

    def of_keys(self: Documents, start: int, stop: int) -> Documents:
        whole(self)
        return part(self, start, stop)

    monkeypatch.setattr(Documents, "of_keys", of_keys)
    with pytest.raises(AssertionError):
        check_linear(partial(attend_blockwise, block=4))


def flops(attend: Kernel) -> int:
    q, k, v = torch.randn(B, H, T, d), torch.randn(B, K, S, d), torch.randn(B, K, S, d_v)
    with FlopCounterMode(display=False) as counter:
        attend(q, k, v, causal(T, S) & Window(1, range(S - T, S), range(S)))
    return counter.get_total_flops()


@pytest.mark.parametrize("block", [1, 2, 3, S, S + 7])
def test_the_forward_has_the_arithmetic_of_the_visible_kernel(block: int) -> None:
    """Nobody looks at the first two keys; that is no shortcut."""
    assert flops(partial(attend_blockwise, block=block)) == flops(attend_visible) == 2 * B * H * T * S * (d + d_v)


def test_a_block_that_is_skipped_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    every = attention_blockwise._blocks
    monkeypatch.setattr(attention_blockwise, "_blocks", lambda *args: list(every(*args))[:-1])
    assert flops(partial(attend_blockwise, block=2)) < flops(attend_visible)


# What it may be asked for


def inputs(dtype: torch.dtype = torch.float64) -> list[Tensor]:
    return [torch.randn(shape).to(dtype) for shape in ((B, H, T, d), (B, K, S, d), (B, K, S, d_v))]


def gradients(attend: Kernel, leaves: list[Tensor]) -> list[Tensor]:
    leaves = [x.clone().requires_grad_() for x in leaves]
    mixed = attend(*leaves, causal(T, S))
    mixed.square().sum().backward()
    return [mixed.detach(), *(x.grad for x in leaves if x.grad is not None)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_the_precision_is_that_of_the_input_and_the_type_that_of_the_values(dtype: torch.dtype) -> None:
    leaves = inputs(dtype)
    exact = gradients(attend_visible, [x.double() for x in leaves])
    for found, wanted in zip(gradients(partial(attend_blockwise, block=2), leaves), exact, strict=True):
        assert found.dtype == dtype
        assert_within(found.double(), wanted, 8 * torch.finfo(dtype).eps * max(1.0, wanted.abs().max().item()))


def test_sums_of_many_keys_are_exact_in_16_bits() -> None:
    """A running sum of bfloat16 would stay at 256, to which it cannot add 1."""
    q, k = torch.zeros(1, 1, 1, d, dtype=torch.bfloat16), torch.randn(1, 1, 1024, d).bfloat16()
    v = torch.ones(1, 1, 1024, 1, dtype=torch.bfloat16).index_fill(2, torch.arange(512, 1024), 3)
    assert attend_blockwise(q, k, v, causal(1, 1024), block=1).item() == 2


def test_autocast_changes_nothing() -> None:
    attend, leaves = partial(attend_blockwise, block=2), inputs(torch.float32)
    expected = gradients(attend, leaves)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = gradients(attend, leaves)
    for actual, wanted in zip(found, expected, strict=True):
        assert_same(actual, wanted)


@pytest.mark.parametrize("order", [1, -1])
def test_scores_of_thousands_that_rise_or_fall_from_block_to_block(order: int) -> None:
    q, v = torch.ones(1, 1, 1, 1).double(), torch.randn(1, 1, S, 3).double()
    k = 3000 * order * torch.arange(S).double().view(1, 1, S, 1)
    for found in (attend_blockwise(q, k, v, causal(1, S), block=block) for block in (1, 2, S)):
        assert_same(found, v[:, :, [-1 if order == 1 else 0]])


@pytest.mark.parametrize("needed", [c for n in range(1, 5) for c in itertools.combinations(range(5), n)], ids=str)
def test_gradients_of_some_inputs_are_those_of_all(needed: tuple[int, ...]) -> None:
    leaves = [*inputs(), torch.randn(H, 1, S).double(), torch.randn(H).double()]

    def run(wanted: tuple[int, ...]) -> list[Tensor | None]:
        q, k, v, bias, sinks = own = [x.clone().requires_grad_(i in wanted) for i, x in enumerate(leaves)]
        attend_blockwise(q, k, v, causal(T, S), bias=bias, sinks=sinks, block=2).square().sum().backward()
        return [x.grad for x in own]

    for index, (some, every) in enumerate(zip(run(needed), run((0, 1, 2, 3, 4)), strict=True)):
        assert (some is not None) == (index in needed)
        if some is not None:
            assert_same(some, every)


def test_nothing_is_drawn_without_dropout_and_a_seed_repeats_it() -> None:
    leaves, before = inputs(), torch.get_rng_state()
    plain = attend_blockwise(*leaves, causal(T, S))
    assert torch.get_rng_state().equal(before)
    first, second = (attend_blockwise(*leaves, causal(T, S), dropout=0.4) for _ in range(2))
    assert not first.equal(second)
    torch.set_rng_state(before)
    assert_same(attend_blockwise(*leaves, causal(T, S), dropout=0.4), first)
    gone = gradients(partial(attend_blockwise, dropout=1.0), leaves)
    for tensor in gone:
        assert_same(tensor, torch.zeros_like(tensor))
    assert plain.ne(0).all()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_it_runs_where_no_gradient_is_asked_for(mode: Callable[[], Any]) -> None:
    leaves = [x.requires_grad_() for x in inputs()]
    with mode():
        found = attend_blockwise(*leaves, causal(T, S), block=2)
    assert not found.requires_grad
    assert_within(found.clone(), attend_visible(*leaves, causal(T, S)), 1e-12)


def test_it_runs_on_meta() -> None:
    found = attend_blockwise(
        *(x.to("meta") for x in inputs()), causal(T, S) & Padding(torch.ones(B, S).bool()), block=2
    )
    assert (found.device.type, found.shape) == ("meta", (B, H, T, d_v))


# Dynamo makes an instance of autograd.Function and looks for .grad everywhere; PyTorch then warns of what it did itself.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_it_runs_compiled(dropout: float) -> None:
    attend = partial(attend_blockwise, block=2, cap=0.8, sinks=torch.zeros(H).double(), dropout=dropout)
    leaves = inputs()
    torch.manual_seed(3)
    expected = gradients(attend, leaves)
    torch.manual_seed(3)
    for actual, wanted in zip(gradients(torch.compile(attend, backend="eager"), leaves), expected, strict=True):
        assert_within(actual, wanted, 1e-12)


@pytest.mark.parametrize("block", [0, -3])
def test_a_block_without_keys_is_an_error(block: int) -> None:
    with pytest.raises(ValueError, match=rf"block of {block} keys"):
        attend_blockwise(*inputs(), causal(T, S), block=block)


@pytest.mark.parametrize("keys", [S - 2, S - 1, S + 1])
@pytest.mark.parametrize("block", [1, 3, S])
def test_a_mask_or_a_bias_of_other_keys_is_an_error(keys: int, block: int) -> None:
    """A block alone could not tell: a last column that is left over would count for all keys of its block."""
    with pytest.raises(ValueError, match=rf"mask of shape \(3, {keys}\)"):
        attend_blockwise(*inputs(), causal(T, keys), block=block)
    with pytest.raises(ValueError, match=rf"bias of shape \(1, {keys}\)"):
        attend_blockwise(*inputs(), causal(T, S), bias=torch.zeros(1, keys), block=block)


@pytest.mark.parametrize("dropout", [-0.1, 1.1])
def test_a_dropout_that_is_no_probability_is_an_error(dropout: float) -> None:
    with pytest.raises(RuntimeError, match="p"):
        attend_blockwise(*inputs(), causal(T, S), dropout=dropout)


def test_a_second_derivative_is_an_error_and_not_a_wrong_number() -> None:
    q, k, v = (x.requires_grad_() for x in inputs())
    mixed = attend_blockwise(q, k, v, causal(T, S)).sum()
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(mixed, q, create_graph=True)


def test_the_fused_kernel_agrees() -> None:
    for found, wanted in zip(
        gradients(partial(attend_blockwise, block=2), leaves := inputs()), gradients(attend_fused, leaves), strict=True
    ):
        assert_within(found, wanted, 1e-12)
