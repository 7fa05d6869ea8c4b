"""Seeing: taps that keep named tensors, and the one table of their names and axes."""

from clearhead.tracing.names import AXES, NAMES, axes_of
from clearhead.tracing.record import Recorder

__all__ = ["AXES", "NAMES", "Recorder", "axes_of"]
