"""Where a norm's epsilon stands and how large it is, from inputs so small that it decides.

With u of variance 1 the output of c·u is γ u g(c) + β. g(c) = c / √(c² + ε) where ε stands inside the root, c / (c + ε) where it
stands outside, and 1 or c / ε where it is a lower bound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from clearhead.checking.kinds.norm_case import NormCase

SCALES = tuple(10.0 ** (power / 2) for power in range(-18, 5))


class Epsilon(NamedTuple):
    """What was found.

    Args:
        place: "inside", "outside", "bound", "none", or "" if none of these fits.
        value: ε, 0 if there is none.
    """

    place: str
    value: float


@torch.no_grad()
def epsilon(case: NormCase, module: Any, gamma: Tensor, beta: Tensor, stretch: float = 1.0) -> Epsilon:
    """ε of a norm whose γ and β are known; `stretch` is σ' / σ where its spread is not the population's."""
    drawn = torch.Generator().manual_seed(5)
    u = torch.randn(2, case.length or 4, case.width, generator=drawn, dtype=torch.float64)
    u = u - u.mean(-1, keepdim=True)
    u = u / u.square().mean(-1, keepdim=True).sqrt()
    reached = []
    for c in SCALES:
        y = case(module, (u * c).to(case.case.dtype)).double()
        wanted = gamma * u
        g = float(((y - beta) * wanted).sum() / wanted.square().sum())
        reached.append((c, g))
    return _place(reached, stretch, 1e-4 if case.case.dtype == torch.float64 else 1e-2)


def _place(reached: list[tuple[float, float]], stretch: float, least: float) -> Epsilon:
    """The form that explains all g(c)."""
    curved = [(c, g) for c, g in reached if least < abs(g) < 0.97]
    if not curved:
        return Epsilon("none" if all(abs(g - 1) < 1e-3 for _, g in reached) else "", 0.0)
    forms = {
        "inside": [(c * stretch) ** 2 * (1 / (g * g) - 1) for c, g in curved],
        "outside": [c * stretch * (1 / g - 1) for c, g in curved],
        "bound": [c * stretch / g for c, g in curved],
    }
    for place, values in forms.items():
        middle = sorted(values)[len(values) // 2]
        if middle and max(abs(value / middle - 1) for value in values) < 5e-3:
            return Epsilon(place, middle)
    return Epsilon("", 0.0)
