"""What `build` makes: initial weights, tying, separate blocks, seeds, and the names in the state dict."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.models import choices as kinds
from clearhead.models.build import ACTIVATIONS, build
from clearhead.models.config import DecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.ops import gelu, gelu_tanh, relu
from clearhead.training.sizing import LARGE, SMALL
from tests.oracles.compare import assert_same, assert_within

CONFIG = DecoderConfig(vocab=11, layers=3, heads=4, kv_heads=2, width=12, context=9)
ALL_BIASES = replace(CONFIG, qkv_bias=True, bias=True, head_bias=True, tied=False)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("vocab", [65, 256, 5000])
def test_the_first_loss_is_that_of_knowing_nothing(size: object, vocab: int, tied: bool) -> None:
    """Within 3% of ln V at every size that is picked for users."""
    assert isinstance(size, type(SMALL))
    config = replace(size.config(), vocab=vocab, tied=tied)
    ids = torch.randint(vocab, (4, config.context + 1))
    with torch.no_grad():
        logits = build(config, seed=0)(ids[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).item()
    assert abs(loss / math.log(vocab) - 1) < 0.03


def test_a_model_with_wide_weights_misses_that_loss() -> None:
    model = build(SMALL.config(), seed=0)
    nn.init.normal_(model.head.weight, std=0.5)
    ids = torch.randint(256, (4, 65))
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).item()
    assert abs(loss / math.log(256) - 1) > 0.03


def spread(*tensors: Tensor) -> tuple[float, float]:
    """The standard deviation of all numbers, and five times the uncertainty of it."""
    numbers = torch.cat([tensor.detach().flatten() for tensor in tensors])
    return numbers.std().item(), 5 / math.sqrt(2 * numbers.numel())


@pytest.mark.parametrize("layers", [1, 2, 8])
def test_initial_weights_are_gpt_2_s(layers: int) -> None:
    """Normal with 0.02; the projections that write to the residual stream narrower by 1/√(2L); biases 0, gains 1."""
    model = build(replace(ALL_BIASES, layers=layers, width=64, context=64, vocab=300), seed=0)
    narrow, wide, vectors = {}, {}, {}
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            vectors[name] = parameter
        elif name.endswith(("attention.output.weight", "feedforward.down.weight")):
            narrow[name] = parameter
        else:
            wide[name] = parameter
    assert len(narrow) == 2 * layers
    assert len(wide) == 3 + 2 * layers
    for group, expected in ((narrow, 0.02 / math.sqrt(2 * layers)), (wide, 0.02)):
        for name, parameter in group.items():
            found, uncertainty = spread(parameter)
            assert abs(found / expected - 1) < uncertainty, name
            assert abs(parameter.mean().item()) < 5 * expected / math.sqrt(parameter.numel()), name
    for name, parameter in vectors.items():
        assert_same(parameter.detach(), torch.full_like(parameter, "norm.weight" in name).detach())


def test_a_tied_head_shares_the_embedding_s_storage() -> None:
    model = build(replace(CONFIG, tied=True), seed=0)
    assert model.head.weight is model.embedding.weight
    with torch.no_grad():
        model.embedding.weight[3, 4] = 7.0
    assert model.head.weight[3, 4].item() == 7.0
    names = [name for name, _ in model.named_parameters()]
    assert "embedding.weight" in names
    assert "head.weight" not in names


def test_a_tied_head_stays_tied_in_float64_and_on_meta() -> None:
    for model in (build(CONFIG, seed=0).double(), build(CONFIG, device="meta")):
        assert model.head.weight is model.embedding.weight


def test_an_untied_head_is_its_own() -> None:
    model = build(replace(CONFIG, tied=False), seed=0)
    assert model.head.weight.data_ptr() != model.embedding.weight.data_ptr()
    assert not model.head.weight.equal(model.embedding.weight)


def check_separate(model: Decoder) -> None:
    """No two parameters of the blocks share storage, and no two of the same name are equal by accident."""
    named = [dict(block.named_parameters()) for block in model.blocks]
    places = [parameter.data_ptr() for block in model.blocks for parameter in block.parameters()]
    assert len(places) == sum(len(block) for block in named)
    assert len(set(places)) == len(places)
    assert not named[0]["attention.qkv.weight"].equal(named[1]["attention.qkv.weight"])


def test_each_block_has_its_own_weights() -> None:
    model = build(CONFIG, seed=0)
    assert len(model.blocks) == 3
    check_separate(model)


def test_one_block_used_three_times_is_caught() -> None:
    model = build(CONFIG, seed=0)
    model.blocks = nn.ModuleList([model.blocks[0]] * 3)
    with pytest.raises(AssertionError):
        check_separate(model)


def test_a_seed_gives_the_same_weights_and_leaves_the_global_state() -> None:
    before = torch.get_rng_state()
    first, second, other = build(CONFIG, seed=3), build(CONFIG, seed=3), build(CONFIG, seed=4)
    assert torch.get_rng_state().equal(before)
    torch.manual_seed(12345)
    later = build(CONFIG, seed=3)
    for name, parameter in first.named_parameters():
        assert_same(parameter.detach(), second.get_parameter(name).detach())
        assert_same(parameter.detach(), later.get_parameter(name).detach())
    assert not first.embedding.weight.equal(other.embedding.weight)


def test_without_a_seed_the_global_state_decides() -> None:
    torch.manual_seed(1)
    first, second = build(CONFIG), build(CONFIG)
    torch.manual_seed(1)
    again = build(CONFIG)
    assert not first.embedding.weight.equal(second.embedding.weight)
    assert_same(first.embedding.weight.detach(), again.embedding.weight.detach())


def test_the_kernel_does_not_change_the_initial_weights() -> None:
    visible, fused = (build(replace(CONFIG, kernel=k), seed=0) for k in (kinds.Visible(), kinds.Fused()))
    assert list(visible.state_dict()) == list(fused.state_dict())
    for name, value in visible.state_dict().items():
        assert_same(value, fused.state_dict()[name])


@pytest.mark.parametrize("kernel", [kinds.Visible(), kinds.Fused()])
@pytest.mark.parametrize("config", [CONFIG, ALL_BIASES], ids=["as given", "all biases, untied"])
def test_every_parameter_of_the_model_gets_a_gradient(config: DecoderConfig, kernel: kinds.Kernel) -> None:
    model = build(replace(config, kernel=kernel), seed=0)
    ids = torch.randint(11, (8, 9))
    F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).backward()
    last = model.positions.table.grad
    assert last is not None
    assert last[:-1].ne(0).any(-1).all()
    without = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert without == []


def test_the_names_in_the_state_dict_are_pinned() -> None:
    """A run saved today must load tomorrow: names change with a new format version or not at all."""
    block = [
        "attention_norm.weight",
        "attention_norm.bias",
        "attention.qkv.weight",
        "attention.output.weight",
        "feedforward_norm.weight",
        "feedforward_norm.bias",
        "feedforward.up.weight",
        "feedforward.down.weight",
    ]
    names = ["embedding.weight", "positions.table", *(f"blocks.0.{name}" for name in block), "norm.weight", "norm.bias"]
    assert list(build(replace(CONFIG, layers=1), seed=0).state_dict()) == [*names, "head.weight"]
    with_biases = set(build(replace(ALL_BIASES, layers=1), seed=0).state_dict())
    assert with_biases - {*names, "head.weight"} == {
        "blocks.0.attention.qkv.bias",
        "blocks.0.attention.output.bias",
        "blocks.0.feedforward.up.bias",
        "blocks.0.feedforward.down.bias",
        "head.bias",
    }


def test_the_shapes_in_the_state_dict_are_those_of_the_configuration() -> None:
    config = DecoderConfig(
        vocab=11, layers=1, heads=4, kv_heads=2, width=10, head_width=6, feedforward_width=14, context=9
    )
    shapes = {name: tuple(value.shape) for name, value in build(config, seed=0).state_dict().items()}
    assert shapes["embedding.weight"] == shapes["head.weight"] == (11, 10)
    assert shapes["positions.table"] == (9, 10)
    assert shapes["blocks.0.attention.qkv.weight"] == ((4 + 2 + 2) * 6, 10)
    assert shapes["blocks.0.attention.output.weight"] == (10, 4 * 6)
    assert shapes["blocks.0.feedforward.up.weight"] == (14, 10)
    assert shapes["blocks.0.feedforward.down.weight"] == (10, 14)
    assert shapes["norm.weight"] == (10,)


@pytest.mark.parametrize(("kind", "definition"), [(kinds.ReLU, relu), (kinds.GELU, gelu), (kinds.GELUTanh, gelu_tanh)])
def test_the_activations_of_a_model_are_the_definitions(kind: type[kinds.Activation], definition: object) -> None:
    assert callable(definition)
    x = torch.linspace(-6, 6, 101, dtype=torch.float64)
    assert_within(ACTIVATIONS[kind](x), definition(x), 1e-15)
    model = build(replace(CONFIG, activation=kind()), seed=0)
    assert {block.feedforward.activation for block in model.blocks} == {ACTIVATIONS[kind]}


def test_a_norm_s_choices_reach_every_norm() -> None:
    model = build(replace(CONFIG, norm=kinds.LayerNorm(eps=0.25, bias=False)), seed=0)
    norms = [module for module in model.modules() if type(module).__name__ == "LayerNorm"]
    assert len(norms) == 2 * 3 + 1
    assert {(norm.eps, norm.bias) for norm in norms} == {(0.25, None)}


def test_dropout_reaches_every_place_of_the_notes() -> None:
    model = build(replace(CONFIG, dropout=0.25), seed=0)
    assert model.dropout.p == 0.25
    for block in model.blocks:
        places = (block.attention.weight_dropout, block.attention.output_dropout.p, block.feedforward.dropout.p)
        assert places == (0.25, 0.25, 0.25)


def test_a_fresh_model_is_float32_and_in_training_mode() -> None:
    model = build(CONFIG, seed=0)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert all(module.training for module in model.modules())
