"""Which features turn together, read off the matrices of a turn."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.messages import say


class Pairs(NamedTuple):
    """The pairs of a turn.

    Args:
        style: "half-split", "interleaved", or "own" for another order.
        pairs: (i, j), i turned towards j.
    """

    style: str
    pairs: tuple[tuple[int, int], ...]

    def partner(self, feature: int) -> int:
        """The feature with which one turns."""
        found = [j if i == feature else i for i, j in self.pairs if feature in (i, j)]
        return found[0] if found else feature


def partners(turn: Tensor) -> Tensor:
    """(d): for each feature the other into which it turns most, over all positions (T,d,d); itself if into none."""
    width = turn.shape[-1]
    off = turn.abs().amax(0) * (1 - torch.eye(width, dtype=turn.dtype))
    best = off.amax(0)
    found = off.argmax(0)
    return torch.where(best > 1e-7, found, torch.arange(width))


def pairs_of(turn: Tensor) -> Pairs | None:
    """The pairs of a turn (T,d,d); None if features do not turn in pairs."""
    partner = partners(turn)
    width = turn.shape[-1]
    index = torch.arange(width)
    turned = index[partner != index]
    if not len(turned) or not bool((partner[partner] == index).all()):
        return None
    low = torch.minimum(index, partner)[turned]
    pairs = tuple((int(i), int(partner[i])) for i in sorted(set(low.tolist())))
    gaps = {j - i for i, j in pairs}
    half = len(turned) // 2
    if gaps == {1} and all(i % 2 == pairs[0][0] % 2 for i, _ in pairs) and half > 1:
        return Pairs("interleaved", pairs)
    # Slow features may turn too little to be seen; then the distance tells.
    style = "half-split" if len(gaps) == 1 and max(gaps) >= half else "own"
    return Pairs(style, pairs)


def unequal(q: Tensor, k: Tensor, tables: str) -> tuple[str, str] | None:
    """Why a turn is none, where a known mistake explains it: (id, what is wrong)."""
    one, other = pairs_of(q), pairs_of(k)
    if one and other and _turns(q) and _turns(k):
        if one.style != other.style:
            return "rotary.pairing", say("turn.pairs_differ", q=one.style, k=other.style)
        return _differing(q, k, one)
    mixed = _mixed(q)
    if mixed is not None:
        return "rotary.pairing", mixed
    if one is not None and _sign(q, one):
        return "rotary.not-relative", say("turn.sign")
    return None


def _turns(turn: Tensor) -> bool:
    """Whether each matrix keeps lengths, up to one factor."""
    squares = torch.einsum("tij,tik->tjk", turn, turn)
    scale = squares.diagonal(dim1=-2, dim2=-1).mean()
    eye = torch.eye(turn.shape[-1], dtype=turn.dtype)
    return bool((squares / scale - eye).abs().max() < 1e-4)


def _differing(q: Tensor, k: Tensor, pairs: Pairs) -> tuple[str, str] | None:
    one, other = angles(q, pairs), angles(k, pairs)
    # One step tells the direction and the speed of each pair.
    first, second = one[1] - one[0], other[1] - other[0]
    if bool((first + second).abs().max() < 1e-6):
        return "rotary.not-relative", say("turn.opposite")
    if bool((first - second).abs().max() > 1e-6):
        return "rotary.not-relative", say("turn.speeds", q=f"{float(first[-1]):.3g}", k=f"{float(second[-1]):.3g}")
    return None


def angles(turn: Tensor, pairs: Pairs) -> Tensor:
    """(T,n): the angle of each pair at each position, within half a turn."""
    return torch.stack([torch.atan2(turn[:, j, i], turn[:, i, i]) for i, j in pairs.pairs], -1)


def _sign(turn: Tensor, pairs: Pairs) -> bool:
    """Whether both features of a pair gain the other's sine with one sign."""
    return all(float((turn[:, j, i] - turn[:, i, j]).abs().max()) < 1e-6 for i, j in pairs.pairs)


def _mixed(turn: Tensor) -> str | None:
    """Tables that repeat each angle in one order, and features that swap in the other."""
    width, partner = turn.shape[-1], partners(turn)
    index = torch.arange(width)
    cosines = turn.diagonal(dim1=-2, dim2=-1)
    half = width // 2
    halves = float((cosines[:, :half] - cosines[:, half:]).abs().max()) < 1e-6
    adjacent = float((cosines[:, 0::2] - cosines[:, 1::2]).abs().max()) < 1e-6
    swapped = partner != index
    by_half = bool((partner == (index + half) % width)[swapped].all())
    by_pair = bool((partner == (index ^ 1))[swapped].all())
    if adjacent and not halves and by_half and not by_pair:
        return say("turn.mixed", tables="0,0,1,1", swap="i, i + d/2")
    if halves and not adjacent and by_pair and not by_half:
        return say("turn.mixed", tables="0,1,0,1", swap="2i, 2i + 1")
    return None
