"""Heads: in parallel or in a loop, shared or copied, in any order; and what each of them reads."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from clearhead.models import choices as c
from clearhead.models.build import build
from clearhead.models.decoder import Decoder
from clearhead.ops.masks import EVERYTHING, causal
from clearhead.tracing import Recorder
from tests.equalities import faults as f
from tests.equalities import faults_parts as g
from tests.equalities.registry import claim, close, differ
from tests.equalities.variants import VARIANTS, T, ids_of, input_of, model_of
from tests.oracles.list_of_heads import list_of_heads

# The oracle attends with 1/√d alone: no QK-norm, no cap, no sinks, no other scale.
PLAIN = [
    name
    for name, config in VARIANTS.items()
    if not (config.qk_norm or config.softcap or config.sinks or config.attention_scale)
]


def rows_of_heads(model: Decoder, order: list[int], first: int) -> Tensor:
    """Rows of the fused projection: those of the given heads, counted from `first`, one after the other."""
    d = model.blocks[0].attention.output.in_features // model.blocks[0].attention.heads
    return torch.cat([torch.arange((first + head) * d, (first + head + 1) * d) for head in order])


@claim(
    "Heads in parallel = a loop over heads, each with its own three projections",
    "并行的多头 = 逐头循环，每个头有自己的三个投影",
    over=PLAIN,
    faults={
        f.no_scale: "learned", f.model_scale: "learned", f.strict: "learned", f.after_softmax: "learned", f.tiled: "learned",
        f.merged_by_view: "learned", f.split_by_view: "rotary, fused", f.sliced: "learned",
    },
)  # fmt: skip
@torch.no_grad()
def test_parallel_heads_are_a_loop(variant: str) -> None:
    model = model_of(variant)
    for block in model.blocks:
        x = input_of(model)
        close(block.attention(x, causal(T)), list_of_heads(block.attention, T)(x))


@claim(
    "Grouped heads = as many key/value heads with copied weights",
    "分组的键值头 = 复制权重后的完整多头",
    over=[name for name, config in VARIANTS.items() if config.key_value_heads < config.heads],
    faults={f.tiled: "learned", f.split_by_view: "rotary, fused"},
)
@torch.no_grad()
def test_grouped_heads_are_copies(variant: str) -> None:
    grouped, full = model_of(variant), model_of(variant, kv_heads=4)
    H, K = grouped.blocks[0].attention.heads, grouped.blocks[0].attention.kv_heads
    copies = [head // (H // K) for head in range(H)]
    rows = torch.cat(
        [rows_of_heads(grouped, order, first) for order, first in ((range(H), 0), (copies, H), (copies, H + K))]
    )
    state = grouped.state_dict()
    state = {name: value[rows] if ".qkv." in name else value for name, value in state.items()}
    full.load_state_dict(state)
    close(full(ids_of()), grouped(ids_of()))


@claim(
    "Permuting heads, with their columns of the output projection, changes nothing",
    "连同输出投影的列一起置换各头，结果不变",
    over=[name for name, config in VARIANTS.items() if not isinstance(config.positions, c.ALiBi)],
    faults={f.merged_by_view: "learned, fused, MHA", g.rotated_along_heads: "rotary, fused", f.tiled: "learned"},
)
@torch.no_grad()
def test_heads_have_no_order(variant: str) -> None:
    model, permuted = model_of(variant), model_of(variant)
    attention = model.blocks[0].attention
    H, K = attention.heads, attention.kv_heads
    groups = [*range(1, K), 0]
    # The last group, and it alone, is turned round: no other sharing of key/value heads has this symmetry.
    members = [list(range(group * (H // K), (group + 1) * (H // K))) for group in groups]
    order = [head for group in [*members[:-1], members[-1][::-1]] for head in group]
    rows = torch.cat(
        [rows_of_heads(model, order, 0), rows_of_heads(model, groups, H), rows_of_heads(model, groups, H + K)]
    )
    columns = rows_of_heads(model, order, 0)
    state = {}
    for name, value in model.state_dict().items():
        state[name] = value
        if ".qkv." in name:
            state[name] = value[rows]
        elif name.endswith("attention.output.weight"):
            state[name] = value[:, columns]
        elif name.endswith("sinks"):
            state[name] = value[order]
    permuted.load_state_dict(state)
    differ(permuted.blocks[0].attention.qkv.weight, attention.qkv.weight)
    close(permuted(ids_of()), model(ids_of()))


@claim(
    "Every head reads every feature of the input, for q, k and v",
    "每个头的 q、k、v 都读取输入的每个特征",
    over=VARIANTS,
    faults={f.sliced: "learned"},
)
def test_heads_read_every_feature(variant: str) -> None:
    model = model_of(variant)
    for block in model.blocks:
        x, recorder = input_of(model).requires_grad_(), Recorder(detach=False)
        block.attention(x, causal(T), tap=recorder)
        for name in ("q", "k", "v", "mixed"):
            for head in recorder.tensors[name].unbind(1):
                (gradient,) = torch.autograd.grad(head.square().sum(), x, retain_graph=True)
                assert bool((gradient != 0).all())


@claim(
    "Without positions and mask, permuting the tokens permutes the output",
    "没有位置与掩码时，置换词元只会同样地置换输出",
    over=VARIANTS,
    faults={
        f.merged_by_view: "learned",
        f.top_left: "rotary, fused",
        g.rotated_once: "rotary, MHA",
        g.feedforward_sums: "untied, biases",
    },
)
@torch.no_grad()
def test_tokens_have_no_order_without_positions(variant: str) -> None:
    model = model_of(variant)
    order = torch.tensor([5, 0, 12, 3, 1, 11, 7, 2, 9, 4, 10, 6, 8])
    for block in model.blocks:
        x = input_of(model)
        whole = block(x, EVERYTHING)
        differ(whole[:, order], whole)
        close(block(x[:, order], EVERYTHING), whole[:, order])


@claim(
    "The number of parameters does not depend on the number of heads",
    "参数个数与头数无关",
    over=[name for name, config in VARIANTS.items() if not (config.qk_norm or config.sinks or config.head_width)],
    faults={f.full_width_heads: "learned"},
)
def test_parameters_do_not_depend_on_heads(variant: str) -> None:
    counts = {
        sum(p.numel() for p in build(replace(VARIANTS[variant], heads=H, kv_heads=H), seed=0).parameters())
        for H in (1, 2, 3, 4, 6)
    }
    assert len(counts) == 1
