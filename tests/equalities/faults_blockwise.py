"""Faults of the blockwise kernel, planted by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.models import build as factory
from clearhead.ops import attention_blockwise as blockwise
from clearhead.ops import masks
from clearhead.ops.attention import attend_visible
from tests.equalities.registry import Fault, fault
from tests.oracles import faulty_attention as faulty
from tests.oracles.faulty_attention import Sound


def _parts(keys: int, block: int) -> list[tuple[int, int]]:
    return [(start, min(start + block, keys)) for start in range(0, keys, block)]


def _blockwise(kernel: Callable[..., Tensor]) -> Callable[[pytest.MonkeyPatch], None]:
    """Only models that ask for the blockwise kernel get this one."""
    return lambda patch: patch.setattr(factory, "attend_blockwise", kernel)


def _apart(q, k, v, visible, *, bias=None, block, cap=None, sinks=None, **rest):
    found = [
        attend_visible(
            q, k[..., a:b, :], v[..., a:b, :], visible.of_keys(a, b),
            bias=None if bias is None else bias[..., a:b], **rest,
        )
        for a, b in _parts(k.shape[-2], block)
    ]  # fmt: skip
    return torch.stack(found).mean(0)


def _tail_lost(q, k, v, visible, *, bias=None, block, cap=None, sinks=None, **rest):
    whole = k.shape[-2] // block * block or k.shape[-2]
    term = None if bias is None else bias[..., :whole]
    return attend_visible(q, k[..., :whole, :], v[..., :whole, :], visible.of_keys(0, whole), bias=term, **rest)


class _MeanOfHidden(faulty.FiniteMask):
    """An empty row becomes the mean of v, in blocks or not."""

    def __call__(self, q, k, v, visible, *, block, cap=None, sinks=None, **rest):
        return super().__call__(q, k, v, visible, **rest)


class _Unscaled(Sound):
    def scale(self, q: Tensor, k: Tensor) -> float:
        return 1.0

    def __call__(self, q, k, v, visible, *, block, cap=None, sinks=None, **rest):
        return super().__call__(q, k, v, visible, **rest)


blocks_apart = Fault(
    "softmax.blocks", "each block of keys has a softmax of its own", "每块键各做各的 softmax", _blockwise(_apart)
)
tail_lost = Fault(
    "block.tail-lost", "keys after the last whole block are lost", "最后不满一块的键丢失", _blockwise(_tail_lost)
)
hidden_mean = Fault(
    "mask.empty-row", "a query that may see nothing gets the mean of v", "什么都看不见的查询得到 v 的平均",
    _blockwise(_MeanOfHidden()),
)  # fmt: skip
unscaled = Fault("scale.missing", "the blockwise kernel does not scale", "分块内核没有缩放", _blockwise(_Unscaled()))


@fault("mask.wrong-block", "every block of keys gets the mask of the first", "每块键都用第一块的掩码")
def mask_of_the_first_block(patch: pytest.MonkeyPatch) -> None:
    for kind in (masks.Causal, masks.Padding):
        right = kind.of_keys
        patch.setattr(kind, "of_keys", lambda self, start, stop, right=right: right(self, 0, stop - start))


@fault("bias.wrong-block", "every block of keys gets the bias of the first", "每块键都用第一块的偏置")
def bias_of_the_first_block(patch: pytest.MonkeyPatch) -> None:
    right = blockwise._columns
    patch.setattr(blockwise, "_columns", lambda bias, start, stop: right(bias, 0, stop - start))


@fault("heads.grouped-gradient", "of a group's gradients one is kept, not the sum", "一组的梯度只留一个，没有求和")
def grouped_gradient(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(blockwise, "_gather", lambda x, like: x[..., :: x.shape[-3] // like.shape[-3], :, :].clone())


@fault("score.cap (blockwise)", "the blockwise kernel applies no cap", "分块内核没有应用上限")
def uncapped(patch: pytest.MonkeyPatch) -> None:
    right = factory.attend_blockwise
    patch.setattr(factory, "attend_blockwise", lambda *a, cap=None, **rest: right(*a, cap=None, **rest))


@fault("score.sink (blockwise)", "in the blockwise kernel the sink takes no weight", "分块内核的 sink 不占权重")
def sinkless(patch: pytest.MonkeyPatch) -> None:
    right = factory.attend_blockwise
    patch.setattr(
        factory,
        "attend_blockwise",
        lambda *a, sinks=None, **rest: right(*a, sinks=None if sinks is None else sinks - 100, **rest),
    )
