"""What each tensor of a forward costs: the trained numbers that make it, and the arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from torch import nn

from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.block import PostNormBlock
from clearhead.layers.cross_block import PostNormCrossBlock
from clearhead.layers.encoder_heads import MaskedTokenHead, PoolingHead
from clearhead.models import choices
from clearhead.models.config import DecoderConfig, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder

Weights = list[tuple[object, int]]
"""Weights, each with how many of its numbers are meant."""


class Made(NamedTuple):
    """Trained numbers."""

    parameters: int
    """Those that are counted here: each once, where it is used first."""
    shared: int
    """Further ones, which are counted where they were used before: a tied head's are the embedding's."""


def made_of(model: Decoder | Encoder | EncoderDecoder) -> dict[str, Made]:
    """The trained numbers that make each tensor; in a forward's order, the sum of `parameters` is the model's.

    Args:
        model: any.
    """
    counted: set[object] = set()
    made: dict[str, Made] = {}
    for name, weights in _weights(model):
        own = shared = 0
        for weight, count in weights:
            own, shared = (own, shared + count) if weight in counted else (own + count, shared)
            counted.add(weight)
        made[name] = Made(own, shared)
    return made


def _weights(model: nn.Module) -> Iterator[tuple[str, Weights]]:
    match model:
        case EncoderDecoder(encoder=encoder, decoder=decoder):
            yield from ((f"encoder.{name}", weights) for name, weights in _stack(encoder))
            yield from ((f"decoder.{name}", weights) for name, weights in _stack(decoder))
        case Encoder() | Decoder():
            yield from _stack(model)


def _stack(stack: Decoder | Encoder) -> Iterator[tuple[str, Weights]]:
    yield "embedding", _all(stack.embedding)
    yield "positions", _all(stack.positions)
    if isinstance(stack, Encoder):
        yield "segments", _all(stack.segments)
    yield "input", _all(stack.embedding_norm)
    for index, (block, look) in enumerate(zip(stack.blocks, stack.looks, strict=True)):
        for name, weights in _block(block):
            bias = _all(look.bias) if name == "attention.scores" and isinstance(look.bias, nn.Module) else []
            yield f"blocks.{index}.{name}", weights + bias
    yield "norm", _all(stack.norm)
    match stack.head:
        case MaskedTokenHead(transform=transform, norm=norm, output=output):
            yield "head.transformed", _all(transform) + _all(norm)
            yield "head.logits", _all(output)
        case PoolingHead(after=after):
            yield "head.output", _all(after)
        case nn.Linear():
            yield "logits", _all(stack.head)


def _block(block: nn.Module) -> Iterator[tuple[str, Weights]]:
    """The weights of a block. A post-norm block's norms make the sums; others normalise before a branch, and perhaps after it."""
    after = isinstance(block, PostNormBlock | PostNormCrossBlock)
    for branch, summed in (("attention", "middle"), ("cross_attention", "crossed"), ("feedforward", "output")):
        part = getattr(block, branch, None)
        if part is None:
            continue
        norm = _all(getattr(block, f"{branch}_norm"))
        yield f"{branch}_norm", [] if after else norm
        yield from ((f"{branch}.{name}", weights) for name, weights in _branch(part))
        yield summed, norm if after else _all(getattr(block, f"{branch}_after", None))


def _branch(part: nn.Module) -> Iterator[tuple[str, Weights]]:
    if not isinstance(part, MultiHeadAttention):
        for name, layer in (("gate", "gate"), ("up", "up"), ("output", "down")):
            yield name, _all(getattr(part, layer, None))
        return
    norms = {"q": part.q_norm, "k": part.k_norm}
    for letter, rows in zip("qkv", part.sizes, strict=True):
        each: Weights = [((id(weight), letter), rows * weight[0].numel()) for weight in part.qkv.parameters()]
        yield letter, each + _all(norms.get(letter))
    yield "weights", _all(part.attend if isinstance(part.attend, nn.Module) else None)
    yield "scores", []
    yield "output", _all(part.output)


def _all(module: nn.Module | None) -> Weights:
    return [] if module is None else [(id(weight), weight.numel()) for weight in module.parameters()]


def flops_of(
    config: DecoderConfig | EncoderConfig | EncoderDecoderConfig, length: int, source: int = 0
) -> dict[str, int]:
    """Floating-point operations of a forward of one row, by tensor; those without matrix products are left out.

    A multiplication and an addition count as two. All queries are counted as if they saw `length` keys, at most a block's window. The
    sum over the tensors is `models.cost.flops_per_token` times the tokens; beside it a pooled head's dense layer, 2·D² a row.

    Args:
        config: of the model.
        length: T, tokens of the text; of the target in an encoder-decoder.
        source: M, tokens of an encoder-decoder's source.
    """
    match config:
        case EncoderDecoderConfig():
            encoder, decoder = _of_stack(config.encoder, source), _of_stack(config.decoder, length)
            crossing = {
                f"blocks.{block}.cross_attention.{name}": flops
                for block in range(config.layers)
                for name, flops in _of_attention(config, length, source, source).items()
            }
            return {f"encoder.{name}": flops for name, flops in encoder.items()} | {
                f"decoder.{name}": flops for name, flops in (decoder | crossing | _of_head(config, length)).items()
            }
        case DecoderConfig() | EncoderConfig():
            return _of_stack(config, length) | _of_head(config, length)


def _of_stack(config: DecoderConfig | EncoderConfig, length: int) -> dict[str, int]:
    found: dict[str, int] = {}
    matrix = 2 * length * config.width * config.hidden
    for block, sight in enumerate(config.sights):
        keys = length if sight.window is None else min(length, sight.window)
        parts: Mapping[str, int] = _of_attention(config, length, keys, length)
        found |= {f"blocks.{block}.attention.{name}": flops for name, flops in parts.items()}
        found |= {f"blocks.{block}.feedforward.{name}": matrix for name in ("gate", "up", "output")}
        if not isinstance(config.activation, choices.Gated):
            del found[f"blocks.{block}.feedforward.gate"]
    return found


def _of_attention(config: StackConfig, queries: int, looked_at: int, keys: int) -> dict[str, int]:
    """One layer's: T queries that see so many of S keys."""
    mixed, kept = config.heads * config.width_of_head, config.key_value_heads * config.width_of_head
    return {
        "q": 2 * queries * config.width * mixed,
        "k": 2 * keys * config.width * kept,
        "v": 2 * keys * config.width * kept,
        "scores": 2 * queries * looked_at * mixed,
        "mixed": 2 * queries * looked_at * mixed,
        "output": 2 * queries * mixed * config.width,
    }


def _of_head(config: StackConfig, length: int) -> dict[str, int]:
    vocabulary = 2 * length * config.width * config.vocab
    if not isinstance(config, EncoderConfig):
        return {"logits": vocabulary}
    match config.head:
        case choices.MaskedToken():
            return {"head.transformed": 2 * length * config.width**2, "head.logits": vocabulary}
        case choices.Pooled(dense=True):
            return {"head.output": 2 * config.width**2}
    return {}
