"""Faults of attention, masks and heads, planted by hand; `faults_more` holds those of positions, blocks, caches and modes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.layers import attention as layer
from clearhead.models import build as factory
from clearhead.models.config import DecoderConfig
from clearhead.ops import attention as kernels
from clearhead.ops import attention_variants as variants
from clearhead.ops import masks
from clearhead.ops.heads import merge_heads, repeat_heads, split_heads
from clearhead.ops.masks import Mask
from tests.equalities.registry import Fault, fault
from tests.oracles import faulty_attention as faulty
from tests.oracles.faulty_attention import Sound


class ScaledByModelWidth(Sound):
    def scale(self, q: Tensor, k: Tensor) -> float:
        return (q.shape[-1] * q.shape[-3]) ** -0.5


class WeakMask(Sound):
    """A finite constant that large scores beat."""

    def weights(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return scores.masked_fill(~allowed, -1e4).softmax(-1)


class UnmaskedWithCache(Sound):
    """The mask is skipped as soon as there are more keys than queries."""

    def allowed(self, visible: Mask, scores: Tensor) -> Tensor:
        own = super().allowed(visible, scores)
        return own if scores.shape[-1] == scores.shape[-2] else torch.ones_like(own)


class RowsMixed(Sound):
    """A softmax over the batch."""

    def weights(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return scores.masked_fill(~allowed, -torch.inf).softmax(0).nan_to_num()


def _kernel(kind: type[Sound]) -> Callable[[pytest.MonkeyPatch], None]:
    """Every model that is built, and whoever asks for the fused kernel, gets this one."""

    def chosen(config: DecoderConfig) -> Sound:
        return kind()

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(factory, "_kernel", chosen)
        patch.setattr(kernels, "attend_fused", kind())

    return plant


no_mask = Fault("causal.future-leak", "no mask at all", "完全没有掩码", _kernel(faulty.NoMask))
after_softmax = Fault(
    "causal.after-softmax", "mask after the softmax", "掩码放在 softmax 之后", _kernel(faulty.MaskAfterSoftmax)
)
strict = Fault("causal.self-masked", "a position does not see itself", "位置看不见自己", _kernel(faulty.StrictTriangle))
self_only = Fault("causal.past-lost", "a position sees itself alone", "位置只看见自己", _kernel(faulty.SelfOnly))
top_left = Fault("causal.top-left", "triangle aligned top-left", "三角形按左上角对齐", _kernel(faulty.TopLeft))
weak_mask = Fault("causal.finite-mask", "-1e4 in place of -∞", "用 -1e4 代替 -∞", _kernel(WeakMask))
unmasked_with_cache = Fault(
    "cache.prefill-unmasked", "no mask once a cache exists", "有缓存时不加掩码", _kernel(UnmaskedWithCache)
)
empty_row = Fault(
    "mask.empty-row", "a query that may see nothing gets the mean of v", "什么都看不见的查询得到 v 的平均",
    _kernel(faulty.FiniteMask),
)  # fmt: skip
reversed_mask = Fault("mask.polarity", "mask reversed", "掩码真假颠倒", _kernel(faulty.MaskReversed))
no_scale = Fault("scale.missing", "scores not divided by √d", "得分没有除以 √d", _kernel(faulty.NoScale))
model_scale = Fault("scale.model-width", "divided by √D", "除以 √D", _kernel(ScaledByModelWidth))
length_scale = Fault("scale.length", "divided by √S", "除以 √S", _kernel(faulty.ScaledByLength))
wrong_axis = Fault("softmax.axis", "softmax over queries", "在查询轴上做 softmax", _kernel(faulty.SoftmaxOverQueries))
tiled = Fault("heads.kv-tiled", "K/V heads repeated 0,1,0,1", "键值头按 0,1,0,1 重复", _kernel(faulty.HeadsTiled))
rows_mixed = Fault("batch.mixing", "softmax over the batch", "在批次轴上做 softmax", _kernel(RowsMixed))
weights_not_rescaled = Fault(
    "dropout.no-rescale (weights)", "kept attention weights not divided by 1-p", "保留的注意力权重没有除以 1-p",
    _kernel(faulty.DropWithoutRescale),
)  # fmt: skip


@fault("window.off-by-one", "a window of W shows W + 1 keys", "宽为 W 的窗口看见 W + 1 个键")
def wide_window(patch: pytest.MonkeyPatch) -> None:
    def matrix(self: masks.Window, device: torch.device | None = None) -> Tensor:
        return masks._column(self.keys, device, -2) >= masks._column(self.queries, device, -1) - self.width

    patch.setattr(masks.Window, "matrix", matrix)


@fault("mask.ignored", "padding is accepted and ignored", "接受填充掩码却不使用")
def padding_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(masks.Padding, "matrix", lambda self, device=None: torch.ones_like(self.real)[:, None, None])


@fault("mask.query-axis", "padding on the query axis", "填充掩码放在查询轴上")
def padding_on_queries(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(masks.Padding, "matrix", lambda self, device=None: self.real[:, None, :, None])


@fault("mask.ignored (documents)", "documents see each other", "文档互相看得见")
def documents_ignored(patch: pytest.MonkeyPatch) -> None:
    everywhere = torch.ones(1, 1, dtype=torch.bool)
    patch.setattr(masks.Documents, "matrix", lambda self, device=None: everywhere)


@fault("heads.merge-without-transpose", "heads merged by a reshape", "用 reshape 合并头，没有转置")
def merged_by_view(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(layer, "merge_heads", lambda x: x.reshape(x.shape[0], x.shape[2], -1))


@fault("heads.split-without-transpose", "heads split by a reshape", "用 reshape 拆分头，没有转置")
def split_by_view(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(layer, "split_heads", lambda x, heads: x.reshape(x.shape[0], heads, x.shape[1], -1))


def attention_with(
    *, turned: str = "qk", sliced: bool = False, repeated: bool = False, doubled: bool = False
) -> Callable[..., Tensor]:
    """The forward of attention with one step done wrong.

    Args:
        turned: which of q, k, v are turned.
        sliced: each head reads only its slice of the input.
        repeated: keys and values are stored once for each query head.
        doubled: dropout of the weights also in evaluation.
    """

    def forward(self, x, visible, *, rotate=layer.unrotated, bias=None, store=layer.NO_STORE, tap=layer.NO_TAP):
        weight = self.qkv.weight
        if sliced:
            head, part = weight.shape[0] // (self.heads + 2 * self.kv_heads), x.shape[-1] // self.heads
            owner = torch.arange(weight.shape[0]) // head % self.heads
            weight = weight * (torch.arange(x.shape[-1]) // part == owner[:, None])
        q, k, v = torch.nn.functional.linear(x, weight, self.qkv.bias).split(self.sizes, dim=-1)
        parts = {
            "q": self.q_norm(split_heads(q, self.heads)),
            "k": self.k_norm(split_heads(k, self.kv_heads)),
            "v": split_heads(v, self.kv_heads),
        }
        q, k, v = (tap(name, rotate(part) if name in turned else part) for name, part in parts.items())
        if repeated:
            k, v = repeat_heads(k, self.heads), repeat_heads(v, self.heads)
        k, v = store.append(k, v)
        dropout = self.weight_dropout * (1 if doubled else self.training)
        mixed = self.attend(q, k, v, visible, bias=bias, scale=self.scale, dropout=dropout, tap=tap)
        return tap("output", self.output_dropout(self.output(merge_heads(tap("mixed", mixed)))))

    return forward


def _attention(forward: Callable[..., Tensor]) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(layer.MultiHeadAttention, "forward", forward)


sliced = Fault(
    "heads.input-sliced", "each head reads its slice of the input", "每个头只读输入的一段",
    _attention(attention_with(sliced=True)),
)  # fmt: skip
values_turned = Fault("rotary.values", "v rotated too", "v 也旋转了", _attention(attention_with(turned="qkv")))
one_side = Fault("rotary.one-side", "only q rotated", "只旋转 q", _attention(attention_with(turned="q")))
never_turned = Fault("position.unused", "nothing rotated", "什么都没有旋转", _attention(attention_with(turned="")))
heads_stored = Fault(
    "cache.repeated", "keys and values stored once a query head", "每个查询头各存一份键和值",
    _attention(attention_with(repeated=True)),
)  # fmt: skip
weights_dropped_in_eval = Fault(
    "dropout.active-in-eval (weights)", "attention weights dropped in evaluation", "评估时仍丢弃注意力权重",
    _attention(attention_with(doubled=True)),
)  # fmt: skip


@fault("heads.full-width", "each head as wide as the model", "每个头都和模型一样宽")
def full_width_heads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DecoderConfig, "width_of_head", property(lambda self: self.width))


def _fused(kind: type[Sound]) -> Callable[[pytest.MonkeyPatch], None]:
    """Only models that ask for the fused kernel get this one."""
    return lambda patch: patch.setattr(factory, "attend_fused", kind())


fused_unscaled = Fault("scale.missing", "the fused kernel does not scale", "融合内核没有缩放", _fused(faulty.NoScale))
fused_unmasked = Fault("causal.future-leak", "only one kernel masks", "只有一个内核加掩码", _fused(faulty.NoMask))
fused_tiled = Fault(
    "heads.kv-tiled", "only one kernel tiles the K/V heads", "只有一个内核错排键值头", _fused(faulty.HeadsTiled)
)


@fault("score.cap", "the cap is not applied", "没有应用上限")
def uncapped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(variants.torch, "tanh", lambda x: x)


@fault("score.sink", "the sink takes no weight", "sink 不占权重")
def sink_ignored(patch: pytest.MonkeyPatch) -> None:
    right = kernels.softmax
    patch.setattr(kernels, "softmax", lambda scores, sink=None: right(scores))
