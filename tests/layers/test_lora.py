"""A linear layer with a change of low rank: exactly the layer at the start, the formula after, and one layer again at the end."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.lora import LowRankLinear
from clearhead.layers.memory import Memory
from clearhead.ops.masks import EVERYTHING
from tests.oracles.compare import assert_same, assert_within

B, T, M, IN, OUT, RANK, ALPHA = 2, 3, 7, 10, 6, 4, 12.0


def linear(*, bias: bool = True, dtype: torch.dtype = torch.float64) -> nn.Linear:
    torch.manual_seed(5)
    return nn.Linear(IN, OUT, bias=bias, dtype=dtype)


def moved(layer: LowRankLinear) -> LowRankLinear:
    """The layer as after some training: B is no longer zero."""
    torch.manual_seed(6)
    nn.init.normal_(layer.lora_b, std=0.5)
    return layer


def inputs(dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(B, T, IN, dtype=dtype, generator=torch.Generator().manual_seed(7))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_at_the_start_it_is_the_layer_itself(bias: bool, dtype: torch.dtype) -> None:
    base, x = linear(bias=bias, dtype=dtype), inputs(dtype)
    wanted = base(x).detach()
    layer = LowRankLinear(base, RANK, ALPHA)
    assert_same(layer(x).detach(), wanted)
    assert bool((layer.lora_a != 0).all())
    assert not bool((moved(layer)(x) == wanted).all())


def test_by_hand() -> None:
    """W = [[1, 2]], b = 3, A = [[1, 0], [0, 2]], B = [[1, 5]], α/r = 6/2: x = (4, 1) gives 6 + 3 + 3 (4 + 10) = 51."""
    base = nn.Linear(2, 1)
    layer = LowRankLinear(base, 2, 6.0)
    with torch.no_grad():
        base.weight.copy_(torch.tensor([[1.0, 2.0]]))
        base.bias.fill_(3.0)
        layer.lora_a.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
        layer.lora_b.copy_(torch.tensor([[1.0, 5.0]]))
    assert layer(torch.tensor([4.0, 1.0])).tolist() == [51.0]
    assert layer.weight.tolist() == [[1 + 3 * 1, 2 + 3 * 10]]
    assert layer.merged()(torch.tensor([4.0, 1.0])).tolist() == [51.0]


@pytest.mark.parametrize("bias", [True, False])
def test_the_formula(bias: bool) -> None:
    layer, x = moved(LowRankLinear(linear(bias=bias), RANK, ALPHA)), inputs()
    weight = layer.base.weight + ALPHA / RANK * layer.lora_b @ layer.lora_a
    assert_within(layer(x).detach(), F.linear(x, weight, layer.base.bias).detach(), 1e-12)


def test_the_scale_has_the_rank_in_it() -> None:
    """The planted fault: α by itself, or r/α."""
    layer, x = moved(LowRankLinear(linear(), RANK, ALPHA)), inputs()
    change = layer(x) - layer.base(x)
    for wrong in (ALPHA, RANK / ALPHA, 1.0):
        layer.scale = wrong
        with pytest.raises(AssertionError):
            assert_within((layer(x) - layer.base(x)).detach(), change.detach(), 1e-12)
    layer.scale = 2 * ALPHA / RANK
    assert_within((layer(x) - layer.base(x)).detach(), 2 * change.detach(), 1e-12)


def test_a_is_drawn_within_its_bound_and_from_the_process_randomness() -> None:
    """Kaiming uniform with a = √5: variance 1/(3 in), nothing beyond 1/√in."""
    torch.manual_seed(1)
    first = LowRankLinear(nn.Linear(100, 3), 50, 1.0).lora_a.detach()
    torch.manual_seed(1)
    assert_same(LowRankLinear(nn.Linear(100, 3), 50, 1.0).lora_a.detach(), first)
    assert float(first.abs().max()) <= 0.1
    assert float(first.square().mean()) == pytest.approx(1 / 300, rel=0.05)


def test_only_the_change_is_trained() -> None:
    layer = moved(LowRankLinear(linear(), RANK, ALPHA))
    assert [name for name, each in layer.named_parameters() if each.requires_grad] == ["lora_a", "lora_b"]
    layer(inputs()).square().sum().backward()
    assert layer.base.weight.grad is None
    assert layer.base.bias.grad is None
    assert all(bool((each.grad != 0).all()) for each in (layer.lora_a, layer.lora_b) if each.grad is not None)
    assert layer.lora_a.grad is not None
    assert layer.lora_b.grad is not None


def test_gradients_are_those_of_the_formula() -> None:
    torch.manual_seed(8)
    layer, x = moved(LowRankLinear(linear(), RANK, ALPHA)), inputs().requires_grad_()
    a, b = layer.lora_a, layer.lora_b
    weight = (layer.base.weight + ALPHA / RANK * b @ a).detach()
    up = torch.randn(B, T, OUT, dtype=torch.float64)
    (layer(x) * up).sum().backward()
    of_weight = torch.einsum("bto,bti->oi", up, x.detach())
    assert a.grad is not None
    assert b.grad is not None
    assert x.grad is not None
    assert_within(a.grad, ALPHA / RANK * b.detach().T @ of_weight, 1e-12)
    assert_within(b.grad, ALPHA / RANK * of_weight @ a.detach().T, 1e-12)
    assert_within(x.grad, up @ weight, 1e-12)


@pytest.mark.parametrize("bias", [True, False])
def test_merged_is_one_plain_layer(bias: bool) -> None:
    layer, x = moved(LowRankLinear(linear(bias=bias), RANK, ALPHA)), inputs()
    merged = layer.eval().merged()
    assert type(merged) is nn.Linear
    assert (merged.in_features, merged.out_features, merged.training) == (IN, OUT, False)
    assert all(each.requires_grad for each in merged.parameters())
    assert_within(merged(x).detach(), layer(x).detach(), 1e-12)
    with torch.no_grad():
        layer.base.weight.zero_()
        layer.lora_b.zero_()
        if bias:
            layer.base.bias.zero_()
    assert bool((merged(x) != 0).all()), "the merged layer shares nothing with the one it was made from"


def test_a_sum_in_sixteen_bits_is_rounded_once() -> None:
    layer = moved(LowRankLinear(linear(dtype=torch.bfloat16), RANK, ALPHA))
    a, b, w = (each.detach().float() for each in (layer.lora_a, layer.lora_b, layer.base.weight))
    assert_same(layer.merged().weight.detach(), (w + ALPHA / RANK * (b @ a)).bfloat16())
    narrow = layer.base.weight + ALPHA / RANK * (layer.lora_b @ layer.lora_a)
    assert not torch.equal(layer.merged().weight, narrow)


def test_dropout_is_of_the_change_alone_and_of_training() -> None:
    layer, x = moved(LowRankLinear(linear(), RANK, ALPHA, dropout=0.5)), inputs()
    torch.manual_seed(9)
    dropped = layer(x) - layer.base(x)
    torch.manual_seed(9)
    assert_within(
        dropped.detach(), (ALPHA / RANK * F.dropout(x, 0.5) @ layer.lora_a.T @ layer.lora_b.T).detach(), 1e-12
    )
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert_within(layer(x).detach(), layer.merged()(x).detach(), 1e-12)


def attention() -> MultiHeadAttention:
    torch.manual_seed(10)
    made = MultiHeadAttention(IN, 4, 2, 6).double()
    made.qkv = moved(LowRankLinear(made.qkv, RANK, ALPHA))  # type: ignore[assignment] # it takes a linear layer's place
    made.output = moved(LowRankLinear(made.output, RANK, ALPHA))  # type: ignore[assignment]
    return made


def across(part: MultiHeadAttention) -> Tensor:
    memory = torch.randn(B, M, IN, dtype=torch.float64, generator=torch.Generator().manual_seed(11))
    return part.across(inputs(), Memory(*part.keys_values(memory), EVERYTHING)).detach()


def test_cross_attention_reads_the_change_in_parts() -> None:
    """It projects queries by some rows of the weight, keys and values by the others."""
    changed, plain = attention(), attention()
    plain.qkv, plain.output = plain.qkv.merged(), plain.output.merged()  # type: ignore[operator]
    assert_within(across(changed), across(plain), 1e-12)


def test_reading_the_frozen_weight_alone_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: `weight` without the change."""
    changed, plain = attention(), attention()
    plain.qkv, plain.output = plain.qkv.merged(), plain.output.merged()  # type: ignore[operator]
    monkeypatch.setattr(LowRankLinear, "weight", property(lambda layer: layer.base.weight))
    with pytest.raises(AssertionError):
        assert_within(across(changed), across(plain), 1e-12)
