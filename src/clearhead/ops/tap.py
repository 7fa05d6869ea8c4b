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


class Scoped:
    """A tap as a scope sees it: every name reaches the tap with a prefix.

    Args:
        tap: what the names go to, with what it is given.
        prefix: of the names, its last dot included.
    """

    def __init__(self, tap: Tap, prefix: str) -> None:
        self.tap, self.prefix = tap, prefix

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """What the tap gives for the whole name."""
        return self.tap(self.prefix + name, tensor)

    def within(self, scope: str) -> Scoped:
        """The same tap, with a longer prefix."""
        return Scoped(self.tap, f"{self.prefix}{scope}.")


class NoTap:
    """The tap that does nothing."""

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """`tensor`, untouched."""
        return tensor

    def within(self, scope: str) -> NoTap:
        """Itself: there are no names to prefix."""
        return self


NO_TAP = NoTap()
