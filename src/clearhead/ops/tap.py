"""The tap: how a computation lets others look at, or replace, a named tensor on its way.

A forward calls `x = tap("weights", x)` where something is worth seeing. The default, `NO_TAP`, gives the tensor back
untouched, so seeing costs one empty call when nobody looks. Recording and patching taps live in `tracing`.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Tap(Protocol):
    """Sees every named tensor of a forward and returns the tensor to go on with."""

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """The tensor that the computation continues with: `tensor` itself, or a replacement of the same shape."""
        ...

    def within(self, scope: str) -> Tap:
        """A tap whose names are prefixed with `scope` and a dot."""
        ...


class NoTap:
    """The tap that does nothing."""

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """`tensor`, untouched."""
        return tensor

    def within(self, scope: str) -> NoTap:
        """Itself: there are no names to prefix."""
        return self


NO_TAP = NoTap()
