"""Dropout at the places of the notes: weights, output projection, end of the feed-forward; never in evaluation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.layers import FeedForward, MultiHeadAttention
from clearhead.ops import Mask, attend_fused, attend_visible, causal, gelu
from tests.oracles.compare import assert_same

D, T = 12, 5
P = 0.4


def weights(p: float, attend: Callable[..., Tensor]) -> nn.Module:
    """An attention that drops nothing but weights."""
    layer = MultiHeadAttention(D, 3, 3, 4, dropout=p, attend=attend)
    layer.output_dropout = nn.Dropout(0.0)
    return layer


def output(p: float) -> nn.Module:
    """An attention that drops nothing but features of its output."""
    layer = MultiHeadAttention(D, 3, 3, 4, dropout=p)
    layer.weight_dropout = 0.0
    return layer


PLACES: dict[str, Callable[[float], nn.Module]] = {
    "weights, visible kernel": lambda p: weights(p, attend_visible),
    "weights, fused kernel": lambda p: weights(p, attend_fused),
    "output projection": output,
    "end of the feed-forward": lambda p: FeedForward(D, 20, gelu, dropout=p),
}


def run(layer: nn.Module, x: Tensor) -> Tensor:
    result: Tensor = layer(x) if isinstance(layer, FeedForward) else layer(x, causal(T))
    return result.detach()


def check_modes(make: Callable[[float], nn.Module]) -> None:
    """In training two calls differ; in evaluation they are equal to the bit, and equal to a layer that drops nothing."""
    layer, without = make(P), make(0.0)
    without.load_state_dict(layer.state_dict())
    x = torch.randn(2, T, D)
    assert not run(layer.train(), x).equal(run(layer, x))
    evaluated = run(layer.eval(), x)
    assert_same(run(layer, x), evaluated)
    assert_same(run(without.train(), x), evaluated)
    assert_same(run(without.eval(), x), evaluated)


@pytest.mark.parametrize("place", PLACES)
def test_each_place_drops_in_training_and_never_in_evaluation(place: str) -> None:
    check_modes(PLACES[place])


def test_dropout_that_ignores_the_mode_is_caught() -> None:
    def always(p: float) -> nn.Module:
        layer = weights(
            p, lambda q, k, v, visible, **options: attend_fused(q, k, v, visible, **{**options, "dropout": p})
        )
        assert isinstance(layer, MultiHeadAttention)
        return layer

    with pytest.raises(AssertionError):
        check_modes(always)


def test_dropout_that_never_drops_is_caught() -> None:
    def never(q: Tensor, k: Tensor, v: Tensor, visible: Mask, **options: object) -> Tensor:
        return attend_fused(q, k, v, visible)

    with pytest.raises(AssertionError):
        check_modes(lambda p: weights(p, never))


def test_the_feed_forward_drops_its_output_not_its_hidden_features() -> None:
    """Every feature is 0 or the evaluated one over 1 - p."""
    layer = FeedForward(D, 20, gelu, dropout=P)
    x = torch.randn(50, T, D)
    evaluated, trained = run(layer.eval(), x), run(layer.train(), x)
    torch.testing.assert_close(trained, torch.where(trained == 0, 0.0, evaluated / (1 - P)))
    assert abs((trained == 0).float().mean().item() - P) < 0.05


def test_the_output_of_attention_is_dropped_after_the_projection() -> None:
    layer = output(P)
    x = torch.randn(50, T, D)
    evaluated, trained = run(layer.eval(), x), run(layer.train(), x)
    torch.testing.assert_close(trained, torch.where(trained == 0, 0.0, evaluated / (1 - P)))
    assert abs((trained == 0).float().mean().item() - P) < 0.05


@pytest.mark.parametrize("training", [True, False])
def test_pytorch_s_kernel_is_told_to_drop_in_training_alone(monkeypatch: pytest.MonkeyPatch, training: bool) -> None:
    told = []
    original = F.scaled_dot_product_attention

    def listen(*args: Tensor, **options: float) -> Tensor:
        told.append(options["dropout_p"])
        return original(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(F, "scaled_dot_product_attention", listen)
    run(MultiHeadAttention(D, 3, 3, 4, dropout=P).train(training), torch.randn(2, T, D))
    assert told == [P if training else 0.0]
