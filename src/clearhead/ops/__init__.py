"""The formulas: pure functions on tensors. No Module, no configuration; every one runs in float64.

Shapes use the notation of the notes: B batch, T queries, S keys, D width, H heads, K key/value heads, d head width.
"""

from clearhead.ops.activation import ACTIVATIONS, gelu, gelu_tanh, relu
from clearhead.ops.attention import Attend, attend_fused, attend_visible
from clearhead.ops.heads import merge_heads, repeat_heads, split_heads
from clearhead.ops.loss import cross_entropy
from clearhead.ops.masks import EVERYTHING, Allowed, Both, Causal, Everything, Mask, Padding, causal
from clearhead.ops.norm import layer_norm
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
    "Everything",
    "Mask",
    "NoTap",
    "Padding",
    "Tap",
    "at_least_float32",
    "attend_fused",
    "attend_visible",
    "causal",
    "cross_entropy",
    "gelu",
    "gelu_tanh",
    "layer_norm",
    "merge_heads",
    "relu",
    "repeat_heads",
    "softmax",
    "split_heads",
]
