"""From a configuration to Modules: the one place that chooses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.block import ParallelBlock, PostNormBlock, SequentialBlock
from clearhead.layers.embedding import ScaledTokenEmbedding, TokenEmbedding
from clearhead.layers.feedforward import FeedForward, GatedFeedForward
from clearhead.layers.look import Alibi, Look, RotaryTurn, no_bias, no_turn
from clearhead.layers.norm import LayerNorm, OffsetRMSNorm, RMSNorm
from clearhead.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions
from clearhead.layers.sinks import SinkAttention
from clearhead.models import choices
from clearhead.models.choices import Choice
from clearhead.models.config import DecoderConfig, Sight
from clearhead.models.decoder import Decoder
from clearhead.models.initialise import initialise
from clearhead.ops.activation import relu_squared
from clearhead.ops.attention import Attend, attend_fused, attend_visible
from clearhead.ops.attention_variants import attend_capped
from clearhead.ops.positions import sinusoids, sinusoids_in_halves
from clearhead.ops.rotary import linear_scaled, llama3_scaled, yarn_attention_factor, yarn_scaled


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


def build(config: DecoderConfig, *, seed: int | None = None, device: torch.device | str = "cpu") -> Decoder:
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
        # Weights are drawn on the CPU, so that a seed means the same weights on every device.
        with torch.device("meta" if torch.device(device).type == "meta" else "cpu"):
            model = _decoder(config)
            initialise(model)
    return model.to(device)


def _decoder(config: DecoderConfig) -> Decoder:
    embedding = (ScaledTokenEmbedding if config.scale_embedding else TokenEmbedding)(config.vocab, config.width)
    head = nn.Linear(config.width, config.vocab, bias=config.head_bias)
    if config.tied:
        head.weight = embedding.weight
    looks = {sight: _look(config, sight) for sight in config.sights}
    return Decoder(
        embedding,
        _positions(config),
        nn.ModuleList(_block(config) for _ in range(config.layers)),
        looks=[looks[sight] for sight in config.sights],
        norm=nn.Identity() if isinstance(config.block, choices.PostNorm) else _norm(config, config.width),
        head=head,
        context=config.context,
        embedding_norm=_norm(config, config.width) if config.embedding_norm else None,
        dropout=config.dropout,
    )


def _block(config: DecoderConfig) -> nn.Module:
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


def _attention(config: DecoderConfig) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.width,
        config.heads,
        config.key_value_heads,
        config.width_of_head,
        bias=config.qkv_bias,
        output_bias=config.bias,
        dropout=config.dropout,
        scale=config.attention_scale,
        q_norm=_norm(config, config.width_of_head) if config.qk_norm else None,
        k_norm=_norm(config, config.width_of_head) if config.qk_norm else None,
        attend=_kernel(config),
    )


def _kernel(config: DecoderConfig) -> Attend:
    if config.softcap is not None:
        return partial(attend_capped, cap=config.softcap)
    if config.sinks:
        return SinkAttention(config.heads)
    return attend_visible if isinstance(config.kernel, choices.Visible) else attend_fused


def _feedforward(config: DecoderConfig) -> nn.Module:
    part = GatedFeedForward if isinstance(config.activation, choices.Gated) else FeedForward
    activation = ACTIVATIONS[type(config.activation)]
    return part(config.width, config.hidden, activation, bias=config.bias, dropout=config.dropout)


def _norm(config: DecoderConfig, width: int) -> nn.Module:
    match config.norm:
        case choices.LayerNorm(eps=eps, bias=bias):
            return LayerNorm(width, eps=eps, bias=bias)
        case choices.RMSNorm(eps=eps, offset=offset):
            return (OffsetRMSNorm if offset else RMSNorm)(width, eps=eps)
    raise TypeError(f"no part builds {config.norm!r}")


def _positions(config: DecoderConfig) -> nn.Module:
    match config.positions:
        case choices.Learned():
            return LearnedPositions(config.context, config.width)
        case choices.Sinusoidal(base=base, halves=halves):
            return SinusoidalPositions(config.width, sinusoids_in_halves if halves else sinusoids, base)
    return NoPositions()


def _look(config: DecoderConfig, sight: Sight) -> Look:
    positions = config.positions_of(sight)
    turn = _turn(positions, config.width_of_head) if isinstance(positions, choices.Rotary) else no_turn
    bias = Alibi(config.heads) if isinstance(positions, choices.ALiBi) else no_bias
    return Look(window=sight.window, turn=turn, bias=bias)


def _turn(rotary: choices.Rotary, head_width: int) -> RotaryTurn:
    scaled, factor = _scaled(rotary), 1.0
    if isinstance(rotary.scaling, choices.YaRN):
        factor = yarn_attention_factor(rotary.scaling.factor)
    return RotaryTurn(rotary.turned(head_width), rotary.theta, scaled, rotary.interleaved, factor)


def _scaled(rotary: choices.Rotary) -> Callable[[Tensor], Tensor]:
    match rotary.scaling:
        case choices.Linear(factor=factor):
            return partial(linear_scaled, factor=factor)
        case choices.YaRN(factor=factor, original_context=context, fast=fast, slow=slow):
            return partial(
                yarn_scaled, factor=factor, theta=rotary.theta, original_context=context, fast=fast, slow=slow
            )
        case choices.Llama3(factor=factor, low=low, high=high, original_context=context):
            return partial(llama3_scaled, factor=factor, low=low, high=high, original_context=context)
    return _unscaled


def _unscaled(frequencies: Tensor) -> Tensor:
    return frequencies
