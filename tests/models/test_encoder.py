"""The encoder: every position sees every other, padding moves nothing, and what does not fit is said in one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.layers import Look
from clearhead.messages import UserError
from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.choices import Features, First, MaskedToken, Max, Mean, Pooled
from clearhead.models.config_encoders import EncoderConfig
from clearhead.models.encoder import Encoder
from clearhead.ops import Documents, Padding
from clearhead.tracing import Recorder
from tests.oracles.compare import assert_finite, assert_same, assert_within
from tests.oracles.given import Given

V, B, T, D, H, FF, SEGMENTS = 11, 2, 5, 12, 4, 14, 3
BASE = EncoderConfig(
    vocab=V, layers=2, heads=H, kv_heads=2, width=D, feedforward_width=FF, context=9, segments=SEGMENTS, head=Features()
)
POSITIONS = [kinds.Learned(), kinds.Sinusoidal(), kinds.Rotary(), kinds.ALiBi(), kinds.Relative(buckets=8, farthest=6)]
CONFIGS = {
    **{type(positions).__name__: replace(BASE, positions=positions) for positions in POSITIONS},
    "PostNorm": replace(BASE, block=kinds.PostNorm(), embedding_norm=True),
    "AroundNorm": replace(BASE, block=kinds.AroundNorm(), qk_norm=True),
    "Parallel": replace(BASE, block=kinds.Parallel(), sinks=True),
    "Visible": replace(BASE, kernel=kinds.Visible(), qkv_bias=True, bias=True),
    "Blockwise": replace(BASE, kernel=kinds.Blockwise(block=2), positions=kinds.Rotary()),
}
POOLED = [Pooled(pool, more, unit=more) for pool in (First(), Mean(), Max()) for more in (False, True)]
HEADS = [Features(), MaskedToken(), *POOLED]
RIGHT, LEFT = torch.arange(T) < torch.tensor([[T], [3]]), torch.arange(T) >= torch.tensor([[2], [0]])
BETWEEN = torch.tensor([[True, False, True, True, False], [True, True, False, True, True]])


def model_of(config: EncoderConfig) -> Encoder:
    """A float64 model with weights large enough that attention is far from uniform."""
    model = build(config, seed=0).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model


def ids(length: int = T) -> Tensor:
    return torch.randint(V, (B, length))


# Both ways


def check_gradients(model: Encoder, real: Tensor | None = None) -> None:
    """The gradient of every real position to every real position is there, before and after; to padding it is 0."""
    leaf = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    features = model(ids(), real=real, tap=Given({"input": leaf}, ""))
    there = torch.ones(B, T, dtype=torch.bool) if real is None else real
    weights = torch.randn(D, dtype=torch.float64)
    for t in range(T):
        (gradient,) = torch.autograd.grad((features[:, t] @ weights).sum(), leaf, retain_graph=True)
        assert ((gradient != 0).any(-1) == there)[there[:, t]].all()


@pytest.mark.parametrize("real", [None, RIGHT, LEFT, BETWEEN], ids=["no padding", "right", "left", "between"])
@pytest.mark.parametrize("name", CONFIGS)
def test_every_position_depends_on_every_real_one_and_on_no_padding(name: str, real: Tensor | None) -> None:
    check_gradients(model_of(CONFIGS[name]), real)


def test_an_encoder_that_looks_back_only_is_caught() -> None:
    model = model_of(BASE)
    model.looks = (Look(), Look())
    with pytest.raises(AssertionError):
        check_gradients(model)


def test_the_model_is_its_equation() -> None:
    """norm(block₂(block₁(E[ids] + P + G))), with real positions counted from 0."""
    model, source, segments = model_of(BASE), ids(), torch.randint(SEGMENTS, (B, T))
    x = model.embedding.weight[source] + model.positions.table[(LEFT.cumsum(-1) - 1).clamp(min=0)]
    x = x + model.segments.table[segments]
    for block in model.blocks:
        x = block(x, Padding(LEFT))
    assert_within(model(source, segments=segments, real=LEFT), model.norm(x), 1e-12)


# Padding


def with_padding(source: Tensor, left: int, right: int) -> tuple[Tensor, Tensor]:
    """The same tokens between some random ones, and which are real."""
    padded = torch.cat([ids(left), source, ids(right)], 1)
    real = torch.zeros_like(padded, dtype=torch.bool)
    real[:, left : left + source.shape[1]] = True
    return padded, real


Forward = Callable[[Tensor, Tensor], Tensor]


def check_padding(forward: Forward, *, pooled: bool = False) -> None:
    """Neither what stands at padding, nor how much of it on which side, moves what is real."""
    alone = forward(source := ids(), torch.ones(B, T, dtype=torch.bool))
    for left, right in ((0, 0), (0, 4), (0, 1), (0, 1), (1, 0), (3, 0), (3, 0), (2, 2)):
        found = forward(*with_padding(source, left, right))
        assert_within(found if pooled else found[:, left : left + T], alone, 1e-12)


@pytest.mark.parametrize("name", CONFIGS)
def test_padding_moves_nothing_that_is_real(name: str) -> None:
    model = model_of(CONFIGS[name])
    check_padding(lambda source, real: model(source, real=real))


@pytest.mark.parametrize("head", POOLED, ids=str)
def test_padding_moves_no_pooled_vector(head: Pooled) -> None:
    model = model_of(replace(BASE, head=head))
    check_padding(lambda source, real: model(source, real=real), pooled=True)


@pytest.mark.parametrize("fault", ["seen", "positions of places", "reversed"])
def test_padding_that_moves_something_is_caught(fault: str) -> None:
    model = model_of(BASE)

    def forward(source: Tensor, real: Tensor) -> Tensor:
        if fault == "positions of places":
            return model(source, visible=Padding(real))
        return model(source) if fault == "seen" else model(source, real=~real)

    with pytest.raises(AssertionError):
        check_padding(forward)


@pytest.mark.parametrize("pool", [Mean(), Max(), First()])
def test_a_pool_that_counts_padding_in_is_caught(pool: Any) -> None:
    model = model_of(replace(BASE, head=Pooled(pool)))
    sound = model.head.pool
    model.head.pool = lambda x, real: sound(x, torch.ones_like(real))
    with pytest.raises(AssertionError):
        check_padding(lambda source, real: model(source, real=real), pooled=True)


@pytest.mark.parametrize("head", HEADS, ids=str)
def test_no_number_at_padding_does_not_leak(head: Any) -> None:
    """A vector that is no number stands at padding before the head; a row without a real token gives finite outputs."""
    model = model_of(replace(BASE, head=head))
    for real in (LEFT, RIGHT):
        spoilt = Given({"norm": torch.randn(B, T, D).double().masked_fill(~real[..., None], torch.nan)}, "")
        made = model(ids(), real=real, tap=spoilt)
        assert_finite(made if isinstance(head, Pooled) else made[real])
    nobody = RIGHT.clone()
    nobody[1] = False
    assert_finite(model(ids(), real=nobody))


def test_integers_may_say_what_is_real() -> None:
    """As tokenizers give it."""
    model, source = model_of(BASE), ids()
    assert_same(model(source, real=LEFT.long()), model(source, real=LEFT))


def test_documents_in_one_row_do_not_see_each_other() -> None:
    model, source = model_of(replace(BASE, positions=kinds.Rotary())), ids()
    documents = torch.tensor([[0, 0, 1, 1, 1], [0, 0, 0, 0, 1]])
    packed = model(source, visible=Documents(documents, documents))
    assert_within(packed[:1, :2], model(source[:1, :2]), 1e-12)
    assert_within(packed[:1, 2:], model(source[:1, 2:]), 1e-12)
    assert_within(packed[1:, :4], model(source[1:, :4]), 1e-12)


# Segments


def check_segments(model: Encoder) -> None:
    """A token's segment adds its row of the table, nothing more; all are of segment 0 if none are given."""
    source, segments, recorder = ids(), torch.tensor([[0, 0, 1, 2, 1], [2, 2, 2, 0, 0]]), Recorder()
    plain = model(source, tap=recorder)
    before = recorder.tensors["input"]
    told = model(source, segments=segments, tap=recorder)
    table = model.segments.table
    assert_within(recorder.tensors["input"], before + table[segments] - table[0], 1e-12)
    assert bool((told != plain).any(-1).all())
    assert_same(model(source, segments=torch.zeros_like(segments)), plain)


def test_segments_change_the_output() -> None:
    check_segments(model_of(BASE))


@pytest.mark.parametrize("fault", ["none is nothing", "ignored"])
def test_faulty_segments_are_caught(fault: str) -> None:
    model = model_of(BASE)
    sound = model.segments.forward
    if fault == "ignored":
        model.segments.forward = lambda x, segments, tap: sound(x, None, tap=tap)
    else:
        model.segments.forward = lambda x, segments, tap: x if segments is None else sound(x, segments, tap=tap)
    with pytest.raises(AssertionError):
        check_segments(model)


def test_segments_for_a_model_without_are_one_line() -> None:
    model = model_of(replace(BASE, segments=0))
    model(ids())
    with pytest.raises(UserError, match=r"^this model has no segments; [^\n]*EncoderConfig\(segments=2\)$"):
        model(ids(), segments=torch.zeros(B, T, dtype=torch.long))
    with pytest.raises(IndexError):
        model_of(BASE)(ids(), segments=torch.full((B, T), SEGMENTS))


# Heads


@pytest.mark.parametrize("head", HEADS, ids=str)
def test_the_shape_that_each_head_makes(head: Any) -> None:
    model = model_of(replace(BASE, head=head))
    shape = {Features: (B, T, D), MaskedToken: (B, T, V), Pooled: (B, D)}[type(head)]
    assert model(ids(), real=RIGHT).shape == shape
    assert build(replace(BASE, head=head), device="meta")(ids().to("meta")).shape == shape


def check_masked_head(model: Encoder) -> None:
    """logits = W_V N(φ(W x + b)) + b_V."""
    recorder = Recorder()
    logits = model(ids(), tap=recorder)
    head, features = model.head, recorder.tensors["norm"]
    transformed = head.norm(nn.functional.gelu(features @ head.transform.weight.T + head.transform.bias))
    assert_within(recorder.tensors["head.transformed"], transformed, 1e-12)
    assert_within(logits, transformed @ model.embedding.weight.T + head.output.bias, 1e-12)


def test_masked_tokens_are_their_equation_and_share_the_embedding() -> None:
    config = replace(BASE, head=MaskedToken(), head_bias=True)
    model = model_of(config)
    check_masked_head(model)
    assert model.head.output.weight is model.embedding.weight
    with pytest.raises(AssertionError):
        check_masked_head(model_of(replace(config, tied=False)))


def test_a_masked_head_that_forgets_its_norm_is_caught() -> None:
    model = model_of(replace(BASE, head=MaskedToken(), head_bias=True))
    model.head.register_forward_pre_hook(lambda head, _: setattr(head, "activation", nn.functional.relu))
    with pytest.raises(AssertionError):
        check_masked_head(model)


def test_the_dense_layer_after_pooling_is_a_layer_and_tanh() -> None:
    model, recorder = model_of(replace(BASE, head=Pooled(Mean(), dense=True))), Recorder()
    made, dense = model(ids(), real=LEFT, tap=recorder), model.head.after[0]
    pooled = torch.stack([recorder.tensors["norm"][row, LEFT[row]].mean(0) for row in range(B)])
    assert_within(recorder.tensors["head.pooled"], pooled, 1e-12)
    assert_within(made, torch.tanh(pooled @ dense.weight.T + dense.bias), 1e-12)


# Types, devices, and what does not fit


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_forward_in_each_type_is_near_that_in_float64(dtype: torch.dtype, name: str) -> None:
    model, source = build(CONFIGS[name], seed=0).eval(), ids()
    features = model.to(dtype)(source, real=LEFT)
    assert features.dtype == dtype
    expected = model.double()(source, real=LEFT)[LEFT]
    assert (features[LEFT].double() - expected).abs().max() <= (2e-6 if dtype == torch.float32 else 6e-2)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_forward_on_meta_runs(name: str) -> None:
    model = build(CONFIGS[name], device="meta")
    features = model(ids().to("meta"), real=LEFT.to("meta"), segments=torch.zeros(B, T).long().to("meta"))
    assert (features.device.type, tuple(features.shape)) == ("meta", (B, T, D))


@pytest.mark.parametrize("wrong", [V, -1, 99])
def test_an_id_outside_the_vocabulary_is_one_line_with_both_numbers(wrong: int) -> None:
    with pytest.raises(UserError, match=rf"^token id {wrong} is outside the vocabulary of {V};[^\n]*$"):
        build(BASE)(torch.tensor([[0, wrong]]))


def test_a_length_that_does_not_fit_is_one_line_with_both_numbers() -> None:
    model = build(BASE)
    model(ids(9))
    with pytest.raises(UserError, match=r"^10 positions do not fit the model's context of 9;[^\n]*$"):
        model(ids(10))
    with pytest.raises(UserError, match=r"^there are no tokens"):
        model(ids(0))


def test_evaluation_drops_nothing_and_training_does() -> None:
    dropping, without, source = build(replace(BASE, dropout=0.3), seed=0), build(BASE, seed=0), ids()
    assert not dropping.train()(source).equal(dropping(source))
    assert_same(dropping.eval()(source), without.train()(source))
