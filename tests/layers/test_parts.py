"""Feed-forward, norm, embeddings and the block: each is its equation from the notes, and every parameter trains."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from clearhead.layers import (
    FeedForward,
    LayerNorm,
    LearnedPositions,
    MultiHeadAttention,
    SequentialBlock,
    TokenEmbedding,
)
from clearhead.messages import UserError
from clearhead.ops import Mask, attend_fused, attend_visible, causal, gelu, layer_norm, relu
from clearhead.tracing import Recorder
from tests.oracles.compare import assert_same, assert_within

B, T, D, F, H, K, d = 2, 3, 10, 14, 4, 2, 6


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def block(*, dropout: float = 0.0, kind: type[SequentialBlock] = SequentialBlock) -> SequentialBlock:
    """A block whose weights are all random, norms and biases included."""
    attention = MultiHeadAttention(D, H, K, d, dropout=dropout)
    made = kind(attention, FeedForward(D, F, gelu, dropout=dropout), LayerNorm(D), LayerNorm(D)).double()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    return made


@pytest.mark.parametrize("activation", [relu, gelu])
@pytest.mark.parametrize("bias", [False, True])
def test_the_feed_forward_is_its_equation(activation: Callable[[Tensor], Tensor], bias: bool) -> None:
    """W₂ φ(W₁ x + b₁) + b₂."""
    layer, x = FeedForward(D, F, activation, bias=bias).double(), random(B, T, D)
    b1, b2 = (layer.up.bias, layer.down.bias) if bias else (0, 0)
    assert_within(layer(x), activation(x @ layer.up.weight.T + b1) @ layer.down.weight.T + b2, 1e-14)
    assert layer.up.weight.shape == (F, D)
    assert layer.down.weight.shape == (D, F)
    assert (layer.up.bias is not None) == (layer.down.bias is not None) == bias


def test_the_feed_forward_works_on_each_position_alone() -> None:
    layer, x = FeedForward(D, F, gelu).double(), random(B, T, D)
    changed = x.clone()
    changed[:, 1] += 1
    moved = (layer(x) - layer(changed)).abs().amax((0, 2)) > 0
    assert moved.tolist() == [False, True, False]


@pytest.mark.parametrize("bias", [False, True])
def test_the_norm_is_the_formula(bias: bool) -> None:
    norm = LayerNorm(D, eps=0.1, bias=bias).double()
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    x = random(B, T, D) * 3 + 5
    assert_within(norm(x), layer_norm(x, norm.weight, norm.bias, 0.1), 1e-13)
    assert (norm.bias is not None) == bias


def test_a_fresh_norm_changes_nothing_but_mean_and_variance() -> None:
    x = LayerNorm(D).double()(random(B, T, D))
    assert_within(x.mean(-1), torch.zeros(B, T).double(), 1e-14)
    assert_within(x.var(-1, correction=0), torch.ones(B, T).double(), 1e-3)


def test_positions_are_rows_of_the_table() -> None:
    positions, x = LearnedPositions(5, D).double(), random(B, T, D)
    assert_same(positions(x, range(3)), x + positions.table[:3])
    assert_same(positions(x, range(2, 5)), x + positions.table[2:])
    per_row = torch.tensor([[0, 1, 4], [2, 3, 3]])
    assert_same(positions(x, per_row), x + torch.stack([positions.table[row] for row in per_row]))


def test_token_ids_are_rows_of_the_table() -> None:
    embedding = TokenEmbedding(7, D)
    ids = torch.tensor([[0, 6, 3]])
    assert_same(embedding(ids), embedding.weight[[0, 6, 3]][None])


@pytest.mark.parametrize("wrong", [7, -1, 100])
def test_an_id_outside_the_vocabulary_is_an_error_with_both_numbers(wrong: int) -> None:
    with pytest.raises(UserError, match=rf"token id {wrong} is outside the vocabulary of 7"):
        TokenEmbedding(7, D)(torch.tensor([[0, wrong, 3]]))


def check_block(made: SequentialBlock) -> None:
    """u = x + Attention(LN₁(x)), z = u + FFN(LN₂(u)), with the norms written out."""
    x, visible = random(B, T, D), causal(T)

    def norm(x: Tensor, part: nn.Module) -> Tensor:
        assert isinstance(part, LayerNorm)
        return layer_norm(x, part.weight, part.bias, part.eps)

    u = x + made.attention(norm(x, made.attention_norm), visible)
    z = u + made.feedforward(norm(u, made.feedforward_norm))
    assert_within(made(x, visible), z, 1e-12)


class Stale(SequentialBlock):
    """The second residual starts from the block's input."""

    def forward(self, x: Tensor, visible: Mask) -> Tensor:
        u = x + self.attention(self.attention_norm(x), visible)
        return x + self.feedforward(self.feedforward_norm(u))


class FromNorm(SequentialBlock):
    """The residuals carry the normalised input."""

    def forward(self, x: Tensor, visible: Mask) -> Tensor:
        x = self.attention_norm(x)
        u = x + self.attention(x, visible)
        return u + self.feedforward(self.feedforward_norm(u))


class PostNorm(SequentialBlock):
    """The norm after the sum."""

    def forward(self, x: Tensor, visible: Mask) -> Tensor:
        u = self.attention_norm(x + self.attention(x, visible))
        return self.feedforward_norm(u + self.feedforward(u))


class NoResidual(SequentialBlock):
    """No way around the feed-forward."""

    def forward(self, x: Tensor, visible: Mask) -> Tensor:
        u = x + self.attention(self.attention_norm(x), visible)
        return self.feedforward(self.feedforward_norm(u))


class Parallel(SequentialBlock):
    """Both branches from the same input."""

    def forward(self, x: Tensor, visible: Mask) -> Tensor:
        return x + self.attention(self.attention_norm(x), visible) + self.feedforward(self.feedforward_norm(x))


def test_the_block_is_its_equation() -> None:
    check_block(block())


@pytest.mark.parametrize("kind", [Stale, FromNorm, PostNorm, NoResidual, Parallel])
def test_another_order_is_caught(kind: type[SequentialBlock]) -> None:
    with pytest.raises(AssertionError):
        check_block(block(kind=kind))


def test_a_tap_sees_the_updated_u_and_z() -> None:
    made, x, recorder = block(), random(B, T, D), Recorder()
    z = made(x, causal(T), tap=recorder)
    seen = recorder.tensors
    assert_same(seen["middle"], x + seen["attention.output"])
    assert_same(seen["output"], seen["middle"] + seen["feedforward.output"])
    assert_same(seen["output"], z.detach())


def test_with_branches_of_zero_the_block_is_the_identity() -> None:
    made, x = block(), random(B, T, D)
    for linear in (made.attention.output, made.feedforward.down):
        nn.init.zeros_(linear.weight)
        nn.init.zeros_(linear.bias)
    assert_same(made(x, causal(T)), x)


@pytest.mark.parametrize("attend", [attend_visible, attend_fused])
def test_every_parameter_of_a_block_gets_a_gradient(attend: Callable[..., Tensor]) -> None:
    made = block(dropout=0.1)
    made.attention.attend = attend
    made(random(B, T, D), causal(T)).square().sum().backward()
    without = [name for name, p in made.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert without == []
