"""Seeing: taps that keep or change named tensors, traces of a forward, and the one table of names and axes."""

from clearhead.tracing.attribution import Attribution, direct_logit_attribution
from clearhead.tracing.detectors import HeadScores, detect_heads
from clearhead.tracing.edit import Chain, Edit, Editor, mean, noise, patch, replace, zero
from clearhead.tracing.effect import Effect, effect_of_weight
from clearhead.tracing.gradients import gradients
from clearhead.tracing.lenses import BranchSizes, LogitLens, branch_sizes, logit_lens
from clearhead.tracing.metrics import logit_difference
from clearhead.tracing.names import AXES, NAMES, axes_of
from clearhead.tracing.patched import Patching
from clearhead.tracing.patching import activation_patching, attribution_patching
from clearhead.tracing.patterns import (
    Patterns,
    attention_distance,
    attention_entropy,
    attention_patterns,
    attention_rollout,
)
from clearhead.tracing.record import Recorder
from clearhead.tracing.trace import Trace, trace

__all__ = [
    "AXES",
    "NAMES",
    "Attribution",
    "BranchSizes",
    "Chain",
    "Edit",
    "Editor",
    "Effect",
    "HeadScores",
    "LogitLens",
    "Patching",
    "Patterns",
    "Recorder",
    "Trace",
    "activation_patching",
    "attention_distance",
    "attention_entropy",
    "attention_patterns",
    "attention_rollout",
    "attribution_patching",
    "axes_of",
    "branch_sizes",
    "detect_heads",
    "direct_logit_attribution",
    "effect_of_weight",
    "gradients",
    "logit_difference",
    "logit_lens",
    "mean",
    "noise",
    "patch",
    "replace",
    "trace",
    "zero",
]
