"""The formulas: pure functions on tensors. No Module, no configuration; every one runs in float64.

Shapes use the notation of the notes: B batch, T queries, S keys, D width, H heads, K key/value heads, d head width.
"""

from clearhead.ops.activation import ACTIVATIONS, gelu, gelu_tanh, relu, relu_squared, silu
from clearhead.ops.attention import Attend, attend_fused, attend_visible
from clearhead.ops.attention_blockwise import attend_blockwise
from clearhead.ops.attention_variants import attend_capped, attend_with_sinks
from clearhead.ops.heads import merge_heads, repeat_heads, split_heads
from clearhead.ops.loss import cross_entropy
from clearhead.ops.mask_formats import (
    from_additive,
    from_multihead,
    from_sdpa,
    to_additive,
    to_key_padding,
    to_multihead,
    to_sdpa,
)
from clearhead.ops.masks import (
    EVERYTHING,
    Allowed,
    Both,
    Causal,
    Documents,
    Everything,
    Mask,
    Padding,
    Positions,
    Prefix,
    Window,
    causal,
    document_positions,
)
from clearhead.ops.norm import layer_norm, rms_norm
from clearhead.ops.pooling import pool_first, pool_max, pool_mean
from clearhead.ops.positions import alibi_bias, alibi_slopes, relative_buckets, sinusoids, sinusoids_in_halves
from clearhead.ops.rotary import (
    Rotate,
    Rotation,
    half_split_to_interleaved,
    interleaved_to_half_split,
    linear_scaled,
    llama3_scaled,
    rotary_frequencies,
    rotation,
    turn_half_split,
    turn_interleaved,
    unrotated,
    yarn_attention_factor,
    yarn_scaled,
)
from clearhead.ops.softmax import at_least_float32, softmax
from clearhead.ops.tap import NO_TAP, NoTap, Tap

__all__ = [
    "ACTIVATIONS",
    "EVERYTHING",
    "NO_TAP",
    "Allowed",
    "Attend",
    "Both",
    "Causal",
    "Documents",
    "Everything",
    "Mask",
    "NoTap",
    "Padding",
    "Positions",
    "Prefix",
    "Rotate",
    "Rotation",
    "Tap",
    "Window",
    "alibi_bias",
    "alibi_slopes",
    "at_least_float32",
    "attend_blockwise",
    "attend_capped",
    "attend_fused",
    "attend_visible",
    "attend_with_sinks",
    "causal",
    "cross_entropy",
    "document_positions",
    "from_additive",
    "from_multihead",
    "from_sdpa",
    "gelu",
    "gelu_tanh",
    "half_split_to_interleaved",
    "interleaved_to_half_split",
    "layer_norm",
    "linear_scaled",
    "llama3_scaled",
    "merge_heads",
    "pool_first",
    "pool_max",
    "pool_mean",
    "relative_buckets",
    "relu",
    "relu_squared",
    "repeat_heads",
    "rms_norm",
    "rotary_frequencies",
    "rotation",
    "silu",
    "sinusoids",
    "sinusoids_in_halves",
    "softmax",
    "split_heads",
    "to_additive",
    "to_key_padding",
    "to_multihead",
    "to_sdpa",
    "turn_half_split",
    "turn_interleaved",
    "unrotated",
    "yarn_attention_factor",
    "yarn_scaled",
]
