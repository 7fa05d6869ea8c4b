"""The tap: how a computation lets others look at, or replace, a named tensor on its way.

A forward calls `x = tap("weights", x)` where something is worth seeing. The default, `NO_TAP`, gives the tensor back
untouched, so seeing costs one empty call when nobody looks. Recording and patching taps live in `tracing`.

A kernel that never holds the (T,S) matrices cannot show them. It hands over what it worked on, so that a tap may look again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from torch import Tensor

from clearhead.ops.masks import Mask


class Edited(NamedTuple):
    """Scores and weights of some heads that a tap has changed after the kernel ran."""

    heads: tuple[int, ...]
    """h of them."""
    scores: Tensor
    """(B,h,T,S)."""
    weights: Tensor
    """(B,h,T,S)."""
    again: tuple[Callable[[str, Tensor, Sequence[int], int], Tensor], ...]
    """How the weights were changed, in order: from their name, some heads (B,h,T,S), which these are, and how many there are. A tap
    behind that changes scores makes other weights of them, and does this to those, as a kernel that holds its weights would."""


class Ran(NamedTuple):
    """What an attention kernel made, and of what: enough to compute any of its weights again."""

    mixed: Tensor
    """(B,H,T,d_v)."""

    q: Tensor
    """(B,H,T,d), turned."""
    k: Tensor
    """(B,K,S,d), turned; those kept from before too."""
    v: Tensor
    """(B,K,S,d_v)."""
    visible: Mask
    bias: Tensor | None
    scale: float | None
    dropout: float
    """Probability that a weight was dropped; above 0 what ran was not the expectation."""
    cap: float | None = None
    """Squeezes the scaled scores into (-cap, cap)."""
    sinks: Tensor | None = None
    """A further score for each head, (H), that takes weight and holds no value."""
    edited: Edited | None = None
    """What a tap has changed; `mixed` is what that gives."""


class Tap(Protocol):
    """Sees every named tensor of a forward and returns the tensor to go on with.

    A tap of your own inherits from it, and needs `__call__` and `within` alone.
    """

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """The tensor that the computation continues with: `tensor` itself, or a replacement of the same shape."""
        ...

    def within(self, scope: str) -> Tap:
        """A tap whose names are prefixed with `scope` and a dot."""
        ...

    def attended(self, name: str, ran: Ran) -> Ran:
        """What attention goes on with (`mixed`), where its kernel made no weights that could be shown.

        Args:
            name: of the weights that were not shown.
            ran: what the kernel made, and of what.
        """
        return ran

    def shown(self, name: str, ran: Ran) -> None:
        """Is told what attention worked on where its kernel has shown its weights; there is nothing to change any more.

        Args:
            name: of the weights that were shown. Where a tap has changed those, `ran` does not give them again.
            ran: what the kernel made, and of what.
        """
        return


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

    def attended(self, name: str, ran: Ran) -> Ran:
        """What the tap gives for the whole name."""
        return self.tap.attended(self.prefix + name, ran)

    def shown(self, name: str, ran: Ran) -> None:
        """Tells the tap, under the whole name."""
        self.tap.shown(self.prefix + name, ran)


class NoTap:
    """The tap that does nothing."""

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """`tensor`, untouched."""
        return tensor

    def within(self, scope: str) -> NoTap:
        """Itself: there are no names to prefix."""
        return self

    def attended(self, name: str, ran: Ran) -> Ran:
        """`ran`, untouched."""
        return ran

    def shown(self, name: str, ran: Ran) -> None:
        """Nothing."""


NO_TAP = NoTap()
