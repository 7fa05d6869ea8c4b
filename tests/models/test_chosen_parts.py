"""The part that each choice becomes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

from clearhead import layers
from clearhead.layers.look import no_bias, no_turn
from clearhead.models import choices as kinds
from clearhead.models.build import ACTIVATIONS, build
from clearhead.models.config import DecoderConfig, Sight
from clearhead.ops import activation as definitions
from clearhead.ops import attend_fused, attend_visible
from clearhead.ops.attention_variants import attend_capped
from clearhead.ops.positions import sinusoids, sinusoids_in_halves
from clearhead.ops.rotary import linear_scaled, llama3_scaled, rotary_frequencies, yarn_attention_factor, yarn_scaled
from tests.models.choices_drawn import GATED, PLAIN
from tests.oracles.compare import assert_same, assert_within

BASE = DecoderConfig(vocab=11, layers=3, heads=4, kv_heads=2, width=12, head_width=6, context=9)


def model(**chosen: Any) -> Any:
    return build(replace(BASE, **chosen), seed=0)


@pytest.mark.parametrize("kind", [*PLAIN, *GATED], ids=lambda kind: type(kind).__name__)
def test_activations_and_gates(kind: kinds.Activation) -> None:
    formula = {
        "ReLU": definitions.relu, "ReLUSquared": definitions.relu_squared, "GELU": definitions.gelu,
        "GELUTanh": definitions.gelu_tanh, "SwiGLU": definitions.silu, "GEGLU": definitions.gelu,
        "GEGLUTanh": definitions.gelu_tanh,
    }[type(kind).__name__]  # fmt: skip
    part = model(activation=kind, feedforward_width=7, bias=True).blocks[0].feedforward
    x = torch.linspace(-9, 9, 55, dtype=torch.float64)
    assert_within(part.activation(x), formula(x), 1e-14)
    assert part.activation is ACTIVATIONS[type(kind)]
    assert type(part) is (layers.GatedFeedForward if kind in GATED else layers.FeedForward)
    assert (part.up.out_features, part.down.in_features, part.down.bias is not None) == (7, 7, True)


@pytest.mark.parametrize(
    ("norm", "part", "eps"),
    [
        (kinds.LayerNorm(eps=0.5), layers.LayerNorm, 0.5),
        (kinds.RMSNorm(eps=0.25), layers.RMSNorm, 0.25),
        (kinds.RMSNorm(eps=0.125, offset=True), layers.OffsetRMSNorm, 0.125),
    ],
)
def test_norms_reach_every_place(norm: kinds.Norm, part: type[torch.nn.Module], eps: float) -> None:
    made = model(norm=norm, qk_norm=True, embedding_norm=True, block=kinds.AroundNorm())
    found = [module for module in made.modules() if "Norm" in type(module).__name__]
    assert len(found) == 3 * (4 + 2) + 1 + 1
    assert {(type(module), module.eps) for module in found} == {(part, eps)}
    assert made.blocks[0].attention.q_norm.weight.shape == (6,)
    assert made.blocks[0].attention.q_norm is not made.blocks[0].attention.k_norm


def test_blocks() -> None:
    pre, post, around = (model(block=kind()) for kind in (kinds.PreNorm, kinds.PostNorm, kinds.AroundNorm))
    parallel, shared = model(block=kinds.Parallel()), model(block=kinds.Parallel(shared=True))
    assert [type(made.blocks[2]) for made in (pre, post, around, parallel, shared)] == [
        layers.SequentialBlock, layers.PostNormBlock, layers.SequentialBlock, layers.ParallelBlock, layers.ParallelBlock
    ]  # fmt: skip
    assert isinstance(pre.blocks[0].attention_after, torch.nn.Identity)
    assert isinstance(around.blocks[0].attention_after, layers.LayerNorm)
    assert around.blocks[0].attention_after is not around.blocks[0].feedforward_after
    assert parallel.blocks[0].attention_norm is not parallel.blocks[0].feedforward_norm
    assert shared.blocks[0].attention_norm is shared.blocks[0].feedforward_norm
    assert shared.blocks[0].attention_norm is not shared.blocks[1].attention_norm
    assert isinstance(post.norm, torch.nn.Identity)
    assert all(isinstance(made.norm, layers.LayerNorm) for made in (pre, around, parallel, shared))


def test_kernels() -> None:
    def kernel(**chosen: Any) -> Any:
        return model(**chosen).blocks[1].attention.attend

    assert kernel() is kernel(kernel=kinds.Auto()) is kernel(kernel=kinds.Fused()) is attend_fused
    assert kernel(kernel=kinds.Visible()) is attend_visible
    for chosen in (kinds.Auto(), kinds.Visible()):
        capped = kernel(softcap=30.0, kernel=chosen)
        assert isinstance(capped, partial)
        assert (capped.func, capped.keywords) == (attend_capped, {"cap": 30.0})
        assert isinstance(kernel(sinks=True, kernel=chosen), layers.SinkAttention)
    sinks = model(sinks=True)
    assert sinks.blocks[0].attention.attend is not sinks.blocks[1].attention.attend


def test_positions() -> None:
    for halves, formula in ((False, sinusoids), (True, sinusoids_in_halves)):
        part = model(positions=kinds.Sinusoidal(base=50.0, halves=halves)).positions
        assert (part.formula, part.base, part.width) == (formula, 50.0, 12)
    assert model(positions=kinds.Learned()).positions.table.shape == (9, 12)
    for kind in (kinds.NoPositions(), kinds.Rotary(), kinds.ALiBi()):
        assert isinstance(model(positions=kind).positions, layers.NoPositions)
    for kind in (kinds.NoPositions(), kinds.Learned(), kinds.Sinusoidal()):
        assert {(look.turn, look.bias) for look in model(positions=kind).looks} == {(no_turn, no_bias)}
    assert {(look.turn, look.bias) for look in model(positions=kinds.ALiBi()).looks} == {(no_turn, layers.Alibi(4))}


@pytest.mark.parametrize(
    ("scaling", "formula", "factor"),
    [
        (kinds.Unscaled(), lambda w: w, 1.0),
        (kinds.Linear(factor=4.0), lambda w: linear_scaled(w, 4.0), 1.0),
        (
            kinds.YaRN(factor=4.0, original_context=64, fast=16.0, slow=2.0),
            lambda w: yarn_scaled(w, 4.0, theta=500.0, original_context=64, fast=16.0, slow=2.0),
            yarn_attention_factor(4.0),
        ),
        (
            kinds.Llama3(factor=4.0, low=2.0, high=5.0, original_context=64),
            lambda w: llama3_scaled(w, 4.0, low=2.0, high=5.0, original_context=64),
            1.0,
        ),
    ],
)  # fmt: skip
def test_rotary_numbers_reach_the_turn(scaling: kinds.Scaling, formula: Any, factor: float) -> None:
    rotary = kinds.Rotary(theta=500.0, fraction=0.7, interleaved=True, scaling=scaling)
    (turn,) = {look.turn for look in model(positions=rotary).looks}
    assert (turn.turned, turn.theta, turn.interleaved, turn.attention_factor) == (4, 500.0, True, factor)
    w = rotary_frequencies(4, 500.0)
    assert_same(turn.scaled(w), formula(w))


def test_a_cycle_reaches_its_blocks_and_equal_sights_share_one_look() -> None:
    local, far = Sight(window=3), Sight(positions=kinds.Rotary(theta=1e6))
    made = build(replace(BASE, layers=5, positions=kinds.Rotary(), cycle=(local, local, far)), seed=0)
    assert [look.window for look in made.looks] == [3, 3, None, 3, 3]
    assert [look.turn.theta for look in made.looks] == [1e4, 1e4, 1e6, 1e4, 1e4]
    assert made.looks[0] is made.looks[4]
    assert {look.window for look in model(window=4).looks} == {4}


def test_switches() -> None:
    made = model(scale_embedding=True, attention_scale=0.25, embedding_norm=True)
    assert isinstance(made.embedding, layers.ScaledTokenEmbedding)
    assert type(model().embedding) is layers.TokenEmbedding
    assert {block.attention.scale for block in made.blocks} == {0.25}
    assert {block.attention.scale for block in model().blocks} == {None}
    assert isinstance(made.embedding_norm, layers.LayerNorm)
    assert isinstance(model().embedding_norm, torch.nn.Identity)
    assert isinstance(model().blocks[0].attention.q_norm, torch.nn.Identity)
