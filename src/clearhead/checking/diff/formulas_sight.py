"""Who sees whom, read off weights: in words, and what two patterns that differ are called."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.messages import say


def pattern_key(seen: Tensor) -> str:
    """Who sees whom, as text: rows are queries."""
    flat = seen.reshape(-1, *seen.shape[-2:])
    plain = flat[:1] if bool((flat == flat[:1]).all()) else flat
    return "/".join("|".join("".join(str(int(cell)) for cell in row) for row in each) for each in plain.tolist())


def _square(key: str) -> Tensor:
    rows = key.partition("/")[0].split("|")
    return torch.tensor([[cell == "1" for cell in row] for row in rows])


def sight(seen: Tensor) -> str:
    """Who sees whom, in words."""
    square = _square(pattern_key(seen))
    T, S = square.shape
    distance = torch.arange(T)[:, None] + (S - T) - torch.arange(S)
    if bool(square.all()):
        return say("diff.sight_all")
    for shift in (0, -1, 1, T - S):
        low = distance >= -shift
        if torch.equal(square, low):
            words = {0: say("diff.sight_causal"), -1: say("diff.sight_strict")}
            return words.get(shift, say("diff.sight_shifted", shift=shift))
        width = int(distance[square].max()) + 1 if bool(square.any()) else 0
        if torch.equal(square, low & (distance < width)):
            base = say("diff.sight_causal") if shift == 0 else say("diff.sight_shifted", shift=shift)
            return say("diff.sight_window", base=base, width=width + min(shift, 0))
    return say("diff.sight_other", count=int(square.sum()), all=square.numel())


def sight_id(a: str, b: str) -> str:
    """The fault's name that fits two patterns."""
    one, other = _square(a), _square(b)
    T, S = one.shape
    distance = torch.arange(T)[:, None] + (S - T) - torch.arange(S)
    for square, rest in ((one, other), (other, one)):
        if bool(square[distance < 0].any()) and not bool(rest[distance < 0].any()):
            return "causal.future-leak"
        if S != T and torch.equal(square, (distance >= S - T)):
            return "causal.top-left"
        if not bool(square.diagonal(S - T)[1:].any()) and bool(rest.diagonal(S - T)[1:].any()):
            return "causal.self-masked"
    return "window.off-by-one" if _widths_apart(one, other, distance) == 1 else "attention.window"


def _widths_apart(one: Tensor, other: Tensor, distance: Tensor) -> int:
    return abs(int(distance[one].max()) - int(distance[other].max()))
