"""Where the norms stand, and in which order the branches run: each block is its equation, and PyTorch's own layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.layers import (
    FeedForward,
    GatedFeedForward,
    LayerNorm,
    MultiHeadAttention,
    ParallelBlock,
    PostNormBlock,
    RMSNorm,
    SequentialBlock,
)
from clearhead.ops import Mask, Padding, causal, gelu, relu
from clearhead.ops.activation import silu
from clearhead.tracing import Recorder
from tests.oracles.compare import assert_same, assert_within

B, T, D, FF, H, K, d = 2, 3, 12, 14, 4, 2, 5
Block = SequentialBlock | PostNormBlock | ParallelBlock


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def filled(part: Any) -> Any:
    """The part with every weight random, norms and biases included, in float64."""
    for parameter in part.double().parameters():
        nn.init.normal_(parameter, std=0.5)
    return part


def parts() -> tuple[MultiHeadAttention, FeedForward]:
    return MultiHeadAttention(D, H, K, d), FeedForward(D, FF, gelu)


def around(kind: type[SequentialBlock] = SequentialBlock) -> SequentialBlock:
    after = {"attention_after": RMSNorm(D), "feedforward_after": RMSNorm(D)}
    return filled(kind(*parts(), LayerNorm(D), LayerNorm(D), **after))


def check_around(block: SequentialBlock) -> None:
    """u = x + N₁'(A(N₁ x)), z = u + N₂'(F(N₂ u))."""
    x, visible = random(B, T, D), causal(T)
    u = x + block.attention_after(block.attention(block.attention_norm(x), visible))
    z = u + block.feedforward_after(block.feedforward(block.feedforward_norm(u)))
    assert_within(block(x, visible), z, 1e-12)


def check_post(block: PostNormBlock) -> None:
    """u = N₁(x + A x), z = N₂(u + F u)."""
    x, visible = random(B, T, D), causal(T)
    u = block.attention_norm(x + block.attention(x, visible))
    assert_within(block(x, visible), block.feedforward_norm(u + block.feedforward(u)), 1e-12)


def check_parallel(block: ParallelBlock) -> None:
    """z = x + A(N₁ x) + F(N₂ x)."""
    x, visible = random(B, T, D), causal(T)
    z = x + block.attention(block.attention_norm(x), visible) + block.feedforward(block.feedforward_norm(x))
    assert_within(block(x, visible), z, 1e-12)


def test_norms_around_each_branch() -> None:
    check_around(around())


def test_the_norm_of_the_sum() -> None:
    check_post(filled(PostNormBlock(*parts(), LayerNorm(D), LayerNorm(D))))


def test_both_branches_from_the_same_x() -> None:
    check_parallel(filled(ParallelBlock(*parts(), LayerNorm(D), LayerNorm(D))))


def test_one_norm_may_serve_both_branches() -> None:
    shared = LayerNorm(D)
    block = filled(ParallelBlock(*parts(), shared, shared))
    check_parallel(block)
    assert (
        len(list(block.parameters()))
        == len(list(filled(ParallelBlock(*parts(), LayerNorm(D), LayerNorm(D))).parameters())) - 2
    )
    block(random(B, T, D), causal(T)).square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in block.parameters())


class AfterTheSum(SequentialBlock):
    """The second norm of a branch takes the residual in."""

    def forward(self, x: Tensor, visible: Mask) -> Tensor:
        u = self.attention_after(x + self.attention(self.attention_norm(x), visible))
        return self.feedforward_after(u + self.feedforward(self.feedforward_norm(u)))


class Swapped(SequentialBlock):
    """The norms after the branches changed places."""

    def forward(self, x: Tensor, visible: Mask) -> Tensor:
        u = x + self.feedforward_after(self.attention(self.attention_norm(x), visible))
        return u + self.attention_after(self.feedforward(self.feedforward_norm(u)))


class NormOfTheBranch(PostNormBlock):
    """The norm before the sum."""

    def forward(self, x: Tensor, visible: Mask) -> Tensor:
        u = x + self.attention_norm(self.attention(x, visible))
        return u + self.feedforward_norm(self.feedforward(u))


class FromX(PostNormBlock):
    """The second residual from the block's input."""

    def forward(self, x: Tensor, visible: Mask) -> Tensor:
        u = self.attention_norm(x + self.attention(x, visible))
        return self.feedforward_norm(x + self.feedforward(u))


class OneAfterTheOther(ParallelBlock):
    """The second branch sees the first."""

    def forward(self, x: Tensor, visible: Mask) -> Tensor:
        u = x + self.attention(self.attention_norm(x), visible)
        return u + self.feedforward(self.feedforward_norm(u))


class TwoResiduals(ParallelBlock):
    """x is added twice."""

    def forward(self, x: Tensor, visible: Mask) -> Tensor:
        return x + ParallelBlock.forward(self, x, visible)


@pytest.mark.parametrize(
    ("check", "make"),
    [
        (check_around, lambda: around(AfterTheSum)),
        (check_around, lambda: around(Swapped)),
        (check_post, lambda: filled(NormOfTheBranch(*parts(), LayerNorm(D), LayerNorm(D)))),
        (check_post, lambda: filled(FromX(*parts(), LayerNorm(D), LayerNorm(D)))),
        (check_parallel, lambda: filled(OneAfterTheOther(*parts(), LayerNorm(D), LayerNorm(D)))),
        (check_parallel, lambda: filled(TwoResiduals(*parts(), LayerNorm(D), LayerNorm(D)))),
    ],
    ids=["after the sum", "swapped", "norm of the branch", "from x", "one after the other", "x twice"],
)
def test_another_order_is_caught(check: Callable[[Any], None], make: Callable[[], Block]) -> None:
    with pytest.raises(AssertionError):
        check(make())


def test_without_norms_after_the_branches_a_block_has_no_parameter_more() -> None:
    plain = SequentialBlock(*parts(), LayerNorm(D), LayerNorm(D))
    assert [name for name, _ in plain.named_parameters() if "after" in name] == []
    assert len([name for name, _ in around().named_parameters() if "after" in name]) == 2


def test_zeroed_branches_leave_the_input_or_its_norms() -> None:
    x, visible = random(B, T, D), causal(T)

    def silent(block: Any) -> Any:
        for linear in (block.attention.output, block.feedforward.down):
            nn.init.zeros_(linear.weight)
            nn.init.zeros_(linear.bias)
        return block

    assert_same(silent(around())(x, visible), x)
    assert_same(silent(filled(ParallelBlock(*parts(), LayerNorm(D), LayerNorm(D))))(x, visible), x)
    post = silent(filled(PostNormBlock(*parts(), LayerNorm(D), LayerNorm(D))))
    assert_same(post(x, visible), post.feedforward_norm(post.attention_norm(x)))


@pytest.mark.parametrize("kind", [SequentialBlock, PostNormBlock, ParallelBlock])
def test_a_tap_sees_the_steps(kind: type[Block]) -> None:
    block, x, recorder = filled(kind(*parts(), LayerNorm(D), LayerNorm(D))), random(B, T, D), Recorder()
    z, seen = block(x, causal(T), tap=recorder), recorder.tensors
    assert_same(seen["output"], z.detach())
    if kind is ParallelBlock:
        assert_within(z.detach(), x + seen["attention.output"] + seen["feedforward.output"], 1e-14)
    elif kind is PostNormBlock:
        assert_same(seen["middle"], block.attention_norm(x + seen["attention.output"]).detach())
    else:
        assert_same(seen["middle"], x + seen["attention.output"])


# The gated feed-forward


def check_gated(layer: GatedFeedForward, activation: Callable[[Tensor], Tensor]) -> None:
    """W₂ (φ(W_g x + b_g) ⊙ (W₁ x + b₁)) + b₂."""
    x = random(B, T, D)
    gate, up, down = ((p.weight, 0 if p.bias is None else p.bias) for p in (layer.gate, layer.up, layer.down))
    hidden = activation(x @ gate[0].T + gate[1]) * (x @ up[0].T + up[1])
    assert_within(layer(x), hidden @ down[0].T + down[1], 1e-13)


@pytest.mark.parametrize("activation", [silu, gelu])
@pytest.mark.parametrize("bias", [False, True])
def test_the_gated_feed_forward_is_its_equation(activation: Callable[[Tensor], Tensor], bias: bool) -> None:
    layer = filled(GatedFeedForward(D, FF, activation, bias=bias))
    check_gated(layer, activation)
    assert (layer.gate.weight.shape, layer.up.weight.shape, layer.down.weight.shape) == ((FF, D), (FF, D), (D, FF))
    assert [p.bias is not None for p in (layer.gate, layer.up, layer.down)] == [bias] * 3
    recorder = Recorder()
    layer(random(B, T, D), tap=recorder)
    seen = recorder.tensors
    assert list(seen) == ["gate", "up", "hidden", "output"]
    assert_same(seen["hidden"], activation(seen["gate"]) * seen["up"])


def test_a_gate_on_the_wrong_side_or_another_activation_is_caught() -> None:
    layer = filled(GatedFeedForward(D, FF, silu))
    with pytest.raises(AssertionError):
        check_gated(layer, gelu)
    layer.gate, layer.up = layer.up, layer.gate
    original = GatedFeedForward(D, FF, silu)
    original.double().load_state_dict(
        {**layer.state_dict(), "gate.weight": layer.up.weight, "up.weight": layer.gate.weight}
    )
    x = random(B, T, D)
    assert not torch.allclose(layer(x), original(x))


def test_the_gated_feed_forward_drops_its_output_in_training_alone() -> None:
    layer, x = GatedFeedForward(D, FF, silu, dropout=0.5), torch.randn(50, T, D)
    evaluated, trained = layer.eval()(x).detach(), layer.train()(x).detach()
    torch.testing.assert_close(trained, torch.where(trained == 0, 0.0, evaluated * 2))
    assert abs((trained == 0).float().mean().item() - 0.5) < 0.05
    assert_same(layer.eval()(x).detach(), evaluated)


# PyTorch's own layer


def theirs_and_ours(norm_first: bool, activation: str) -> tuple[nn.TransformerEncoderLayer, Block]:
    """PyTorch's encoder layer, and the block of the same form with a copy of its weights."""
    theirs = nn.TransformerEncoderLayer(
        D, H, FF, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    theirs = filled(theirs)
    function = {"relu": relu, "gelu": gelu}[activation]
    kind = SequentialBlock if norm_first else PostNormBlock
    block = kind(MultiHeadAttention(D, H, H, D // H), FeedForward(D, FF, function), LayerNorm(D), LayerNorm(D)).double()
    mine = theirs.state_dict()
    names = {
        "attention.qkv.weight": "self_attn.in_proj_weight",
        "attention.qkv.bias": "self_attn.in_proj_bias",
        **{
            f"{ours}.{end}": f"{other}.{end}"
            for end in ("weight", "bias")
            for ours, other in (
                ("attention.output", "self_attn.out_proj"),
                ("feedforward.up", "linear1"),
                ("feedforward.down", "linear2"),
                ("attention_norm", "norm1"),
                ("feedforward_norm", "norm2"),
            )
        },
    }
    block.load_state_dict({name: mine[other] for name, other in names.items()})
    return theirs, block


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [True, False])
def test_the_block_is_pytorch_s_encoder_layer(norm_first: bool, activation: str) -> None:
    """Values and the gradient of the input, with a causal mask and padding; fast path and not."""
    theirs, block = theirs_and_ours(norm_first, activation)
    x, real = random(B, T, D), torch.tensor([[True] * T, [True] * (T - 1) + [False]])
    gradients = []
    for made in (
        lambda x: theirs(x, src_mask=~causal(T).matrix(), src_key_padding_mask=~real),
        lambda x: block(x, causal(T) & Padding(real)),
    ):
        leaf = x.clone().requires_grad_()
        made(leaf)[real].square().sum().backward()
        assert leaf.grad is not None
        gradients.append((made(x)[real].detach(), leaf.grad))
    for ours, other in zip(*gradients, strict=True):
        assert_within(ours, other, 1e-11)
    _, wrong = theirs_and_ours(not norm_first, activation)
    assert not torch.allclose(wrong(x, causal(T)), theirs(x, src_mask=~causal(T).matrix()))
