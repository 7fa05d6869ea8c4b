"""What encoders and encoder-decoders cost: against the built model, PyTorch's counter, and the tensors really kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from clearhead.generation.stores import GrowingStore
from clearhead.layers.cross_block import PostNormCrossBlock, SequentialCrossBlock
from clearhead.layers.segments import SegmentEmbedding
from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig, ModelConfig, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.cost import cache_elements, flops_per_token, generation_memory, parameters, training_memory
from clearhead.training.optimizer import adamw
from tests.models import test_cost
from tests.models.choices_drawn import models
from tests.models.test_cost import EVERY, KINDS, kept_bytes, large

ENCODER = EncoderConfig(vocab=19, layers=3, heads=4, width=12, context=7)
PAIR = EncoderDecoderConfig(
    vocab=19, layers=3, encoder_layers=2, heads=4, width=12, feedforward_width=17, context=7, source_context=5
)
HEADS = [kinds.MaskedToken(), kinds.Features(), kinds.Pooled(), kinds.Pooled(kinds.Mean(), dense=True)]
BIASED = {"bias": True, "qkv_bias": True, "head_bias": True}
ENCODERS = {
    "base": ENCODER,
    "untied": replace(ENCODER, tied=False, head_bias=True),
    "untied, features": replace(ENCODER, tied=False, head=kinds.Features()),
    "pooled": replace(ENCODER, head=kinds.Pooled(kinds.Max())),
    "pooled, dense": replace(ENCODER, head=kinds.Pooled(dense=True)),
    "BERT": replace(ENCODER, block=kinds.PostNorm(), embedding_norm=True, segments=2, **BIASED),
    "T5": replace(ENCODER, positions=kinds.Relative(buckets=8), norm=kinds.RMSNorm(), activation=kinds.GEGLUTanh()),
    "grouped": replace(ENCODER, kv_heads=2, head_width=5, qk_norm=True, segments=3),
    "sinks": replace(ENCODER, sinks=True, block=kinds.Parallel()),
}
PAIRS = {
    "base": PAIR,
    "as deep": replace(PAIR, encoder_layers=None, source_context=None),
    "two vocabularies": replace(PAIR, source_vocab=13),
    "Transformer": replace(PAIR, block=kinds.PostNorm(), positions=kinds.Sinusoidal(), scale_embedding=True, **BIASED),
    "T5": replace(
        PAIR, positions=kinds.Relative(buckets=8), norm=kinds.RMSNorm(), activation=kinds.GEGLUTanh(), tied=False
    ),
    "grouped": replace(PAIR, kv_heads=2, head_width=5, qk_norm=True, qkv_bias=True),
    "norms around": replace(PAIR, block=kinds.AroundNorm(), norm=kinds.RMSNorm(), qk_norm=True, embedding_norm=True),
    "sinks": replace(PAIR, sinks=True, bias=True),
}
MODELS: dict[str, EncoderConfig | EncoderDecoderConfig] = {
    **{f"encoder, {name}": config for name, config in ENCODERS.items()},
    **{f"pair, {name}": config for name, config in PAIRS.items()},
}


def counted(model: nn.Module) -> dict[str, int]:
    """Numbers of the built model by kind of part."""
    found = test_cost.counted(model)
    across = [
        block.cross_attention
        for block in model.modules()
        if isinstance(block, SequentialCrossBlock | PostNormCrossBlock)
    ]
    if across:
        norms = sum(p.numel() for part in across for p in [*part.q_norm.parameters(), *part.k_norm.parameters()])
        found["cross_attention"] = sum(p.numel() for part in across for p in part.parameters()) - norms
        found["attention"] -= found["cross_attention"]
        return found
    found["segments"] = sum(
        p.numel() for m in model.modules() if isinstance(m, SegmentEmbedding) for p in m.parameters()
    )
    of_head_norm = sum(p.numel() for m in model.head.modules() if isinstance(m, KINDS["norms"]) for p in m.parameters())
    found["norms"] -= of_head_norm
    found["head"] += of_head_norm - found["segments"]
    return found


@pytest.mark.parametrize("config", MODELS.values(), ids=MODELS)
def test_parameters_are_those_of_the_built_model_part_by_part(config: ModelConfig) -> None:
    assert parameters(config) == counted(build(config, device="meta"))


@pytest.mark.parametrize("biased", [False, True])
def test_parameters_are_those_of_the_built_model_for_every_choice(biased: bool) -> None:
    """320 encoders, some of them with other heads, and 192 encoder-decoders, with every switch off, and on."""
    switches = {"bias": biased, "qkv_bias": biased, "head_bias": biased, "sinks": biased, "tied": not biased}
    sizes: dict[str, Any] = {"kv_heads": 2, "head_width": 6, "feedforward_width": 17, "layers": 2, **switches}
    pair = replace(PAIR, source_vocab=13 if biased else None, **sizes)
    encoder = replace(ENCODER, segments=3 * biased, **sizes)
    for chosen, head in [*product(EVERY, HEADS[:1]), *product(EVERY[::11], HEADS[1:])]:
        config = replace(encoder, head=head, head_bias=biased and head == HEADS[0], **chosen)
        assert parameters(config) == counted(build(config, device="meta")), (chosen, head)
    for chosen in EVERY:
        if not isinstance(chosen["block"], kinds.Parallel):
            assert parameters(replace(pair, **chosen)) == counted(build(replace(pair, **chosen), device="meta")), chosen


@given(models())
def test_parameters_are_those_of_any_model_that_may_be_written(config: StackConfig) -> None:
    built = build(config, device="meta")
    assert sum(parameters(config).values()) == sum(parameter.numel() for parameter in built.parameters())


@pytest.mark.parametrize("config", [ENCODER, PAIR], ids=["encoder", "pair"])
def test_a_parameter_more_is_found(config: ModelConfig) -> None:
    model = build(config, device="meta")
    model.extra = nn.Parameter(torch.empty(3, device="meta"))
    assert counted(model) != parameters(config)


def ids(batch: int, length: int) -> torch.Tensor:
    """Any ids that every vocabulary here has."""
    return torch.randint(11, (batch, length))


def measured_flops(config: StackConfig, *lengths: int, batch: int) -> int:
    """Operations as PyTorch counts them, with the kernel that multiplies all queries and keys."""
    model = build(replace(config, kernel=kinds.Visible()), seed=0).eval()
    with FlopCounterMode(display=False) as counter:
        model(*(ids(batch, length) for length in lengths))
    total: int = counter.get_total_flops()
    return total


@pytest.mark.parametrize("config", ENCODERS.values(), ids=ENCODERS)
def test_flops_of_an_encoder_are_what_pytorch_counts(config: EncoderConfig) -> None:
    """A pooled head's dense layer runs once a row, and is said not to be counted."""
    a_row = 2 * config.width**2 if config.head == kinds.Pooled(dense=True) else 0
    for batch, length in ((2, config.context), (3, 5)):
        of_tokens = batch * length * sum(flops_per_token(config, length).values())
        assert measured_flops(config, length, batch=batch) == of_tokens + batch * a_row
    assert flops_per_token(config) == flops_per_token(config, config.context)


@pytest.mark.parametrize("config", PAIRS.values(), ids=PAIRS)
def test_flops_of_an_encoder_decoder_are_what_pytorch_counts(config: EncoderDecoderConfig) -> None:
    for batch, source, target in ((2, 5, 7), (3, 4, 2)):
        a_token = flops_per_token(config, target, source=source)
        a_source = a_token.pop("encoder")
        wanted = batch * (target * sum(a_token.values()) + source * a_source)
        assert measured_flops(config, source, target, batch=batch) == wanted
    assert flops_per_token(config) == flops_per_token(config, config.context, source=config.encoder.context)


def test_reading_a_source_costs_its_part_of_an_encoder_decoder() -> None:
    """`remember` alone is the part `encoder`, and the decoder alone is the rest."""
    model = build(replace(PAIR, kernel=kinds.Visible()), seed=0).eval()
    a_token = flops_per_token(PAIR, 6, source=4)
    with FlopCounterMode(display=False) as counter:
        memory = model.remember(ids(2, 4))
    assert counter.get_total_flops() == 2 * 4 * a_token.pop("encoder")
    with FlopCounterMode(display=False) as counter:
        model.decoder(ids(2, 6), store=memory)
    assert counter.get_total_flops() == 2 * 6 * sum(a_token.values())


# Memory

DEEP = EncoderConfig(vocab=211, layers=2, heads=4, width=64, context=48, segments=2)
BOTH = EncoderDecoderConfig(vocab=211, layers=3, encoder_layers=2, heads=4, width=64, context=40, source_context=24)
KEPT: dict[str, StackConfig] = {
    "masked": DEEP,
    "masked, post-norm": replace(DEEP, block=kinds.PostNorm(), embedding_norm=True, **BIASED),
    "masked, ReLU": replace(DEEP, activation=kinds.ReLU()),
    "masked, ReLU squared": replace(DEEP, activation=kinds.ReLUSquared()),
    "masked, gated": replace(DEEP, activation=kinds.GEGLUTanh(), norm=kinds.RMSNorm()),
    "features": replace(DEEP, head=kinds.Features()),
    "features, post-norm": replace(DEEP, head=kinds.Features(), block=kinds.PostNorm()),
    "first": replace(DEEP, head=kinds.Pooled()),
    "mean, dense": replace(DEEP, head=kinds.Pooled(kinds.Mean(), dense=True)),
    "mean, unit": replace(DEEP, head=kinds.Pooled(kinds.Mean(), unit=True)),
    "dense, unit": replace(DEEP, head=kinds.Pooled(dense=True, unit=True)),
    "max": replace(DEEP, head=kinds.Pooled(kinds.Max()), norm=kinds.RMSNorm()),
    "max, dense": replace(DEEP, head=kinds.Pooled(kinds.Max(), dense=True)),
    "grouped, normed": replace(DEEP, kv_heads=2, qk_norm=True, norm=kinds.RMSNorm()),
    "rotary": replace(DEEP, positions=kinds.Rotary()),
    "rotary, normed": replace(DEEP, positions=kinds.Rotary(), qk_norm=True),
    "pair": BOTH,
    "pair, grouped": replace(BOTH, kv_heads=2, head_width=10),
    "pair, rotary": replace(BOTH, positions=kinds.Rotary(), activation=kinds.SwiGLU(), norm=kinds.RMSNorm()),
    "pair, post-norm": replace(BOTH, block=kinds.PostNorm(), activation=kinds.ReLU(), **BIASED),
    "pair, norms around": replace(BOTH, block=kinds.AroundNorm(), embedding_norm=True),
    "pair, RMSNorms around": replace(BOTH, block=kinds.AroundNorm(), norm=kinds.RMSNorm()),
    "pair, normed": replace(BOTH, kv_heads=2, qk_norm=True),
    "pair, RMS-normed": replace(BOTH, kv_heads=2, qk_norm=True, norm=kinds.RMSNorm(), tied=False, source_vocab=99),
}


def lengths_of(config: StackConfig) -> list[int]:
    """How long full inputs are: of a source, if there is one, and of the own sequence."""
    return [*([config.encoder.context] if isinstance(config, EncoderDecoderConfig) else []), config.context]


@pytest.mark.parametrize("config", KEPT.values(), ids=KEPT)
def test_activations_are_the_tensors_that_autograd_keeps(config: StackConfig) -> None:
    """To the byte; what the formula leaves out, ids and the means of the norms, is small."""
    model, batch = build(config, seed=0), 3
    read = [ids(batch, length) for length in lengths_of(config)]

    def loss() -> torch.Tensor:
        made: torch.Tensor = model(*read)
        if made.shape[-1] != config.vocab:
            return made.sum()
        return nn.functional.cross_entropy(made.flatten(0, 1), read[-1].flatten(), reduction="sum")

    kept = kept_bytes(model, loss)
    most = large(kept, *lengths_of(config))
    assert training_memory(config, batch).activations == most == pytest.approx(sum(kept.values()), rel=0.03), kept


@pytest.mark.parametrize("config", [ENCODERS["BERT"], PAIRS["two vocabularies"]], ids=["encoder", "pair"])
def test_memory_of_weights_gradients_and_optimiser_is_theirs(config: StackConfig) -> None:
    model = build(config, seed=0)
    optimizer = adamw(model, lr=1e-3)
    model(*(ids(2, length) for length in lengths_of(config))).sum().backward()
    optimizer.step()
    memory = training_memory(config, 2)
    sizes = [parameter.numel() * 4 for parameter in model.parameters()]
    means = [x.numel() * 4 for state in optimizer.state.values() for name, x in state.items() if name != "step"]
    assert (memory.weights, memory.gradients, memory.optimizer) == (sum(sizes), sum(sizes), sum(means))
    assert memory.activations == 2 * training_memory(config, 1).activations


@pytest.mark.parametrize("config", PAIRS.values(), ids=PAIRS)
def test_the_cache_of_an_encoder_decoder_is_its_own_and_the_memory(config: EncoderDecoderConfig) -> None:
    model = build(config, seed=0).eval()
    own = GrowingStore(model.decoder)
    store = model.remember(ids(2, 4)).beside(own)
    model.decoder(ids(2, 6), store=store)
    held = [tensor for layer in own.layers for tensor in layer.kept or ()]
    remembered = [tensor for memory in store.memories for tensor in (memory.k, memory.v)]
    assert sum(tensor.numel() for tensor in held + remembered) == cache_elements(config, 2, 6, source=4)
    assert sum(tensor.numel() for tensor in held) == cache_elements(config, 2, 6, source=0)
    assert cache_elements(config, 2, 6) == cache_elements(config, 2, 6, source=config.encoder.context)


def test_an_encoder_has_no_cache_and_a_decoder_no_use_for_a_source() -> None:
    assert cache_elements(ENCODER, 2, 6) == 0 == generation_memory(ENCODER).cache
    decoder = DecoderConfig(layers=3)
    assert cache_elements(decoder, 2, 6, source=4) == cache_elements(decoder, 2, 6)
    assert flops_per_token(decoder, 6, source=4) == flops_per_token(decoder, 6)


@pytest.mark.parametrize("config", [DEEP, BOTH], ids=["encoder", "pair"])
def test_generation_needs_the_weights_the_cache_and_a_forward_that_keeps_nothing(config: StackConfig) -> None:
    memory = generation_memory(config)
    assert memory.weights == 4 * sum(parameters(config).values())
    assert memory.cache == 4 * cache_elements(config, 1, config.context)
    assert 0 < memory.activations < training_memory(config, 1).activations
    assert memory.total == memory.weights + memory.cache + memory.activations


def test_the_widest_tensors_of_a_generation_are_those_of_the_longer_side() -> None:
    long = replace(BOTH, source_context=4000)
    assert generation_memory(BOTH).activations == generation_memory(BOTH.decoder).activations
    assert generation_memory(long).activations == generation_memory(long.encoder).activations


@pytest.mark.parametrize("count", [parameters, flops_per_token, lambda config: training_memory(config, 1)])
def test_a_kind_that_nothing_counts_is_no_zero(count: Callable[[ModelConfig], object]) -> None:
    with pytest.raises(TypeError, match="nothing counts"):
        count(ModelConfig())
