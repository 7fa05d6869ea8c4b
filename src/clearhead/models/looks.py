"""From a configuration to how its blocks look at positions; a part of `build`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor

from clearhead.layers.look import Alibi, Bias, Look, RelativeBias, RotaryTurn, both_ways, no_bias, no_turn
from clearhead.models import choices
from clearhead.models.config import Sight, StackConfig
from clearhead.models.config_encoders import EncoderConfig
from clearhead.ops.masks import Causal
from clearhead.ops.rotary import linear_scaled, llama3_scaled, yarn_attention_factor, yarn_scaled


def looks_of(config: StackConfig) -> dict[Sight, Look]:
    """A look for each distinct sight; a bias with weights is one for all."""
    bias = _bias(config)
    return {sight: _look(config, sight, bias) for sight in dict.fromkeys(config.sights)}


def _look(config: StackConfig, sight: Sight, bias: Bias) -> Look:
    positions = config.positions_of(sight)
    return Look(
        window=sight.window,
        turn=_turn(positions, config.width_of_head) if isinstance(positions, choices.Rotary) else no_turn,
        bias=bias,
        direction=both_ways if isinstance(config, EncoderConfig) else Causal,
        settle=not isinstance(config.kernel, choices.Blockwise),
    )


def _bias(config: StackConfig) -> Bias:
    match config.positions:
        case choices.ALiBi():
            return Alibi(config.heads)
        case choices.Relative(buckets=buckets, farthest=farthest):
            return RelativeBias(config.heads, buckets, farthest, two_sided=isinstance(config, EncoderConfig))
    return no_bias


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
