"""How a block looks at positions: whom it may see, how q and k are turned, what is added to the scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from clearhead.layers.store import Places
from clearhead.ops.masks import EVERYTHING, Allowed, Causal, Everything, Mask, Positions, Window
from clearhead.ops.positions import alibi_bias, alibi_slopes, relative_buckets
from clearhead.ops.rotary import Rotate, rotary_frequencies, rotation, unrotated
from clearhead.ops.softmax import at_least_float32

Turn = Callable[[Positions, torch.dtype, torch.device], Rotate]
"""From positions, and the type and device of the vectors, to how they are turned."""

Bias = Callable[[Places, torch.dtype, torch.device], Tensor | None]
"""From places, and the type and device of the scores, to what is added to them."""


Direction = Callable[[Positions, Positions], Mask]
"""From the positions of queries and keys to who may look at whom: `Causal`, or `both_ways`."""


class Seen(NamedTuple):
    """What a block needs to know of the positions of one forward."""

    visible: Mask
    rotate: Rotate
    bias: Tensor | None


def both_ways(queries: Positions, keys: Positions) -> Mask:
    """Every position looks at every other, before and after: an encoder."""
    return EVERYTHING


def no_turn(positions: Positions, dtype: torch.dtype, device: torch.device) -> Rotate:
    """Nothing is turned."""
    return unrotated


def no_bias(places: Places, dtype: torch.dtype, device: torch.device) -> None:
    """Nothing is added."""


@dataclass(frozen=True)
class RotaryTurn:
    """Rotary positions.

    Args:
        turned: how many features of a head are turned, even.
        theta: the base of the frequencies.
        scaled: stretches the frequencies for longer contexts.
        interleaved: pairs (2i, 2i+1) in place of (i, i + n/2).
        attention_factor: multiplies cos and sin.
    """

    turned: int
    theta: float
    scaled: Callable[[Tensor], Tensor]
    interleaved: bool = False
    attention_factor: float = 1.0

    def __call__(self, positions: Positions, dtype: torch.dtype, device: torch.device) -> Rotate:
        """The turn of these positions, computed in the wider of float32 and `dtype`."""
        frequencies = self.scaled(rotary_frequencies(self.turned, self.theta, device))
        return rotation(
            positions, frequencies, dtype, interleaved=self.interleaved, attention_factor=self.attention_factor
        )


@dataclass(frozen=True)
class Alibi:
    """ALiBi's bias, -m_h · distance.

    Args:
        heads: H.
    """

    heads: int

    def __call__(self, places: Places, dtype: torch.dtype, device: torch.device) -> Tensor:
        """(H,T,S), or (B,H,T,S) for positions per row; multiplied in float32 or wider, then cast to `dtype`."""
        queries, keys = (_as_tensor(positions, device) for positions in (places.queries, places.keys))
        slopes = alibi_slopes(self.heads).to(device, at_least_float32(dtype))
        return alibi_bias(slopes, queries, keys).to(dtype)


class RelativeBias(nn.Module):
    """T5's bias: a trained number for each head and each range of distances, b[h, bucket(key - query)].

    One table serves all blocks of a stack. A decoder's buckets hold distances to the past, an encoder's both sides.

    Args:
        heads: H.
        buckets: how many ranges of distances there are.
        farthest: the distance from which on all share the last range.
        two_sided: whether later keys have ranges of their own.

    Source: Raffel et al. 2020 §2.1 (arXiv:1910.10683).
    """

    def __init__(self, heads: int, buckets: int, farthest: int, *, two_sided: bool) -> None:
        super().__init__()
        self.buckets, self.farthest, self.two_sided = buckets, farthest, two_sided
        self.table = nn.Parameter(torch.empty(buckets, heads))
        nn.init.normal_(self.table, std=0.02)

    def forward(self, places: Places, dtype: torch.dtype, device: torch.device) -> Tensor:
        """(H,T,S), or (B,H,T,S) for positions per row, of type `dtype`."""
        queries, keys = (_as_tensor(positions, device) for positions in (places.queries, places.keys))
        distances = keys.unsqueeze(-2) - queries.unsqueeze(-1)
        buckets = relative_buckets(distances, self.buckets, self.farthest, two_sided=self.two_sided)
        return self.table[buckets].movedim(-1, -3).to(dtype)


@dataclass(frozen=True)
class Look:
    """How the blocks of one kind look at positions. Blocks that look alike share one, and its work is done once.

    Args:
        window: W, how many keys a query sees at most, itself included; None for all.
        turn: how q and k are turned.
        bias: what is added to the scores.
        direction: `Causal` in a decoder, `both_ways` in an encoder.
        settle: whether a mask that no kernel knows a shortcut for becomes its matrix once, for all blocks; a kernel that
            asks for some keys at a time is better served by the rule.
    """

    window: int | None = None
    turn: Turn = no_turn
    bias: Bias = no_bias
    direction: Direction = Causal
    settle: bool = True

    def __call__(self, places: Places, visible: Mask, x: Tensor) -> Seen:
        """What the places of this forward mean for a block.

        Args:
            places: where the tokens stand.
            visible: further limits, from the caller.
            x: the input of the blocks, for its type and device.
        """
        mask = self.direction(places.queries, places.keys)
        if self.window is not None and not _fits(places.keys, self.window):
            mask = mask & Window(self.window, places.queries, places.keys)
        mask = mask & places.visible & visible
        if self.settle and not _has_shortcut(mask):
            mask = Allowed(mask.matrix(x.device))
        return Seen(mask, self.turn(places.queries, x.dtype, x.device), self.bias(places, x.dtype, x.device))


def _has_shortcut(mask: Mask) -> bool:
    """Whether a kernel may know what the mask means without its matrix: nothing is hidden, or only the future."""
    return isinstance(mask, Everything) or (isinstance(mask, Causal) and mask.contiguous)


def _fits(keys: Positions, window: int) -> bool:
    """Whether all keys lie within one window, known without looking at a device."""
    return isinstance(keys, range) and len(keys) <= window


def _as_tensor(positions: Positions, device: torch.device) -> Tensor:
    if isinstance(positions, range):
        return torch.arange(positions.start, positions.stop, device=device)
    return positions
