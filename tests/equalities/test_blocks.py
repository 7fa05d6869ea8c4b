"""Blocks: residuals, norms and branches stand where the formula has them; positions mix in attention alone."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from clearhead.layers import LayerNorm, ParallelBlock, PostNormBlock, RMSNorm, SequentialBlock
from clearhead.layers.store import NO_STORE
from clearhead.models import choices as c
from clearhead.ops.masks import EVERYTHING
from tests.equalities import faults_parts as g
from tests.equalities.registry import claim, close, differ
from tests.equalities.variants import VARIANTS, T, input_of, model_of

ROWS = 3
POST = [name for name, config in VARIANTS.items() if isinstance(config.block, c.PostNorm)]


def jacobian(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """All derivatives at x, a square matrix."""
    found = torch.autograd.functional.jacobian(function, x, vectorize=True)
    return found.reshape(x.numel(), x.numel())


def by_the_chain_rule(block: nn.Module, x: Tensor, seen: tuple) -> Tensor:
    """The Jacobian of a block put together from I and the Jacobians of its branches and norms."""
    one = torch.eye(x.numel(), dtype=x.dtype)
    visible, rotate, bias = seen

    def attended(y: Tensor) -> Tensor:
        return block.attention(y, visible, rotate=rotate, bias=bias, store=NO_STORE)

    match block:
        case SequentialBlock():

            def first(y: Tensor) -> Tensor:
                return block.attention_after(attended(block.attention_norm(y)))

            def second(y: Tensor) -> Tensor:
                return block.feedforward_after(block.feedforward(block.feedforward_norm(y)))

            u = x + first(x)
            return (one + jacobian(second, u)) @ (one + jacobian(first, x))
        case PostNormBlock():
            summed = x + attended(x)
            u = block.attention_norm(summed)
            end = u + block.feedforward(u)
            inner = jacobian(block.attention_norm, summed) @ (one + jacobian(attended, x))
            return jacobian(block.feedforward_norm, end) @ (one + jacobian(block.feedforward, u)) @ inner
        case ParallelBlock():
            return (
                one
                + jacobian(lambda y: attended(block.attention_norm(y)), x)
                + jacobian(lambda y: block.feedforward(block.feedforward_norm(y)), x)
            )
    raise AssertionError(f"no formula for {block}")


@claim(
    "The Jacobian of a block is I plus its branches' (pre, around, parallel), times the norms' (post)",
    "块的雅可比矩阵 = I + 各分支的雅可比（前置、环绕、并行），后归一化再乘归一化的雅可比",
    over=VARIANTS,
    faults={
        g.stale: "learned", g.missing: "rotary, fused", g.doubled: "soft-cap", g.from_norm: "learned",
        g.norm_before_the_sum: "ALiBi, MQA",
    },
)  # fmt: skip
def test_jacobians_add_the_identity(variant: str) -> None:
    model = model_of(variant)
    x = input_of(model, 1, ROWS)
    places = NO_STORE.places(ROWS, None, x.device)
    for block, look in zip(model.blocks, model.looks, strict=True):
        visible, rotate, bias = seen = look(places, EVERYTHING, x)
        whole = jacobian(lambda y, b=block, s=(visible, rotate, bias): b(y, s[0], rotate=s[1], bias=s[2]), x)
        close(whole, by_the_chain_rule(block, x, seen), 1e-11)


@claim(
    "A block whose branches give 0 is the identity, or for post-norm its two norms",
    "分支输出为 0 的块是恒等映射；后归一化时则是它的两个归一化",
    over=VARIANTS,
    faults={g.missing: "learned", g.doubled: "learned", g.from_norm: "rotary, fused", g.norm_before_the_sum: POST[0]},
)
@torch.no_grad()
def test_zeroed_branches_leave_the_residual(variant: str) -> None:
    model = model_of(variant)
    for block in model.blocks:
        x = input_of(model)
        differ(block(x, EVERYTHING), x)
        for linear in (block.attention.output, block.feedforward.down):
            for parameter in linear.parameters():
                parameter.zero_()
        expected = block.feedforward_norm(block.attention_norm(x)) if isinstance(block, PostNormBlock) else x
        close(block(x, EVERYTHING), expected, 0.0)


@claim(
    "Feed-forward and norms act on each position by itself",
    "前馈与归一化对每个位置单独起作用",
    over=VARIANTS,
    faults={g.feedforward_mixes: "learned", g.norm_over_positions: "untied, biases"},
)
def test_positions_do_not_mix_outside_attention(variant: str) -> None:
    model = model_of(variant)
    parts = [part for block in model.blocks for name, part in block.named_children() if name != "attention"]
    for part in [*parts, model.norm, model.embedding_norm]:
        x = input_of(model).requires_grad_()
        out = part(x)
        for t in (0, 1, T - 1):
            (gradient,) = torch.autograd.grad(out[:, t].square().sum(), x, retain_graph=True)
            assert (gradient != 0).any(-1).any(0).tolist() == [s == t for s in range(T)]
        close(torch.stack([part(row) for row in x.flatten(0, 1)]).reshape(x.shape), out)


@claim(
    "A norm gives each position the mean and the mean square of its formula, also at D = 4 and with a tiny variance",
    "归一化后每个位置的均值与均方符合公式；D = 4、方差极小时也一样（与 torch.nn 相等）",
    over=["LayerNorm", "LayerNorm without bias", "RMSNorm"],
    faults={g.unbiased: "LayerNorm", g.norm_over_positions: "LayerNorm without bias"},
)
@torch.no_grad()
def test_norms_are_those_of_torch(norm: str) -> None:
    for width in (4, 24):
        bias = norm == "LayerNorm"
        ours = RMSNorm(width) if norm == "RMSNorm" else LayerNorm(width, bias=bias)
        theirs = nn.RMSNorm(width, eps=1e-6) if norm == "RMSNorm" else nn.LayerNorm(width, bias=bias)
        for parameter in ours.double().parameters():
            parameter.normal_()
        theirs.double().load_state_dict(ours.state_dict())
        for spread in (1.0, 1e-4, 1e-9):
            x = spread * torch.randn(3, 5, width, dtype=torch.float64)
            close(ours(x), theirs(x))


@claim(
    "L blocks have L sets of weights: no storage is shared, except the head's when tied",
    "L 个块有 L 套权重：除绑定的输出头外，没有共享的存储",
    over=VARIANTS,
    faults={g.shared_blocks: "learned"},
)
def test_blocks_share_no_storage(variant: str) -> None:
    model = model_of(variant)
    # A norm that serves both branches of a parallel block is one module under two names.
    named = {id(module): module for module in model.modules()}
    own = [parameter for module in named.values() for parameter in module.parameters(recurse=False)]
    shared = len(own) - len({parameter.untyped_storage().data_ptr() for parameter in own})
    assert shared == int(VARIANTS[variant].tied)
    assert len({id(block) for block in model.blocks}) == VARIANTS[variant].layers
    for one, other in zip(model.blocks, list(model.blocks)[1:], strict=False):
        for p, q in zip(one.parameters(), other.parameters(), strict=True):
            assert p.untyped_storage().data_ptr() != q.untyped_storage().data_ptr()
