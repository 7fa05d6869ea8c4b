"""The distributions that a sampler should give, and those of known mistakes."""

from __future__ import annotations

import torch
from torch import Tensor

TOP_K, TWICE, SORTED = "sampling.top-k-fill", "sampling.double-softmax", "sampling.sorted-indices"
BOUNDARY, EMPTY = "sampling.nucleus-boundary", "sampling.empty-nucleus"
ZERO, TEMPERATURE, MIN_P = "sampling.temperature-zero", "sampling.temperature", "sampling.min-p"

Wrong = list[tuple[str, str, Tensor]]
"""Id, what was done in words (the end of a message's key), and the distribution that it gives."""


def of(chances: Tensor, kept: Tensor) -> Tensor:
    """The chances of the tokens that are kept, and 0 for the others."""
    left = chances * kept
    return left / left.sum()


def best(chances: Tensor, number: int) -> Tensor:
    """Whether a token is among the best so many (V)."""
    ranks = chances.argsort(descending=True).argsort()
    return ranks < number


def filled(logits: Tensor, kept: Tensor) -> Tensor:
    """Where the logits of the others become 0 in place of -∞."""
    return torch.where(kept, logits, 0.0).softmax(-1)


def mistakes(logits: Tensor, kept: Tensor, *, twice: bool = False) -> Wrong:
    """What can go wrong with any set of kept tokens.

    Args:
        logits: (V).
        kept: (V), whether a token is kept.
        twice: whether a softmax of probabilities is known to be taken where nothing is filtered, too: then it is the cause.
    """
    chances = logits.softmax(-1)
    number = int(kept.sum())
    first = torch.arange(len(logits)) < number
    late = (TWICE, "twice") if twice else (TOP_K, "softmax_after")
    down, up = chances.sort(descending=True).values, chances.sort().values
    found = [
        (TOP_K, "zero", filled(logits, kept)),
        (*late, filled(chances, kept)),
        (*late, filled(of(chances, kept), kept)),
        (TWICE, "twice", of(chances.softmax(-1), kept)),
        (SORTED, "mask_sorted", of(chances, first)),
        (SORTED, "ids_sorted", of(down, first)),
        (SORTED, "ids_sorted", of(up, first.flip(0))),
        (SORTED, "mask_sorted", of(chances, first.flip(0))),
    ]
    return [(id, how, wanted) for id, how, wanted in found if not torch.allclose(wanted, of(chances, kept), atol=1e-6)]


def warmer(logits: Tensor, temperature: float) -> Wrong:
    """What can go wrong with a temperature."""
    chances = logits.softmax(-1)
    return [
        (TEMPERATURE, "no_effect", chances),
        (TEMPERATURE, "multiplied", (logits * temperature).softmax(-1)),
        (TWICE, "twice", (chances / temperature).softmax(-1)),
        (TWICE, "twice", (logits / temperature).softmax(-1).softmax(-1)),
    ]


def plain(logits: Tensor) -> Wrong:
    """What can go wrong if nothing is asked for."""
    chances = logits.softmax(-1)
    return [
        (TWICE, "twice", chances.softmax(-1)),
        (SORTED, "ids_sorted", chances.sort(descending=True).values),
        (SORTED, "ids_sorted", chances.sort().values),
    ]


def nucleus(chances: Tensor, p: float) -> int:
    """How many tokens the smallest set has that reaches p."""
    return int((chances.sort(descending=True).values.cumsum(-1) < p).sum()) + 1
