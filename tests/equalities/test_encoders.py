"""Encoders: every token sees both sides and no padding; rows, batches and kernels make no difference."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clearhead.models import choices as c
from clearhead.models.choices import Pooled
from clearhead.models.encoder import Encoder
from tests.equalities import faults as f
from tests.equalities import faults_blockwise as b
from tests.equalities import faults_encoders as n
from tests.equalities import faults_parts as g
from tests.equalities import faults_use as h
from tests.equalities.registry import claim, close, differ
from tests.equalities.test_compile import one_graph
from tests.equalities.variants import B, T, V, ids_of
from tests.equalities.variants_encoders import (
    ENCODERS,
    Leaves,
    encoder_of,
    padded,
    reached,
    segments_of,
    sides,
)

UNORDERED = [name for name, config in ENCODERS.items() if isinstance(config.positions, c.NoPositions)]
COMPILED = ["learned", "BERT", "rotary, fused", "relative, blockwise, around", "ALiBi, post-norm", "sinks", "mean"]


def own(out: Tensor, real: Tensor) -> Tensor:
    """What belongs to real tokens, (n,D); a vector for each row, (B,D), belongs to them as it is."""
    return out[real] if out.dim() == 3 else out


def run(model: Encoder, variant: str, ids: Tensor, real: Tensor | None = None, **more: object) -> Tensor:
    return model(ids, segments=segments_of(variant, ids), real=real, **more)


@claim(
    "What stands at an encoder's padding, left, right or on both sides, moves no bit of a real token's output or of a pooled row",
    "编码器填充处的内容（左、右、两侧）不改变真实词元输出或整行向量的任何一位",
    over=ENCODERS,
    faults={
        f.padding_ignored: "learned", f.padding_on_queries: "rotary, fused", f.after_softmax: "learned",
        n.mean_over_padding: "mean", n.first_place: "first",
    },
)  # fmt: skip
@torch.no_grad()
def test_no_bit_of_padding(variant: str) -> None:
    model, ids = encoder_of(variant), ids_of()
    for real, _ in sides(T):
        out = own(run(model, variant, ids, real), real)
        for step in (1, 5):
            again = own(run(model, variant, torch.where(real, ids, (ids + step) % V), real), real)
            close(again, out, 0.0)
    differ(own(run(model, variant, (ids + 1) % V, real), real), out)


@claim(
    "How much padding an encoder's row has on either side changes no real token's output: a row in a batch = the row alone",
    "编码器一行两侧填充的多少不改变真实词元的输出：批次中的行 = 单独的行",
    over=ENCODERS,
    faults={
        g.counted_from_the_pad: "learned", f.padding_ignored: "ALiBi, fused", n.mean_over_padding: "mean",
        n.first_place: "first, dense", n.encoder_squeezed: "no positions", f.rows_mixed: "rotary, parallel",
        f.length_scale: "relative, fused, MHA",
    },
)  # fmt: skip
@torch.no_grad()
def test_amount_of_padding(variant: str) -> None:
    model, ids = encoder_of(variant), ids_of()
    segments = segments_of(variant, ids)
    for real, ends in sides(T):
        out = model(ids, segments=segments, real=real)
        for row, (first, end) in enumerate(ends.tolist()):
            part = None if segments is None else segments[row, None, first:end]
            alone = model(ids[row, None, first:end], segments=part)
            assert (
                alone.shape == (1, end - first, *out.shape[2:]) if out.dim() == 3 else alone.shape == (1, out.shape[1])
            )
            close(out[row, first:end] if out.dim() == 3 else out[row], alone[0])
    whole = model(ids, segments=segments)
    for left, right in ((1, 0), (0, 4), (2, 3)):
        more, real = padded(ids, left, right)
        kinds = None if segments is None else padded(segments, left, right)[0]
        close(own(model(more, segments=kinds, real=real), real), whole.flatten(0, 1) if whole.dim() == 3 else whole)
    one = model(ids[:1, :1], segments=None if segments is None else segments[:1, :1])
    assert one.shape == (1, 1, whole.shape[2]) if whole.dim() == 3 else one.shape == (1, whole.shape[1])


@claim(
    "Every output of an encoder depends on every real token of its row, before and after it; on padding and other rows not at all",
    "编码器的每个输出都依赖本行前后所有真实词元；对填充与其他行的梯度恰为 0",
    over=ENCODERS,
    faults={
        n.encoder_causal: "learned", f.self_only: "rotary, parallel", f.padding_ignored: "ALiBi, fused",
        f.rows_mixed: "no positions", n.mean_over_padding: "mean", f.wrong_axis: "sinusoidal, fused, around",
    },
)  # fmt: skip
def test_both_sides_are_seen(variant: str) -> None:
    model, ids = encoder_of(variant), ids_of()
    for real in (None, *(real for real, _ in sides(T))):
        leaves = Leaves("input")
        out = run(model, variant, ids, real, tap=leaves)
        whole = torch.ones(B, T, dtype=torch.bool) if real is None else real
        for row in range(B):
            for place in whole[row].nonzero().flatten().tolist() if out.dim() == 3 else [None]:
                expected = whole & (torch.arange(B) == row)[:, None]
                assert reached(out[row] if place is None else out[row, place], leaves.tensors["input"]).equal(expected)


@claim(
    "Without positions an encoder knows no order: permuting the tokens permutes the outputs, and moves a pooled mean or maximum not at all",
    "没有位置的编码器不知道顺序：打乱词元，输出随之打乱；平均或最大池化不变",
    over=UNORDERED,
    faults={
        n.encoder_causal: "no positions",
        n.always_positions: "no positions, fused, post-norm",
        f.merged_by_view: "max, dense",
    },
)
@torch.no_grad()
def test_permuted_tokens(variant: str) -> None:
    model, ids = encoder_of(variant), ids_of()
    segments = segments_of(variant, ids)
    out = model(ids, segments=segments)
    for seed in (1, 2):
        order = torch.randperm(T, generator=torch.Generator().manual_seed(seed))
        again = model(ids[:, order], segments=None if segments is None else segments[:, order])
        close(again, out[:, order] if out.dim() == 3 else out)
        if out.dim() == 3:
            differ(again, out)


@claim(
    "With positions an encoder knows the order: exchanging two tokens is not exchanging their outputs",
    "有位置的编码器知道顺序：交换两个词元不等于交换它们的输出",
    over=[name for name, config in ENCODERS.items() if name not in UNORDERED and not isinstance(config.head, Pooled)],
    faults={
        g.positions_lost: "learned", f.never_turned: "rotary, fused", n.no_relative_bias: "relative", n.no_slopes: "ALiBi, fused",
    },
)  # fmt: skip
@torch.no_grad()
def test_order_is_known(variant: str) -> None:
    model, ids = encoder_of(variant), torch.tensor([[3, 8, 1, 5, 2, 7]])
    order = [0, 4, 2, 3, 1, 5]
    segments = segments_of(variant, ids)
    kinds = None if segments is None else segments[:, order]
    differ(model(ids[:, order], segments=kinds), model(ids, segments=segments)[:, order])


@claim(
    "An encoder with the visible, the fused or the blockwise kernel is one function: outputs and every parameter's gradient, with padding",
    "编码器用可见、融合或分块内核是同一个函数：有填充时的输出与每个参数的梯度",
    over=ENCODERS,
    faults={
        f.fused_unscaled: "learned", f.fused_tiled: "relative", b.blocks_apart: "rotary, fused", b.tail_lost: "ALiBi, post-norm",
        b.bias_of_the_first_block: "relative, fused, MHA", b.grouped_gradient: "learned, blockwise, MQA",
        b.mask_of_the_first_block: "BERT",
    },
)  # fmt: skip
def test_encoders_with_any_kernel(variant: str) -> None:
    config, ids = ENCODERS[variant], ids_of()
    twisted = config.softcap is not None or config.sinks
    real, _ = list(sides(T))[2]
    results = []
    for kernel in [c.Visible(), c.Blockwise(4), *([] if twisted else [c.Fused()])]:
        model = encoder_of(variant, kernel=kernel)
        out = own(run(model, variant, ids, real), real)
        direction = torch.randn(out.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
        (out * direction).mean().backward()
        grads = {name: parameter.grad for name, parameter in model.named_parameters()}
        results.append({"out": out.detach()} | {name: grad for name, grad in grads.items() if grad is not None})
    for other in results[1:]:
        assert other.keys() == results[0].keys()
        for name, expected in results[0].items():
            close(other[name], expected)


@claim(
    "An encoder in evaluation drops nothing: two runs are equal to the bit, and equal to the model without dropout",
    "评估模式的编码器什么都不丢弃：两次运行逐位相等，且等于没有 dropout 的模型",
    over=ENCODERS,
    faults={h.active_in_eval: "learned", f.weights_dropped_in_eval: "rotary, fused"},
)
@torch.no_grad()
def test_encoders_drop_nothing_in_evaluation(variant: str) -> None:
    model, ids = encoder_of(variant, dropout=0.4), ids_of()
    close(run(model, variant, ids), run(model, variant, ids), 0.0)
    close(run(model, variant, ids), run(encoder_of(variant), variant, ids), 0.0)
    differ(run(model.train(), variant, ids), run(model.eval(), variant, ids))


@claim(
    "torch.compile takes an encoder with padding as one graph (fullgraph), with the same output",
    "torch.compile 把带填充的编码器编译成一张完整的图（fullgraph），输出相同",
    over=COMPILED,
    faults={h.graph_break: "learned"},
)
# PyTorch's own: its compiler makes an object of the Function that the blockwise kernel is.
@pytest.mark.filterwarnings("ignore:.*autograd.function.Function.*:DeprecationWarning")
@torch.no_grad()
def test_encoders_compile(variant: str) -> None:
    model, ids = encoder_of(variant), ids_of()
    real, _ = next(sides(T))
    expected = run(model, variant, ids, real)
    with one_graph():
        compiled = torch.compile(model, fullgraph=True, backend="eager")
        close(compiled(ids, segments=segments_of(variant, ids), real=real), expected)
