"""From a configuration to Modules: the one place that chooses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import overload

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.block import ParallelBlock, PostNormBlock, SequentialBlock
from clearhead.layers.cross_block import PostNormCrossBlock, SequentialCrossBlock
from clearhead.layers.embedding import ScaledTokenEmbedding, TokenEmbedding
from clearhead.layers.encoder_heads import FeaturesHead, MaskedTokenHead, Pool, PoolingHead
from clearhead.layers.feedforward import FeedForward, GatedFeedForward
from clearhead.layers.norm import LayerNorm, OffsetRMSNorm, RMSNorm, ScaledNorm
from clearhead.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions
from clearhead.layers.segments import NoSegments, SegmentEmbedding
from clearhead.layers.sinks import SinkAttention
from clearhead.models import choices
from clearhead.models.choices import Choice
from clearhead.models.config import DecoderConfig, ModelConfig, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.models.initialise import NothingDrawn, initialise
from clearhead.models.looks import looks_of
from clearhead.ops.activation import relu_squared
from clearhead.ops.attention import Attend, attend_fused, attend_visible
from clearhead.ops.attention_blockwise import attend_blockwise
from clearhead.ops.attention_variants import attend_capped
from clearhead.ops.pooling import pool_first, pool_max, pool_mean
from clearhead.ops.positions import sinusoids, sinusoids_in_halves


def _gelu_tanh(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


# PyTorch's kernels; the tests hold them to the definitions in ops/activation.py.
ACTIVATIONS: dict[type[Choice], Callable[[Tensor], Tensor]] = {
    choices.ReLU: F.relu,
    choices.ReLUSquared: relu_squared,
    choices.GELU: F.gelu,
    choices.GELUTanh: _gelu_tanh,
    choices.SwiGLU: F.silu,
    choices.GEGLU: F.gelu,
    choices.GEGLUTanh: _gelu_tanh,
}


POOLS: dict[type[Choice], Pool] = {
    choices.First: pool_first,
    choices.Mean: pool_mean,
    choices.Max: pool_max,
}


@overload
def build(config: DecoderConfig, *, seed: int | None = None, device: torch.device | str = "cpu") -> Decoder: ...
@overload
def build(config: EncoderConfig, *, seed: int | None = None, device: torch.device | str = "cpu") -> Encoder: ...
@overload
def build(
    config: EncoderDecoderConfig, *, seed: int | None = None, device: torch.device | str = "cpu"
) -> EncoderDecoder: ...
@overload
def build(
    config: DecoderConfig | EncoderDecoderConfig, *, seed: int | None = None, device: torch.device | str = "cpu"
) -> Decoder | EncoderDecoder: ...
@overload
def build(config: ModelConfig, *, seed: int | None = None, device: torch.device | str = "cpu") -> nn.Module: ...
def build(config: ModelConfig, *, seed: int | None = None, device: torch.device | str = "cpu") -> nn.Module:
    """The model that `config` describes, freshly initialised, float32, in training mode.

    Args:
        config: what to build.
        seed: of the initial weights; the same seed gives the same weights on every machine with the same PyTorch,
            and leaves the global random state as it was. None draws from the global random state.
        device: where the parameters live; "meta" gives shapes without memory.
    """
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.manual_seed(seed)
        if torch.device(device).type == "meta":
            with torch.device("meta"), NothingDrawn():
                return _model(config)
        # Weights are drawn on the CPU, so that a seed means the same weights on every device.
        with torch.device("cpu"):
            model = _model(config)
            initialise(model)
    return model.to(device)


def _model(config: ModelConfig) -> nn.Module:
    match config:
        case DecoderConfig():
            return _decoder(config, _embedding(config), _block)
        case EncoderConfig():
            return _encoder(config, _embedding(config))
        case EncoderDecoderConfig():
            embedding = _embedding(config)
            source = embedding if config.source_vocab is None else _embedding(config.encoder)
            return EncoderDecoder(_encoder(config.encoder, source), _decoder(config.decoder, embedding, _cross_block))
    raise TypeError(f"no part builds {config!r}")


def _decoder(config: DecoderConfig, embedding: TokenEmbedding, block: Callable[[StackConfig], nn.Module]) -> Decoder:
    looks = looks_of(config)
    return Decoder(
        embedding,
        _positions(config),
        nn.ModuleList(block(config) for _ in range(config.layers)),
        looks=[looks[sight] for sight in config.sights],
        norm=_last_norm(config),
        head=_vocabulary_head(config, embedding),
        context=config.context,
        embedding_norm=_norm(config, config.width) if config.embedding_norm else None,
        dropout=config.dropout,
    )


def _encoder(config: EncoderConfig, embedding: TokenEmbedding) -> Encoder:
    looks = looks_of(config)
    return Encoder(
        embedding,
        _positions(config),
        nn.ModuleList(_block(config) for _ in range(config.layers)),
        looks=[looks[sight] for sight in config.sights],
        norm=_last_norm(config),
        head=_encoder_head(config, embedding),
        context=config.context,
        segments=SegmentEmbedding(config.segments, config.width) if config.segments else NoSegments(),
        embedding_norm=_norm(config, config.width) if config.embedding_norm else None,
        dropout=config.dropout,
    )


def _embedding(config: StackConfig) -> TokenEmbedding:
    return (ScaledTokenEmbedding if config.scale_embedding else TokenEmbedding)(config.vocab, config.width)


def _vocabulary_head(config: StackConfig, embedding: TokenEmbedding) -> nn.Linear:
    head = nn.Linear(config.width, config.vocab, bias=config.head_bias)
    if config.tied:
        head.weight = embedding.weight
    return head


def _encoder_head(config: EncoderConfig, embedding: TokenEmbedding) -> nn.Module:
    match config.head:
        case choices.MaskedToken():
            activation, norm = ACTIVATIONS[type(config.activation)], _norm(config, config.width)
            return MaskedTokenHead(config.width, activation, norm, _vocabulary_head(config, embedding))
        case choices.Pooled(pooling=pooling, dense=dense, unit=unit):
            layer = nn.Linear(config.width, config.width) if dense else None
            return PoolingHead(POOLS[type(pooling)], layer, unit=unit)
    return FeaturesHead()


def _block(config: StackConfig) -> nn.Module:
    attention, feedforward, norm = _attention(config), _feedforward(config), partial(_norm, config, config.width)
    match config.block:
        case choices.PreNorm():
            return SequentialBlock(attention, feedforward, norm(), norm())
        case choices.AroundNorm():
            return SequentialBlock(
                attention, feedforward, norm(), norm(), attention_after=norm(), feedforward_after=norm()
            )
        case choices.PostNorm():
            return PostNormBlock(attention, feedforward, norm(), norm())
        case choices.Parallel(shared=shared):
            first = norm()
            return ParallelBlock(attention, feedforward, first, first if shared else norm())
    raise TypeError(f"no part builds {config.block!r}")


def _cross_block(config: StackConfig) -> nn.Module:
    attention, cross_attention, feedforward = _attention(config), _attention(config), _feedforward(config)
    norm, around = partial(_norm, config, config.width), isinstance(config.block, choices.AroundNorm)
    match config.block:
        case choices.PreNorm() | choices.AroundNorm():
            return SequentialCrossBlock(
                attention,
                cross_attention,
                feedforward,
                attention_norm=norm(),
                cross_attention_norm=norm(),
                feedforward_norm=norm(),
                attention_after=norm() if around else None,
                cross_attention_after=norm() if around else None,
                feedforward_after=norm() if around else None,
            )
        case choices.PostNorm():
            return PostNormCrossBlock(
                attention,
                cross_attention,
                feedforward,
                attention_norm=norm(),
                cross_attention_norm=norm(),
                feedforward_norm=norm(),
            )
    raise TypeError(f"no part builds {config.block!r} with cross-attention")


def _attention(config: StackConfig) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.width,
        config.heads,
        config.key_value_heads,
        config.width_of_head,
        bias=config.qkv_bias,
        output_bias=config.mixing_bias,
        dropout=config.dropout,
        scale=config.attention_scale,
        q_norm=_norm(config, config.width_of_head) if config.qk_norm else None,
        k_norm=_norm(config, config.width_of_head) if config.qk_norm else None,
        attend=_kernel(config),
    )


def _kernel(config: StackConfig) -> Attend:
    match config.kernel:
        case choices.Blockwise(block=block) if config.sinks:
            return SinkAttention(config.heads, partial(attend_blockwise, block=block))
        case choices.Blockwise(block=block):
            return partial(attend_blockwise, block=block, cap=config.softcap)
    if config.softcap is not None:
        return partial(attend_capped, cap=config.softcap)
    if config.sinks:
        return SinkAttention(config.heads)
    return attend_visible if isinstance(config.kernel, choices.Visible) else attend_fused


def _feedforward(config: StackConfig) -> nn.Module:
    part = GatedFeedForward if isinstance(config.activation, choices.Gated) else FeedForward
    activation = ACTIVATIONS[type(config.activation)]
    return part(config.width, config.hidden, activation, bias=config.bias, dropout=config.dropout)


def _norm(config: StackConfig, width: int) -> nn.Module:
    match config.norm:
        case choices.LayerNorm(eps=eps, bias=bias):
            return LayerNorm(width, eps=eps, bias=bias)
        case choices.RMSNorm(eps=eps, offset=offset):
            return (OffsetRMSNorm if offset else RMSNorm)(width, eps=eps)
    raise TypeError(f"no part builds {config.norm!r}")


def _positions(config: StackConfig) -> nn.Module:
    match config.positions:
        case choices.Learned():
            return LearnedPositions(config.context, config.width)
        case choices.Sinusoidal(base=base, halves=halves):
            return SinusoidalPositions(config.width, sinusoids_in_halves if halves else sinusoids, base)
    return NoPositions()


def _last_norm(config: StackConfig) -> nn.Module:
    """The last thing that a post-norm block does is to normalise."""
    norm = nn.Identity() if isinstance(config.block, choices.PostNorm) else _norm(config, config.width)
    return ScaledNorm(norm, config.width**-0.5) if config.scale_head else norm
