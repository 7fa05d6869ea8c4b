"""Faults of encoders and of cross-attention, planted by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from clearhead.layers import attention, cross_block, look
from clearhead.layers.memory import CrossStore, Memory
from clearhead.models import build as factory
from clearhead.models import choices, encoder, encoder_decoder, looks
from clearhead.ops.heads import split_heads
from clearhead.ops.masks import EVERYTHING, Allowed, Causal, Mask
from tests.equalities.registry import Fault, fault

# --- encoders


@fault("encoder.causal", "the encoder sees only what came before", "编码器只看得见前面")
def encoder_causal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(looks, "both_ways", Causal)


@fault("pooling.padding", "the mean is taken over the padding too", "平均时把填充也算进去")
def mean_over_padding(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(factory.POOLS, choices.Mean, lambda x, real: x.mean(-2))


@fault("pooling.first-place", "place 0 taken for the first token", "把第 0 个位置当作第一个词元")
def first_place(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(factory.POOLS, choices.First, lambda x, real: x[:, 0])


@fault("shape.squeezed", "axes of size one are squeezed away", "长度为一的轴被挤掉")
def encoder_squeezed(patch: pytest.MonkeyPatch) -> None:
    right = encoder.Encoder.forward
    patch.setattr(encoder.Encoder, "forward", lambda self, ids, **more: right(self, ids, **more).squeeze())


@fault("position.unasked", "positions are added where none are asked for", "没有要求位置却加上了位置")
def always_positions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        factory, "_positions", lambda config: factory.SinusoidalPositions(config.width, factory.sinusoids, 1e4)
    )


@fault("position.unused (relative)", "the relative bias is not added", "没有加上相对位置偏置")
def no_relative_bias(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(look.RelativeBias, "forward", lambda self, places, dtype, device: None)


@fault("position.unused (ALiBi)", "ALiBi's bias is not added", "没有加上 ALiBi 的偏置")
def no_slopes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(look.Alibi, "__call__", lambda self, places, dtype, device: None)


# --- cross-attention


def _remember(changed: Callable[..., CrossStore]) -> Callable[[pytest.MonkeyPatch], None]:
    """What `remember` gives is changed: `changed(model, store)`."""
    right = encoder_decoder.EncoderDecoder.remember

    def remember(self: encoder_decoder.EncoderDecoder, source: Tensor, **more: object) -> CrossStore:
        return changed(self, right(self, source, **more))

    return lambda patch: patch.setattr(encoder_decoder.EncoderDecoder, "remember", remember)


def _seen_by_all(model: object, store: CrossStore) -> CrossStore:
    return CrossStore([memory._replace(visible=EVERYTHING) for memory in store.memories], store.own)


def _of_the_first_block(model: object, store: CrossStore) -> CrossStore:
    return CrossStore([store.memories[0]] * len(store.memories), store.own)


def _of_another_row(model: object, store: CrossStore) -> CrossStore:
    return CrossStore(
        [Memory(memory.k.roll(1, 0), memory.v.roll(1, 0), memory.visible) for memory in store.memories], store.own
    )


def _first_source(model: torch.nn.Module, store: CrossStore) -> CrossStore:
    kept = model.__dict__.setdefault("kept", store)
    return CrossStore(kept.memories, store.own)


source_padding_seen = Fault(
    "mask.ignored (memory)",
    "the source's padding is seen by the decoder",
    "解码器看得见源序列的填充",
    _remember(_seen_by_all),
)
first_memory = Fault(
    "cache.shared-between-blocks", "all blocks ask the first block's memory", "所有块都查询第一块的记忆",
    _remember(_of_the_first_block),
)  # fmt: skip
row_of_another = Fault(
    "mask.wrong-row", "row i asks the source of row i - 1", "第 i 行查询第 i - 1 行的源序列", _remember(_of_another_row)
)
stale_source = Fault(
    "cache.stale", "the first source is kept for all that follow", "一直沿用第一个源序列", _remember(_first_source)
)


class _Recomputing(CrossStore):
    """Projects the memory's features again whenever a block asks."""

    def __init__(self, model: encoder_decoder.EncoderDecoder, source: Tensor, made: CrossStore) -> None:
        super().__init__(made.memories, made.own)
        self.model, self.source, self.made = model, source, made

    def beside(self, own: object) -> CrossStore:
        return _Recomputing(self.model, self.source, CrossStore(self.memories, own))

    def layer(self, index: int) -> object:
        block = self.model.decoder.blocks[index]
        pair = block.cross_attention.keys_values(self.model.encoder(self.source))
        self.memories = tuple(
            Memory(*pair, memory.visible) if index == place else memory for place, memory in enumerate(self.memories)
        )
        return super().layer(index)


@fault("cache.memory-recomputed", "the source is read again at each step", "每一步都重新读源序列")
def source_read_again(patch: pytest.MonkeyPatch) -> None:
    right = encoder_decoder.EncoderDecoder.remember
    patch.setattr(
        encoder_decoder.EncoderDecoder,
        "remember",
        lambda self, source, **more: _Recomputing(self, source, right(self, source, **more)),
    )


@fault("cache.aliased", "all that continue one memory share one store", "延续同一记忆的各方共用一个缓存")
def one_store_beside(patch: pytest.MonkeyPatch) -> None:
    def beside(self: CrossStore, own: object) -> CrossStore:
        self.taken = getattr(self, "taken", own)
        return CrossStore(self.memories, self.taken)

    patch.setattr(CrossStore, "beside", beside)


@fault("cache.memory-changed", "asking the memory changes it", "查询会改变记忆")
def memory_changed(patch: pytest.MonkeyPatch) -> None:
    right = attention.MultiHeadAttention.across

    def across(self: attention.MultiHeadAttention, x: Tensor, memory: Memory, **tap: object) -> Tensor:
        out = right(self, x, memory, **tap)
        memory.k.mul_(1 + 1e-3)
        return out

    patch.setattr(attention.MultiHeadAttention, "across", across)


def _across(changed: Callable[..., Memory]) -> Callable[[pytest.MonkeyPatch], None]:
    """Cross-attention asks something else: `changed(self, x, memory)`."""
    right = attention.MultiHeadAttention.across
    return lambda patch: patch.setattr(
        attention.MultiHeadAttention,
        "across",
        lambda self, x, memory, **tap: right(self, x, changed(self, x, memory), **tap),
    )


def _triangle(self: object, x: Tensor, memory: Memory) -> Memory:
    mask: Mask = Allowed(torch.ones(x.shape[1], memory.k.shape[2], dtype=torch.bool).tril()) & memory.visible
    return memory._replace(visible=mask)


def _own_keys(self: attention.MultiHeadAttention, x: Tensor, memory: Memory) -> Memory:
    return Memory(*self.keys_values(x), EVERYTHING)


def _swapped(self: object, x: Tensor, memory: Memory) -> Memory:
    return Memory(memory.v, memory.k, memory.visible)


cross_causal = Fault("cross.causal", "cross-attention with a triangle", "交叉注意力带有三角掩码", _across(_triangle))
own_keys = Fault(
    "cross.own-keys", "cross-attention asks the target itself", "交叉注意力查询的是目标自身", _across(_own_keys)
)
swapped = Fault("qkv.layout", "the memory's keys and values exchanged", "记忆的键与值互换", _across(_swapped))


@fault(
    "qkv.layout (query)",
    "cross-attention projects queries with the rows of the values",
    "交叉注意力用值的那些行投影查询",
)
def query_rows(patch: pytest.MonkeyPatch) -> None:
    def across(self, x, memory, *, tap=attention.NO_TAP):
        last = -self.sizes[0]
        bias = None if self.qkv.bias is None else self.qkv.bias[last:]
        q = self.q_norm(split_heads(F.linear(x, self.qkv.weight[last:], bias), self.heads))
        return self._mixed(q, memory.k, memory.v, memory.visible, tap=tap)

    patch.setattr(attention.MultiHeadAttention, "across", across)


def _crossed(wrong: str) -> Callable[[pytest.MonkeyPatch], None]:
    """The forward of a pre-norm block with cross-attention, one residual done wrong."""

    def forward(
        self, x, visible, *, rotate=attention.unrotated, bias=None, store=attention.NO_STORE, tap=attention.NO_TAP
    ):
        own = self.attention(self.attention_norm(x), visible, rotate=rotate, bias=bias, store=store)
        u = x + self.attention_after(own)
        asked = self.cross_attention.across(self.cross_attention_norm(u), cross_block.recall(store))
        carried = {"missing": 0, "stale": x, "normed": self.cross_attention_norm(u)}.get(wrong, u)
        w = carried + self.cross_attention_after(asked)
        return (u if wrong == "third" else w) + self.feedforward_after(self.feedforward(self.feedforward_norm(w)))

    return lambda patch: patch.setattr(cross_block.SequentialCrossBlock, "forward", forward)


missing = Fault("residual.missing", "no residual around cross-attention", "交叉注意力没有残差", _crossed("missing"))
stale = Fault("residual.stale", "the second residual starts from x", "第二个残差从 x 开始", _crossed("stale"))
third = Fault("residual.stale (third)", "the third residual starts from u", "第三个残差从 u 开始", _crossed("third"))
from_norm = Fault(
    "residual.from-norm", "the residual carries the normed u", "残差带的是归一化后的 u", _crossed("normed")
)


@fault("norm.placement", "the norm of post-norm stands before the sum", "后归一化的归一化放在求和之前")
def norm_before_the_sum(patch: pytest.MonkeyPatch) -> None:
    def forward(
        self, x, visible, *, rotate=attention.unrotated, bias=None, store=attention.NO_STORE, tap=attention.NO_TAP
    ):
        u = x + self.attention(self.attention_norm(x), visible, rotate=rotate, bias=bias, store=store)
        w = u + self.cross_attention.across(self.cross_attention_norm(u), cross_block.recall(store))
        return w + self.feedforward(self.feedforward_norm(w))

    patch.setattr(cross_block.PostNormCrossBlock, "forward", forward)
