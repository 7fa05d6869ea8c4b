"""Faults of caches, configurations, modes, sampling and compilation, planted by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.generation import sampling, stores
from clearhead.generation.stores import counted, fixed, growing, window
from clearhead.layers import attention
from clearhead.layers import store as base
from clearhead.models import build as factory
from clearhead.models import decoder
from tests.equalities.registry import Fault, fault

# --- caches


@fault("cache.shared-between-blocks", "all blocks use one cache", "所有块共用一个缓存")
def shared_cache(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stores.FixedStore, "layer", lambda self, index: self.layers[0])


@fault("cache.stale", "truncating keeps the newest tokens", "截断时留下的是最新的词元")
def stale_cache(patch: pytest.MonkeyPatch) -> None:
    def truncate(self, length: int) -> None:
        self.kept = (self.kept[0][..., -length:, :], self.kept[1][..., -length:, :])

    patch.setattr(growing._GrowingLayer, "truncate", truncate)


@fault("cache.aliased", "two caches write into one memory", "两个缓存写进同一块内存")
def aliased(patch: pytest.MonkeyPatch) -> None:
    right, pool = fixed._FixedLayer._room, {}

    def room(self, new: Tensor) -> Tensor:
        self.store.rooms = getattr(self.store, "rooms", 0) + 1
        return pool.setdefault(self.store.rooms, right(self, new))

    patch.setattr(fixed._FixedLayer, "_room", room)


@fault("cache.ring-off-by-one", "the ring writes one slot further", "环形缓存多写一格")
def ring_off_by_one(patch: pytest.MonkeyPatch) -> None:
    right = window._RingLayer.append

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        seen = right(self, k, v)
        self.kept = (self.kept[0].roll(1, -2), self.kept[1].roll(1, -2))
        return seen

    patch.setattr(window._RingLayer, "append", append)


@fault("batch.mixing", "choosing rows of a cache keeps their old order", "从缓存中选行时仍按原来的顺序")
def rows_unordered(patch: pytest.MonkeyPatch) -> None:
    right = counted.KeptLayer.select
    patch.setattr(counted.KeptLayer, "select", lambda self, rows: right(self, rows.sort().values))


@fault("cache.overflow", "room for one token more than asked", "缓存多留了一格")
def one_too_many(patch: pytest.MonkeyPatch) -> None:
    right = window._RingLayer._room
    patch.setattr(window._RingLayer, "_room", lambda self, new: F.pad(right(self, new), (0, 0, 0, 1)))


@fault("cache.forgotten", "going back further than the ring holds is allowed", "允许退回到环中已没有的位置")
def ring_goes_back(patch: pytest.MonkeyPatch) -> None:
    def truncate(self, length: int) -> None:
        self.first = max(self.first, self.length - self.size)
        self._cut(length)

    patch.setattr(stores.WindowStore, "truncate", truncate)


# --- configurations, modes, sampling, compilation


def _dropout(forward: Callable[[nn.Dropout, Tensor], Tensor]) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(nn.Dropout, "forward", forward)


active_in_eval = Fault(
    "dropout.active-in-eval",
    "dropout also in evaluation",
    "评估时仍然丢弃",
    _dropout(lambda self, x: F.dropout(x, self.p)),
)
not_rescaled = Fault(
    "dropout.no-rescale", "kept values not divided by 1-p", "保留的值没有除以 1-p",
    _dropout(lambda self, x: x * (torch.rand_like(x) >= self.p) if self.training else x),
)  # fmt: skip
off_without_gradient = Fault(
    "dropout.off-in-no_grad", "no_grad taken for evaluation", "把 no_grad 当作评估模式",
    _dropout(lambda self, x: F.dropout(x, self.p, self.training and torch.is_grad_enabled())),
)  # fmt: skip


@fault("dropout.never-active", "nothing is ever dropped", "从不丢弃")
def never_drops(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(nn.Dropout, "forward", lambda self, x: x)
    patch.setattr("clearhead.ops.attention.F.dropout", lambda x, p: x)


@fault("sampling.temperature", "logits divided by τ after the softmax", "先做 softmax 再除以 τ")
def temperature_after(patch: pytest.MonkeyPatch) -> None:
    right = sampling.softmax
    patch.setattr(sampling, "softmax", lambda logits: right(logits) / 0.7)


@fault("compile.graph-break", "the forward branches on a number in a tensor", "前向按张量里的数字分支")
def graph_break(patch: pytest.MonkeyPatch) -> None:
    right = attention.merge_heads
    patch.setattr(attention, "merge_heads", lambda x: right(x) if x.sum() != 0 else 2 * right(x))


@fault("compile.recompiled", "a text that names the step is read in the graph", "图里读取写有步数的文字")
def step_in_a_string(patch: pytest.MonkeyPatch) -> None:
    right = stores.FixedStore.places

    def places(self, length: int, real: Tensor | None, device: torch.device) -> base.Places:
        return right(self, length + len(self.step) * 0, real, device)

    def advance(self, length: int, right: Callable[..., None] = stores.FixedStore.advance) -> None:
        right(self, length)
        self.step = f"step {self.length}"

    patch.setattr(stores.FixedStore, "step", "none", raising=False)
    patch.setattr(stores.FixedStore, "places", places)
    patch.setattr(stores.FixedStore, "advance", advance)


@fault("parameter.recreated", "the fused kernel brings weights of its own", "融合内核带有自己的权重")
def kernel_with_weights(patch: pytest.MonkeyPatch) -> None:
    right = factory._kernel

    def chosen(config):
        kernel = nn.Linear(1, 1)
        kernel.forward = right(config)
        return right(config) if isinstance(config.kernel, factory.choices.Visible) else kernel

    patch.setattr(factory, "_kernel", chosen)


@fault("config.clash", "options that do not go together are accepted", "接受互相冲突的选项")
def clashes_pass(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(factory.DecoderConfig, "_clashes", lambda self: [])


@fault("parameter.kept", "the first forward registers a table of its own", "第一次前向注册了自己的表")
def table_kept(patch: pytest.MonkeyPatch) -> None:
    right = decoder.Decoder.forward

    def forward(self, ids: Tensor, **more: object) -> Tensor:
        self.register_buffer("table", torch.zeros(3))
        return right(self, ids, **more)

    patch.setattr(decoder.Decoder, "forward", forward)
