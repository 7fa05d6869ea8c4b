"""Faults of positions, norms, blocks and feed-forward parts, planted by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from clearhead.generation import stores
from clearhead.generation.stores import counted, fixed, window
from clearhead.layers import attention, block, feedforward, look, norm, positions
from clearhead.layers import store as base
from clearhead.models import build as factory
from clearhead.models import decoder
from clearhead.ops import masks, rotary
from clearhead.ops.masks import Positions
from tests.equalities.registry import Fault, fault

# --- positions


@fault("position.left-padding", "positions counted from the pad", "位置从填充处数起")
def counted_from_the_pad(patch: pytest.MonkeyPatch) -> None:
    for module in (base, counted, fixed, window):
        patch.setattr(module, "ragged_positions", lambda real: torch.arange(real.shape[-1]).expand(real.shape))


@fault("position.offset", "decoding is one position ahead", "解码时位置多走一步")
def offset_in_decoding(patch: pytest.MonkeyPatch) -> None:
    right = stores.GrowingStore.places

    def places(self, length: int, real: Tensor | None, device: torch.device) -> base.Places:
        found = right(self, length, real, device)
        begin = self.length + (self.length > 0)
        return found._replace(queries=range(begin, begin + length))

    patch.setattr(stores.GrowingStore, "places", places)


@fault("position.documents", "positions run on over documents", "位置跨文档继续增长")
def positions_not_reset(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        masks, "document_positions", lambda documents: torch.arange(documents.shape[1]).expand(documents.shape)
    )


@fault("rotary.axis", "rotated along the heads", "沿头的轴旋转")
def rotated_along_heads(patch: pytest.MonkeyPatch) -> None:
    right = rotary.Rotation.__call__
    patch.setattr(rotary.Rotation, "__call__", lambda self, x: _along_heads(self, x, right))


def _along_heads(turn: rotary.Rotation, x: Tensor, right: Callable[..., Tensor]) -> Tensor:
    cos, sin = (part[..., : x.shape[1], None, :] for part in (turn.cos, turn.sin))
    return right(rotary.Rotation(cos, sin, turn.interleaved), x)


@fault("position.every-block", "attention turns q and k whatever it is told", "无论如何注意力都旋转 q 与 k")
def rotated_once(patch: pytest.MonkeyPatch) -> None:
    right = attention.MultiHeadAttention.forward

    def forward(self, x: Tensor, visible: masks.Mask, **more: object) -> Tensor:
        d = self.output.in_features // self.heads
        turn = rotary.rotation(range(x.shape[1]), rotary.rotary_frequencies(d), x.dtype)
        return right(self, x, visible, **{**more, "rotate": turn})

    patch.setattr(attention.MultiHeadAttention, "forward", forward)


@fault("rotary.not-relative", "the angle grows with the root of the position", "角度随位置的平方根增长")
def angle_not_linear(patch: pytest.MonkeyPatch) -> None:
    right = rotary.rotation

    def rotation(positions: Positions, frequencies: Tensor, dtype: torch.dtype, **options: object) -> rotary.Rotation:
        places = torch.arange(positions.start, positions.stop)[None] if isinstance(positions, range) else positions
        return right(places.double().sqrt(), frequencies, dtype, **options)

    patch.setattr(look, "rotation", rotation)


@fault("rotary.low-precision", "angles in the type of the vectors", "角度用向量的精度计算")
def angles_in_16_bits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rotary, "at_least_float32", lambda dtype: dtype)


@fault("rotary.low-precision (autocast)", "angles by a matrix product", "角度用矩阵乘法计算")
def angles_by_product(patch: pytest.MonkeyPatch) -> None:
    def rotation(positions, frequencies, dtype, *, interleaved=False, attention_factor=1.0):
        places = torch.arange(positions.start, positions.stop, dtype=torch.float32)
        angles = places[:, None] @ frequencies.float()[None]
        return rotary.Rotation(angles.cos() * attention_factor, angles.sin() * attention_factor, interleaved)

    patch.setattr(look, "rotation", rotation)


@fault("sinusoid.frequency", "sine and cosine of a pair differ in frequency", "一对正弦余弦的频率不同")
def unequal_frequencies(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("clearhead.ops.positions._angles", _unequal_angles)


class _Unequal(torch.Tensor):
    """Angles whose cosine is taken of a little more."""

    def cos(self) -> Tensor:
        return (self.as_subclass(torch.Tensor) * 1.1).cos()


def _unequal_angles(positions: Positions, width: int, base: float, device: torch.device | None) -> Tensor:
    places = torch.arange(positions.start, positions.stop) if isinstance(positions, range) else positions
    return (places[..., None] * rotary.rotary_frequencies(width, base)).as_subclass(_Unequal)


@fault("rotary.stretched", "sine twice as large", "正弦大了一倍")
def unequal_turn(patch: pytest.MonkeyPatch) -> None:
    right = rotary.turn_interleaved
    patch.setattr(rotary, "turn_interleaved", lambda x, cos, sin: right(x, cos, 2 * sin))


@fault("bias.not-relative", "ALiBi by the root of the positions", "ALiBi 用位置的平方根")
def bias_of_keys(patch: pytest.MonkeyPatch) -> None:
    right = look.alibi_bias
    patch.setattr(look, "alibi_bias", lambda slopes, queries, keys: right(slopes, queries.sqrt(), keys.sqrt()))


@fault("position.unused (added)", "the position vector is not added", "没有加上位置向量")
def positions_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(positions.LearnedPositions, "forward", lambda self, x, positions, *, tap: x)


@fault("norm.low-precision", "statistics in bfloat16", "统计量用 bfloat16 计算")
def statistics_in_16_bits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("clearhead.ops.norm.at_least_float32", lambda dtype: dtype)


# --- blocks, norms, feed-forward


def _sequential(wrong: str) -> Callable[[pytest.MonkeyPatch], None]:
    """The forward of a pre-norm block with one residual done wrong."""

    def forward(self, x, visible, *, rotate=block.unrotated, bias=None, store=block.NO_STORE, tap=block.NO_TAP):
        branch = self.attention(self.attention_norm(x), visible, rotate=rotate, bias=bias, store=store)
        u = x + self.attention_after(branch)
        change = self.feedforward_after(self.feedforward(self.feedforward_norm(u)))
        return {"stale": x, "missing": 0, "doubled": 2 * u, "normed": self.feedforward_norm(u)}[wrong] + change

    return lambda patch: patch.setattr(block.SequentialBlock, "forward", forward)


stale = Fault("residual.stale", "the second residual starts from x", "第二个残差从 x 开始", _sequential("stale"))
missing = Fault("residual.missing", "no second residual", "没有第二个残差", _sequential("missing"))
doubled = Fault("residual.doubled", "u + u", "u + u", _sequential("doubled"))
from_norm = Fault(
    "residual.from-norm", "the residual carries the normed u", "残差带的是归一化后的 u", _sequential("normed")
)


@fault("norm.placement", "the norm of post-norm stands before the sum", "后归一化的归一化放在求和之前")
def norm_before_the_sum(patch: pytest.MonkeyPatch) -> None:
    def forward(self, x, visible, *, rotate=block.unrotated, bias=None, store=block.NO_STORE, tap=block.NO_TAP):
        u = x + self.attention(self.attention_norm(x), visible, rotate=rotate, bias=bias, store=store)
        return u + self.feedforward(self.feedforward_norm(u))

    patch.setattr(block.PostNormBlock, "forward", forward)


@fault("norm.axis", "statistics over the positions", "统计量沿位置计算")
def norm_over_positions(patch: pytest.MonkeyPatch) -> None:
    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-2, keepdim=True)
        return centred / (centred.square().mean(-2, keepdim=True) + self.eps).sqrt() * self.weight

    patch.setattr(norm.LayerNorm, "forward", forward)


@fault("norm.unbiased-variance", "variance divided by D - 1", "方差除以 D - 1")
def unbiased(patch: pytest.MonkeyPatch) -> None:
    def forward(self, x: Tensor) -> Tensor:
        normed = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + self.eps).sqrt()
        return normed * self.weight + (0 if self.bias is None else self.bias)

    patch.setattr(norm.LayerNorm, "forward", forward)


@fault("feedforward.mixes-positions", "the feed-forward sees the mean of all positions", "前馈看到所有位置的平均")
def feedforward_mixes(patch: pytest.MonkeyPatch) -> None:
    right = feedforward.FeedForward.forward
    patch.setattr(
        feedforward.FeedForward, "forward", lambda self, x, **tap: right(self, x + x.mean(-2, keepdim=True), **tap)
    )


@fault("feedforward.mixes-positions (sum)", "the feed-forward adds up the positions before", "前馈累加前面的位置")
def feedforward_sums(patch: pytest.MonkeyPatch) -> None:
    right = feedforward.FeedForward.forward
    patch.setattr(feedforward.FeedForward, "forward", lambda self, x, **tap: right(self, x.cumsum(-2), **tap))


@fault("blocks.shared", "[block] * L", "[block] * L")
def shared_blocks(patch: pytest.MonkeyPatch) -> None:
    right, made = factory._block, []

    def one(config: object) -> nn.Module:
        made.append(made[0] if made else right(config))
        return made[-1]

    patch.setattr(factory, "_block", one)


@fault("shape.squeezed", "axes of size one are squeezed away", "长度为一的轴被挤掉")
def squeezed(patch: pytest.MonkeyPatch) -> None:
    right = decoder.Decoder.forward
    patch.setattr(decoder.Decoder, "forward", lambda self, ids, **more: right(self, ids, **more).squeeze())
