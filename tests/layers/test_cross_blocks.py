"""Blocks that ask a memory are their equations: self-attention, cross-attention, feed-forward, with norms before or after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.layers import (
    CrossStore,
    FeedForward,
    LayerNorm,
    Memory,
    MultiHeadAttention,
    PostNormCrossBlock,
    RMSNorm,
    SequentialCrossBlock,
)
from clearhead.ops import Mask, Padding, causal, gelu
from clearhead.tracing import Recorder
from tests.oracles.compare import assert_within

B, T, M, D, H, K, d, FF = 2, 3, 5, 14, 4, 2, 6, 9
REAL = torch.tensor([[True, True, True, True, True], [True, True, True, False, False]])


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def filled(part: Any) -> Any:
    """The part with every weight random, norms and biases included, in float64."""
    for parameter in part.double().parameters():
        nn.init.normal_(parameter, std=0.5)
    return part


def parts() -> tuple[MultiHeadAttention, MultiHeadAttention, FeedForward]:
    return MultiHeadAttention(D, H, K, d), MultiHeadAttention(D, H, K, d), FeedForward(D, FF, gelu)


def norms() -> dict[str, nn.Module]:
    return {f"{part}_norm": LayerNorm(D) for part in ("attention", "cross_attention", "feedforward")}


def sequential(kind: type[SequentialCrossBlock] = SequentialCrossBlock, *, around: bool = True) -> SequentialCrossBlock:
    after = {f"{part}_after": RMSNorm(D) for part in ("attention", "cross_attention", "feedforward")}
    return filled(kind(*parts(), **norms(), **(after if around else {})))


def post(kind: type[PostNormCrossBlock] = PostNormCrossBlock) -> PostNormCrossBlock:
    return filled(kind(*parts(), **norms()))


def check_sequential(block: SequentialCrossBlock) -> None:
    """u = x + N₁'(A(N₁ x)), w = u + N₂'(C(N₂ u)), z = w + N₃'(F(N₃ w))."""
    x, memory = random(B, T, D), Memory(random(B, K, M, d), random(B, K, M, d), Padding(REAL))
    u = x + block.attention_after(block.attention(block.attention_norm(x), causal(T)))
    w = u + block.cross_attention_after(block.cross_attention.across(block.cross_attention_norm(u), memory))
    z = w + block.feedforward_after(block.feedforward(block.feedforward_norm(w)))
    assert_within(block(x, causal(T), store=CrossStore([memory]).layer(0)), z, 1e-12)


def check_post(block: PostNormCrossBlock) -> None:
    """u = N₁(x + A x), w = N₂(u + C u), z = N₃(w + F w)."""
    x, memory = random(B, T, D), Memory(random(B, K, M, d), random(B, K, M, d), Padding(REAL))
    u = block.attention_norm(x + block.attention(x, causal(T)))
    w = block.cross_attention_norm(u + block.cross_attention.across(u, memory))
    z = block.feedforward_norm(w + block.feedforward(w))
    assert_within(block(x, causal(T), store=CrossStore([memory]).layer(0)), z, 1e-12)


def test_each_block_is_its_equation() -> None:
    check_sequential(sequential())
    check_sequential(sequential(around=False))
    check_post(post())


class CrossFirst(SequentialCrossBlock):
    """The memory is asked before the own tokens."""

    def forward(self, x: Tensor, visible: Mask, *, store: Any) -> Tensor:
        u = x + self.cross_attention_after(self.cross_attention.across(self.cross_attention_norm(x), store.memory))
        w = u + self.attention_after(self.attention(self.attention_norm(u), visible))
        return w + self.feedforward_after(self.feedforward(self.feedforward_norm(w)))


class CrossFromX(SequentialCrossBlock):
    """The second residual from the block's input."""

    def forward(self, x: Tensor, visible: Mask, *, store: Any) -> Tensor:
        u = x + self.attention_after(self.attention(self.attention_norm(x), visible))
        w = x + self.cross_attention_after(self.cross_attention.across(self.cross_attention_norm(u), store.memory))
        return w + self.feedforward_after(self.feedforward(self.feedforward_norm(w)))


class NormsExchanged(PostNormCrossBlock):
    def forward(self, x: Tensor, visible: Mask, *, store: Any) -> Tensor:
        u = self.cross_attention_norm(x + self.attention(x, visible))
        w = self.attention_norm(u + self.cross_attention.across(u, store.memory))
        return self.feedforward_norm(w + self.feedforward(w))


class NoResidual(PostNormCrossBlock):
    def forward(self, x: Tensor, visible: Mask, *, store: Any) -> Tensor:
        u = self.attention_norm(x + self.attention(x, visible))
        w = self.cross_attention_norm(self.cross_attention.across(u, store.memory))
        return self.feedforward_norm(w + self.feedforward(w))


@pytest.mark.parametrize(
    ("check", "make"),
    [
        (check_sequential, lambda: sequential(CrossFirst)),
        (check_sequential, lambda: sequential(CrossFromX)),
        (check_post, lambda: post(NormsExchanged)),
        (check_post, lambda: post(NoResidual)),
    ],
    ids=["cross first", "cross from x", "norms exchanged", "no residual"],
)
def test_a_faulty_block_is_caught(check: Callable[[nn.Module], None], make: Callable[[], nn.Module]) -> None:
    with pytest.raises(AssertionError):
        check(make())


@pytest.mark.parametrize("make", [sequential, post])
def test_what_a_tap_sees(make: Callable[[], nn.Module]) -> None:
    """After self-attention u, after cross-attention w, at last z."""
    block, recorder = make(), Recorder()
    store = CrossStore([Memory(random(B, K, M, d), random(B, K, M, d), Padding(REAL))]).layer(0)
    output = block(random(B, T, D), causal(T), store=store, tap=recorder)
    named = ["middle", "crossed", "output", "attention.output", "cross_attention.output", "feedforward.output"]
    for name in named:
        assert recorder.tensors[name].shape == (B, T, D)
    assert [name for name in recorder.tensors if name in named[:3]] == named[:3]
    assert recorder.tensors["output"].equal(output)
    assert recorder.tensors["cross_attention.q"].shape == (B, H, T, d)
