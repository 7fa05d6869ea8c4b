"""The encoder-decoder: the target asks all of the real source and its own past, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from clearhead.layers import CrossStore
from clearhead.messages import UserError
from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops import EVERYTHING
from clearhead.tracing import Recorder
from tests.oracles.compare import assert_finite, assert_same, assert_within
from tests.oracles.given import Given

V, S_V, B, T, M, D, H, FF, WRITES, READS = 11, 13, 2, 4, 5, 12, 4, 14, 3, 2
BASE = EncoderDecoderConfig(
    vocab=V,
    layers=WRITES,
    encoder_layers=READS,
    heads=H,
    kv_heads=2,
    width=D,
    feedforward_width=FF,
    context=7,
    source_context=9,
)
POSITIONS = [kinds.Learned(), kinds.Sinusoidal(), kinds.Rotary(), kinds.ALiBi(), kinds.Relative(buckets=8, farthest=6)]
CONFIGS = {
    **{type(positions).__name__: replace(BASE, positions=positions) for positions in POSITIONS},
    "PostNorm": replace(BASE, block=kinds.PostNorm(), embedding_norm=True, scale_embedding=True),
    "AroundNorm": replace(BASE, block=kinds.AroundNorm(), qk_norm=True, sinks=True),
    "Visible": replace(BASE, kernel=kinds.Visible(), qkv_bias=True, bias=True, head_bias=True, tied=False),
    "Blockwise": replace(BASE, kernel=kinds.Blockwise(block=2), positions=kinds.Rotary()),
    "two vocabularies": replace(BASE, source_vocab=S_V),
}
RIGHT, LEFT = torch.arange(M) < torch.tensor([[M], [3]]), torch.arange(M) >= torch.tensor([[2], [0]])


def model_of(config: EncoderDecoderConfig) -> EncoderDecoder:
    """A float64 model with weights large enough that attention is far from uniform."""
    model = build(config, seed=0).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model


def ids(length: int) -> Tensor:
    return torch.randint(V, (B, length))


# Who depends on whom


def check_gradients(model: EncoderDecoder, real: Tensor | None) -> None:
    """Target position t depends on targets up to t and on every real source position."""
    source = torch.randn(B, M, D, dtype=torch.float64, requires_grad=True)
    target = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    tap = Given({"encoder.input": source, "decoder.input": target}, "")
    logits, weights = model(ids(M), ids(T), source_real=real, tap=tap), torch.randn(V, dtype=torch.float64)
    there = torch.ones(B, M, dtype=torch.bool) if real is None else real
    for t in range(T):
        inputs = [source, target]
        gradients = torch.autograd.grad(
            (logits[:, t] @ weights).sum(), inputs, retain_graph=True, materialize_grads=True
        )
        assert ((gradients[0] != 0).any(-1) == there).all()
        assert (gradients[1] != 0).any(-1).tolist() == [[s <= t for s in range(T)]] * B


@pytest.mark.parametrize("real", [None, RIGHT, LEFT], ids=["no padding", "right", "left"])
@pytest.mark.parametrize("name", CONFIGS)
def test_every_output_depends_on_the_real_source_and_on_its_past(name: str, real: Tensor | None) -> None:
    check_gradients(model_of(CONFIGS[name]), real)


def padding_seen(model: EncoderDecoder) -> None:
    remember = model.remember
    model.remember = lambda source, *, real, tap: CrossStore(
        [memory._replace(visible=EVERYTHING) for memory in remember(source, real=real, tap=tap).memories]
    )


def source_seen_by_the_encoder_only(model: EncoderDecoder) -> None:
    for block in model.decoder.blocks:
        block.cross_attention.across = lambda x, memory, tap: 0.0 * x


def no_future_of_the_source(model: EncoderDecoder) -> None:
    model.encoder.looks = model.decoder.looks[:READS]


def future_of_the_target(model: EncoderDecoder) -> None:
    model.decoder.looks = (model.encoder.looks[0],) * WRITES


FAULTS = [padding_seen, source_seen_by_the_encoder_only, no_future_of_the_source, future_of_the_target]


@pytest.mark.parametrize("fault", FAULTS)
def test_who_depends_on_somebody_else_is_caught(fault: Callable[[EncoderDecoder], None]) -> None:
    model = model_of(BASE)
    # Every target asks every position of the memory, so an encoder that looks back still passes all of its source on.
    check = check_encoder_alone if fault is no_future_of_the_source else check_gradients
    check(model, RIGHT)
    fault(model)
    with pytest.raises(AssertionError):
        check(model, RIGHT)


def check_encoder_alone(model: EncoderDecoder, real: Tensor) -> None:
    """The memory of every real source position depends on every other."""
    source = torch.randn(B, M, D, dtype=torch.float64, requires_grad=True)
    memory = model.remember(ids(M), real=real, tap=Given({"encoder.input": source}, "")).memories[0]
    for position in range(M):
        (gradient,) = torch.autograd.grad(memory.k[:, :, position].sum(), source, retain_graph=True)
        assert ((gradient != 0).any(-1) == real)[real[:, position]].all()


# Padding


Forward = Callable[[Tensor, Tensor, Tensor], Tensor]


def check_padding(forward: Forward) -> None:
    """Neither what stands at the source's padding, nor how much of it on which side, moves a logit."""
    source, target = ids(M), ids(T)
    alone = forward(source, target, torch.ones(B, M, dtype=torch.bool))
    for left, right in ((0, 4), (0, 1), (0, 1), (1, 0), (3, 0), (3, 0), (2, 2)):
        padded = torch.cat([ids(left), source, ids(right)], 1)
        real = torch.zeros_like(padded, dtype=torch.bool)
        real[:, left : left + M] = True
        assert_within(forward(padded, target, real), alone, 1e-11)


@pytest.mark.parametrize("name", CONFIGS)
def test_padding_of_the_source_moves_nothing(name: str) -> None:
    model = model_of(CONFIGS[name])
    check_padding(lambda source, target, real: model(source, target, source_real=real))


@pytest.mark.parametrize("fault", ["forgotten", "by the decoder", "by the encoder"])
def test_padding_that_moves_something_is_caught(fault: str) -> None:
    model = model_of(BASE)

    def forward(source: Tensor, target: Tensor, real: Tensor) -> Tensor:
        if fault == "forgotten":
            return model(source, target)
        if fault == "by the encoder":
            memories = model.remember(source).memories
            visible = model.remember(source, real=real).memories[0].visible
            return model.decoder(target, store=CrossStore([each._replace(visible=visible) for each in memories]))
        padding_seen(model)
        return model(source, target, source_real=real)

    with pytest.raises(AssertionError):
        check_padding(forward)


@pytest.mark.parametrize("name", CONFIGS)
def test_padding_of_the_target_moves_nothing(name: str) -> None:
    model, source, target = model_of(CONFIGS[name]), ids(M), ids(T)
    alone = model(source, target)
    for left, right in ((0, 2), (1, 0), (3, 0)):
        padded = torch.cat([ids(left), target, ids(right)], 1)
        real = torch.zeros_like(padded, dtype=torch.bool)
        real[:, left : left + T] = True
        assert_within(model(source, padded, target_real=real)[:, left : left + T], alone, 1e-11)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_source_without_a_real_token_gives_numbers(name: str) -> None:
    model, real = model_of(CONFIGS[name]), RIGHT.clone()
    real[1] = False
    logits = model(ids(M), ids(T), source_real=real)
    logits.logsumexp(-1).sum().backward()
    assert_finite(logits, *(parameter.grad for parameter in model.parameters() if parameter.grad is not None))


def test_a_row_alone_is_the_row_in_a_batch() -> None:
    for config in CONFIGS.values():
        model, source, target = model_of(config), ids(M), ids(T)
        together = model(source, target, source_real=RIGHT)
        assert_within(model(source[1:, :3], target[1:]), together[1:], 1e-11)
        assert_within(model(source[:1], target[:1]), together[:1], 1e-11)


# What it is made of


def test_the_model_is_its_two_halves() -> None:
    model, source, target, recorder = model_of(BASE), ids(M), ids(T), Recorder()
    logits = model(source, target, source_real=LEFT, tap=recorder)
    assert_same(logits, model.decoder(target, store=model.remember(source, real=LEFT)))
    assert_same(recorder.tensors["encoder.norm"], model.encoder(source, real=LEFT).detach())
    assert recorder.tensors["decoder.blocks.2.cross_attention.k"].shape == (B, 2, M, D // H)
    assert recorder.tensors["decoder.blocks.2.cross_attention.mixed"].shape == (B, H, T, D // H)
    assert recorder.tensors["encoder.blocks.1.output"].shape == (B, M, D)
    assert (len(model.encoder.blocks), len(model.decoder.blocks)) == (READS, WRITES)


def test_what_is_shared_and_what_is_not() -> None:
    """One embedding for source, target and head; two if the source has its own vocabulary; the head's own if not tied."""
    one, two, free = (model_of(CONFIGS[name]) for name in ("Learned", "two vocabularies", "Visible"))
    assert one.encoder.embedding is one.decoder.embedding
    assert one.decoder.head.weight is one.decoder.embedding.weight
    assert two.encoder.embedding.weight.shape == (S_V, D)
    assert two.decoder.embedding.weight.shape == two.decoder.head.weight.shape == (V, D)
    assert free.decoder.head.weight is not free.decoder.embedding.weight
    assert (len(one.encoder.positions.table), len(one.decoder.positions.table)) == (9, 7)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_weight_is_trained(name: str) -> None:
    model = model_of(CONFIGS[name])
    model(ids(9), ids(7), source_real=None).square().sum().backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert bool((parameter.grad != 0).any()), parameter_name


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_forward_in_each_type_is_near_that_in_float64(dtype: torch.dtype, name: str) -> None:
    model, source, target = build(CONFIGS[name], seed=0).eval(), ids(M), ids(T)
    logits = model.to(dtype)(source, target, source_real=LEFT)
    assert logits.dtype == dtype
    expected = model.double()(source, target, source_real=LEFT)
    assert (logits.double() - expected).abs().max() <= (2e-6 if dtype == torch.float32 else 3e-2)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_forward_on_meta_runs(name: str) -> None:
    model = build(CONFIGS[name], device="meta")
    logits = model(ids(M).to("meta"), ids(T).to("meta"), source_real=LEFT.to("meta"))
    assert (logits.device.type, tuple(logits.shape)) == ("meta", (B, T, V))


# What does not fit


def test_what_does_not_fit_is_one_line_with_both_numbers() -> None:
    model = build(CONFIGS["two vocabularies"])
    assert model(ids(9), ids(7)).shape == (B, 7, V)
    with pytest.raises(UserError, match=r"^the source needs 10 positions, .* reads 9;[^\n]* --model.source_context$"):
        model(ids(10), ids(7))
    with pytest.raises(UserError, match=r"^8 positions do not fit the model's context of 7;[^\n]*$"):
        model(ids(9), ids(8))
    model(torch.full((B, M), S_V - 1), ids(T))
    with pytest.raises(UserError, match=rf"^token id {S_V} is outside the vocabulary of {S_V};[^\n]*$"):
        model(torch.full((B, M), S_V), ids(T))
    with pytest.raises(UserError, match=rf"^token id {V} is outside the vocabulary of {V};[^\n]*$"):
        model(ids(M), torch.full((B, T), V))


def test_dropout_is_for_training() -> None:
    dropping, source, target = build(replace(BASE, dropout=0.3), seed=0), ids(M), ids(T)
    assert not dropping.train()(source, target).equal(dropping(source, target))
    assert_same(dropping.eval()(source, target), build(BASE, seed=0).train()(source, target))
