"""Seeing: taps that keep or change named tensors, traces of a forward, and the one table of names and axes."""

from clearhead.tracing.edit import Chain, Edit, Editor, mean, noise, patch, replace, zero
from clearhead.tracing.gradients import gradients
from clearhead.tracing.names import AXES, NAMES, axes_of
from clearhead.tracing.record import Recorder
from clearhead.tracing.trace import Trace, trace

__all__ = [
    "AXES",
    "NAMES",
    "Chain",
    "Edit",
    "Editor",
    "Recorder",
    "Trace",
    "axes_of",
    "gradients",
    "mean",
    "noise",
    "patch",
    "replace",
    "trace",
    "zero",
]
