"""What a model costs, from its configuration: against the built model, PyTorch's counter, and the tensors really kept."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.embedding import TokenEmbedding
from clearhead.layers.feedforward import FeedForward, GatedFeedForward
from clearhead.layers.look import RelativeBias
from clearhead.layers.norm import LayerNorm, OffsetRMSNorm, RMSNorm
from clearhead.layers.positions import LearnedPositions
from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.cost import cache_elements, flops_per_token, generation_memory, parameters, training_memory
from clearhead.models.decoder import Decoder
from clearhead.training.batches import Batch
from clearhead.training.losses import next_token
from clearhead.training.optimizer import adamw
from clearhead.training.sizing import LARGE, STORIES

BASE = DecoderConfig(vocab=19, layers=3, heads=4, width=12, context=7)
GRID = {
    "base": BASE,
    "untied": replace(BASE, tied=False),
    "biases": replace(BASE, bias=True, qkv_bias=True, head_bias=True),
    "output bias": replace(BASE, bias=True),
    "qkv bias": replace(BASE, qkv_bias=True, kv_heads=2),
    "untied with bias": replace(BASE, tied=False, head_bias=True),
    "norm without bias": replace(BASE, norm=kinds.LayerNorm(bias=False)),
    "grouped": replace(BASE, kv_heads=2),
    "one key head": replace(BASE, kv_heads=1, qkv_bias=True),
    "head width": replace(BASE, head_width=5, bias=True),
    "feed-forward width": replace(BASE, feedforward_width=17, bias=True),
    "all at once": replace(
        BASE, tied=False, kv_heads=2, head_width=5, feedforward_width=17, bias=True, qkv_bias=True, layers=2
    ),
    "demo": replace(STORIES.config(), vocab=211),
    "SwiGLU": replace(BASE, activation=kinds.SwiGLU(), bias=True, feedforward_width=17),
    "QK-norm": replace(BASE, qk_norm=True, norm=kinds.RMSNorm(), kv_heads=2),
    "sinks": replace(BASE, sinks=True),
    "norms around": replace(BASE, block=kinds.AroundNorm(), embedding_norm=True),
    "ALiBi": replace(BASE, positions=kinds.ALiBi()),
    "relative": replace(BASE, positions=kinds.Relative(buckets=8)),
    "sinusoids": replace(BASE, positions=kinds.Sinusoidal()),
    "no positions": replace(BASE, positions=kinds.NoPositions()),
}
CHOICES: dict[str, list[object]] = {
    "activation": [kinds.GELU(), kinds.SwiGLU()],
    "norm": [kinds.LayerNorm(), kinds.LayerNorm(bias=False), kinds.RMSNorm(), kinds.RMSNorm(offset=True)],
    "block": [kinds.PreNorm(), kinds.PostNorm(), kinds.AroundNorm(), kinds.Parallel(), kinds.Parallel(shared=True)],
    "positions": [kinds.Learned(), kinds.Rotary()],
    "qk_norm": [False, True],
    "embedding_norm": [False, True],
}
EVERY = [dict(zip(CHOICES, made, strict=True)) for made in product(*CHOICES.values())]
KINDS: dict[str, tuple[type[torch.nn.Module], ...]] = {
    "embedding": (TokenEmbedding,),
    "positions": (LearnedPositions, RelativeBias),
    "attention": (MultiHeadAttention,),
    "feedforward": (FeedForward, GatedFeedForward),
    "norms": (LayerNorm, RMSNorm, OffsetRMSNorm),  # last: those of queries and keys stand inside attention
}


def counted(model: Decoder) -> dict[str, int]:
    """Numbers of the built model by kind of part; what belongs to none is the head's own."""
    owners = {
        parameter: name
        for name, kind in KINDS.items()
        for part in model.modules()
        if isinstance(part, kind)
        for parameter in part.parameters()
    }
    sizes = dict.fromkeys([*KINDS, "head"], 0)
    for parameter in model.parameters():
        sizes[owners.get(parameter, "head")] += parameter.numel()
    return sizes


@pytest.mark.parametrize("config", GRID.values(), ids=GRID)
def test_parameters_are_those_of_the_built_model_part_by_part(config: DecoderConfig) -> None:
    assert parameters(config) == counted(build(config, device="meta"))


@pytest.mark.parametrize("biased", [False, True])
def test_parameters_are_those_of_the_built_model_for_every_choice(biased: bool) -> None:
    """320 models: whatever the choices, with every switch that adds numbers off, and on."""
    switches = {"bias": biased, "qkv_bias": biased, "head_bias": biased, "sinks": biased, "tied": not biased}
    base = replace(BASE, kv_heads=2, head_width=6, feedforward_width=17, layers=2, **switches)
    for chosen in EVERY:
        config = replace(base, **chosen)
        assert parameters(config) == counted(build(config, device="meta")), chosen


def test_the_number_of_parameters_does_not_depend_on_heads() -> None:
    totals = {sum(parameters(replace(BASE, heads=heads)).values()) for heads in (1, 2, 3, 4, 6, 12)}
    built = {sum(counted(build(replace(BASE, heads=heads), device="meta")).values()) for heads in (1, 2, 3, 4, 6, 12)}
    assert totals == built
    assert len(totals) == 1


def test_a_parameter_more_is_found() -> None:
    model = build(BASE, device="meta")
    model.extra = torch.nn.Parameter(torch.empty(3, device="meta"))
    assert counted(model) != parameters(BASE)


def measured_flops(config: DecoderConfig, batch: int, length: int) -> float:
    """Operations a token as PyTorch counts them, with the kernel that multiplies the whole square."""
    model = build(replace(config, kernel=kinds.Visible()), seed=0).eval()
    with FlopCounterMode(display=False) as counter:
        model(torch.zeros(batch, length, dtype=torch.long))
    return counter.get_total_flops() / (batch * length)


@pytest.mark.parametrize("config", GRID.values(), ids=GRID)
def test_flops_are_what_pytorch_counts(config: DecoderConfig) -> None:
    assert sum(flops_per_token(config).values()) == measured_flops(config, 2, config.context)
    assert sum(flops_per_token(config, 5).values()) == measured_flops(config, 3, 5)


def test_a_training_step_is_three_forwards() -> None:
    """Beside the gradient of the input that the first layer does not need, PyTorch counts the same."""
    model = build(replace(BASE, kernel=kinds.Visible(), tied=False), seed=0)
    ids = torch.zeros(2, 7, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        next_token(model, Batch(ids, ids))[0].backward()
    assert counter.get_total_flops() == 3 * 14 * sum(flops_per_token(BASE).values())


def kept_bytes(model: nn.Module, loss: Callable[[], Tensor]) -> dict[str, int]:
    """Bytes that a forward and its loss keep for the backward, by shape; parameters do not count, storages once."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        if tensor.untyped_storage().data_ptr() not in own:
            kept.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        total = loss()
    assert total.requires_grad
    by_shape: dict[str, int] = {}
    for tensor in kept.values():
        name = f"{tensor.dtype} {tuple(tensor.shape)}"
        by_shape[name] = by_shape.get(name, 0) + tensor.untyped_storage().nbytes()
    return by_shape


def large(kept: dict[str, int], *lengths: int) -> int:
    """Bytes of all but what the formula leaves out: whole numbers, masks, means and spreads of norms, rotary's angles."""
    small = rf"int|bool|, 1\)$|\(\)$|\(({'|'.join(map(str, lengths))}), \d+\)$"
    return sum(size for name, size in kept.items() if not re.search(small, name))


DEMO = replace(STORIES.config(), vocab=211)
SIZES = {
    "demo": (DEMO, 12),
    "GPT-2": (replace(DEMO, positions=kinds.Learned()), 6),
    "SwiGLU": (replace(DEMO, activation=kinds.SwiGLU(), feedforward_width=300), 6),
    "ReLU": (replace(DEMO, activation=kinds.ReLU()), 6),
    "ReLU squared": (replace(DEMO, activation=kinds.ReLUSquared()), 6),
    "RMSNorm": (replace(DEMO, norm=kinds.RMSNorm()), 6),
    "QK-norm": (replace(DEMO, norm=kinds.RMSNorm(), qk_norm=True, kv_heads=2), 6),
    "QK-norm, learned": (replace(DEMO, positions=kinds.Learned(), qk_norm=True), 6),
    "post-norm": (replace(DEMO, block=kinds.PostNorm()), 6),
    "norms around": (replace(DEMO, block=kinds.AroundNorm()), 6),
    "parallel": (replace(DEMO, block=kinds.Parallel()), 6),
    "parallel, one norm": (replace(DEMO, block=kinds.Parallel(shared=True)), 6),
    "parallel, RMSNorm": (replace(DEMO, block=kinds.Parallel(shared=True), norm=kinds.RMSNorm()), 6),
    "a norm of the embedding": (replace(DEMO, block=kinds.PostNorm(), embedding_norm=True), 6),
    "a text": (replace(LARGE.config(), vocab=66), 16),
    "Chinese": (replace(STORIES.config(), vocab=3_000), 12),
    "grouped": (replace(STORIES.config(), vocab=211, kv_heads=2, feedforward_width=300), 5),
    "untied": (replace(STORIES.config(), vocab=500, tied=False, bias=True), 3),
}


@pytest.mark.parametrize(("config", "batch"), SIZES.values(), ids=SIZES)
def test_activations_are_the_tensors_that_autograd_keeps(config: DecoderConfig, batch: int) -> None:
    """To the byte; what the formula leaves out, ids and the means of the norms, is small."""
    model = build(config, seed=0)
    ids = torch.randint(config.vocab, (batch, config.context + 1))
    kept = kept_bytes(model, lambda: next_token(model, Batch(ids[:, :-1], ids[:, 1:]))[0])
    assert (
        training_memory(config, batch).activations
        == large(kept, config.context)
        == pytest.approx(sum(kept.values()), rel=0.02)
    ), kept


def test_memory_of_weights_gradients_and_optimiser_is_theirs() -> None:
    config = GRID["untied"]
    model = build(config, seed=0)
    optimizer = adamw(model, lr=1e-3)
    ids = torch.zeros(2, 7, dtype=torch.long)
    next_token(model, Batch(ids, ids))[0].backward()
    optimizer.step()
    memory = training_memory(config, 2)
    sizes = [parameter.numel() * 4 for parameter in model.parameters()]
    means = [x.numel() * 4 for state in optimizer.state.values() for name, x in state.items() if name != "step"]
    assert (memory.weights, memory.gradients, memory.optimizer) == (sum(sizes), sum(sizes), sum(means))
    assert memory.total == memory.weights + memory.gradients + memory.optimizer + memory.activations


def test_activations_grow_with_the_batch_and_nothing_else_does() -> None:
    one, seven = training_memory(BASE, 1), training_memory(BASE, 7)
    assert seven.activations == 7 * one.activations
    assert seven.total - seven.activations == one.total - one.activations


def test_generation_needs_the_weights_and_a_forward_that_keeps_nothing() -> None:
    demo = GRID["demo"]
    memory = generation_memory(demo)
    assert memory.weights == 4 * sum(parameters(demo).values())
    assert memory.cache == 4 * cache_elements(demo, 1, demo.context)
    assert 0 < memory.activations < training_memory(demo, 1).activations
    assert memory.total == memory.weights + memory.cache + memory.activations
    assert memory.total - memory.cache < memory.weights + training_memory(demo, 1).activations
