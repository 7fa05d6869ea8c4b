"""What attention promises of its heads: their order means nothing, their norms are their own, sinks are trained."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.layers import LayerNorm, MultiHeadAttention, RMSNorm, SinkAttention
from clearhead.ops import Attend, attend_visible, causal, layer_norm
from clearhead.ops.attention_variants import attend_with_sinks
from clearhead.ops.norm import rms_norm
from clearhead.ops.rotary import rotary_frequencies, rotation
from clearhead.tracing import Recorder
from tests.oracles.compare import assert_same, assert_within

B, T, D, H, K, d = 2, 3, 10, 4, 2, 6
TURN = rotation(range(T), rotary_frequencies(d), torch.float64)


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def filled(part: Any) -> Any:
    for parameter in part.double().parameters():
        nn.init.normal_(parameter, std=0.5)
    return part


def layer(attend: Attend = attend_visible, **options: Any) -> MultiHeadAttention:
    return filled(MultiHeadAttention(D, H, K, d, attend=attend, **options))


# The order of heads


def permuted(
    whole: MultiHeadAttention, order: list[int], groups: list[int], *, output: bool = True
) -> MultiHeadAttention:
    """The layer with its query heads in another order, key/value heads in `groups`, output columns moved along."""
    other = layer()
    other.load_state_dict(whole.state_dict())
    rows = [*order, *(H + g for g in groups), *(H + K + g for g in groups)]
    with torch.no_grad():
        for own, given in zip(other.qkv.parameters(), whole.qkv.parameters(), strict=True):
            own.copy_(given.unflatten(0, (-1, d))[rows].flatten(0, 1))
        if output:
            columns = whole.output.weight.unflatten(1, (H, d))[:, order].flatten(1)
            other.output.weight.copy_(columns)
    return other


def check_same(one: MultiHeadAttention, other: MultiHeadAttention) -> None:
    x = random(B, T, D)
    assert_within(one(x, causal(T), rotate=TURN), other(x, causal(T), rotate=TURN), 1e-12)


@pytest.mark.parametrize(
    ("order", "groups"), [([1, 0, 3, 2], [0, 1]), ([2, 3, 0, 1], [1, 0]), ([3, 2, 1, 0], [1, 0])], ids=str
)
def test_heads_in_another_order_change_nothing(order: list[int], groups: list[int]) -> None:
    whole = layer()
    check_same(whole, permuted(whole, order, groups))


@pytest.mark.parametrize(
    ("order", "groups", "output"),
    [([1, 0, 3, 2], [0, 1], False), ([2, 3, 0, 1], [0, 1], True), ([0, 2, 1, 3], [0, 1], True)],
    ids=["output left behind", "groups left behind", "a head in another group"],
)
def test_an_inconsistent_order_is_caught(order: list[int], groups: list[int], output: bool) -> None:
    whole = layer()
    with pytest.raises(AssertionError):
        check_same(whole, permuted(whole, order, groups, output=output))


# QK-norm


def check_qk_norm(made: MultiHeadAttention) -> None:
    """q and k are split, normalised over their d features with their own gains, then turned; v is neither."""
    x, recorder = random(B, T, D), Recorder()
    made(x, causal(T), rotate=TURN, tap=recorder)
    q, k, v = made.qkv(x).split(made.sizes, -1)
    q, k, v = (y.unflatten(-1, (-1, d)).transpose(1, 2) for y in (q, k, v))
    assert_within(recorder.tensors["q"], TURN(rms_norm(q, made.q_norm.weight)).detach(), 1e-13)
    assert_within(recorder.tensors["k"], TURN(rms_norm(k, made.k_norm.weight)).detach(), 1e-13)
    assert_same(recorder.tensors["v"], v.detach())


def test_queries_and_keys_are_normalised_over_a_head_s_features_before_they_turn() -> None:
    check_qk_norm(layer(q_norm=RMSNorm(d), k_norm=RMSNorm(d)))


class TurnedFirst(RMSNorm):
    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(TURN(x), self.weight, self.eps)


class OverPositions(RMSNorm):
    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x.mT, None, self.eps).mT * self.weight


@pytest.mark.parametrize("kind", [TurnedFirst, OverPositions, None])
def test_another_qk_norm_is_caught(kind: type[RMSNorm] | None) -> None:
    made = layer(q_norm=RMSNorm(d) if kind is None else kind(d), k_norm=RMSNorm(d))
    if kind is None:
        made.q_norm = nn.Identity()
        made.q_norm.weight = made.k_norm.weight
    with pytest.raises(AssertionError):
        check_qk_norm(made)


def test_with_a_qk_norm_weights_do_not_depend_on_the_size_of_the_projection() -> None:
    recorder = Recorder("weights")
    made, x = layer(bias=False, q_norm=RMSNorm(d, eps=1e-30), k_norm=RMSNorm(d, eps=1e-30)), random(B, T, D)
    made(x, causal(T), tap=recorder)
    before = recorder.tensors["weights"]
    with torch.no_grad():
        made.qkv.weight[: (H + K) * d] *= 1000
    made(x, causal(T), tap=recorder)
    assert_within(recorder.tensors["weights"], before, 1e-12)
    plain = layer(bias=False)
    plain(x, causal(T), tap=recorder)
    before = recorder.tensors["weights"]
    with torch.no_grad():
        plain.qkv.weight *= 1000
    plain(x, causal(T), tap=recorder)
    assert not torch.allclose(recorder.tensors["weights"], before)


def test_a_layer_norm_serves_too() -> None:
    norm = filled(LayerNorm(d))
    made, x, recorder = layer(q_norm=norm), random(B, T, D), Recorder("q")
    made(x, causal(T), tap=recorder)
    q = made.qkv(x)[..., : H * d].unflatten(-1, (H, d)).transpose(1, 2)
    assert_within(recorder.tensors["q"], layer_norm(q, norm.weight, norm.bias).detach(), 1e-13)


# Scale, sinks


def test_a_scale_takes_the_place_of_the_root() -> None:
    recorder = Recorder("scores")
    made, x = layer(scale=0.25), random(B, T, D)
    made(x, causal(T), tap=recorder)
    scaled = recorder.tensors["scores"]
    made.scale = None
    made(x, causal(T), tap=recorder)
    assert_within(scaled, recorder.tensors["scores"] * 0.25 * d**0.5, 1e-13)
    assert not torch.allclose(scaled, recorder.tensors["scores"])


def test_sinks_are_trained_one_a_head_and_0_at_first() -> None:
    kernel = SinkAttention(H).double()
    q, k, v = random(B, H, T, d), random(B, K, T, d), random(B, K, T, d)
    assert_same(kernel.sinks.detach(), torch.zeros(H).double())
    nn.init.normal_(kernel.sinks)
    found = kernel(q, k, v, causal(T), scale=0.4, bias=torch.ones(T, T).double())
    expected = attend_with_sinks(q, k, v, causal(T), sinks=kernel.sinks, scale=0.4, bias=torch.ones(T, T).double())
    assert_same(found.detach(), expected.detach())
    found.square().sum().backward()
    assert kernel.sinks.grad is not None
    assert bool(kernel.sinks.grad.ne(0).all())


def test_a_layer_with_sinks_holds_them() -> None:
    made = layer(attend=SinkAttention(H))
    assert "attend.sinks" in dict(made.named_parameters())
    assert made(random(B, T, D), causal(T)).shape == (B, T, D)
