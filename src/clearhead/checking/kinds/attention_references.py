"""Attention written out, right and with each known mistake, so that the one that reproduces an output names the mistake."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

SCALES: dict[str, Callable[[int, int, int], float]] = {
    "": lambda d, D, T: 1 / math.sqrt(d),
    "scale.missing": lambda d, D, T: 1.0,
    "scale.model-width": lambda d, D, T: 1 / math.sqrt(D),
    "scale.length": lambda d, D, T: 1 / math.sqrt(T),
    "scale.inverted": lambda d, D, T: math.sqrt(d),
    "scale.twice": lambda d, D, T: 1 / d,
}
"""By fault, the scale of the scores; "" is the right one."""
AXES = {-1: "", -2: "softmax.axis", -3: "softmax.axis", -4: "softmax.axis"}
TRIANGLES = ("all", "right", "top-left", "strict", "wide", "reversed")
CAUSAL_FAULTS = {
    "top-left": "causal.top-left",
    "strict": "causal.self-masked",
    "wide": "causal.future-leak",
    "reversed": "causal.future-leak",
}
MASKS = (
    "keep",
    "drop",
    "number",
    "number-drop",
    "ignored",
    "query",
    "query-drop",
    "after",
    "after-drop",
    "multiplied",
    "rolled",
    "folded",
)
MASK_FAULTS = {
    "number": "mask.added-as-number",
    "number-drop": "mask.added-as-number",
    "multiplied": "mask.added-as-number",
    "ignored": "mask.ignored",
    "query": "mask.query-axis",
    "query-drop": "mask.query-axis",
    "after": "causal.after-softmax",
    "after-drop": "causal.after-softmax",
    "rolled": "mask.wrong-row",
    "folded": "mask.wrong-row",
}

MOST_FAULTS = 2
"""At once, in one formula."""


@dataclass(frozen=True)
class Variant:
    """One way to compute attention.

    Args:
        scale: a key of SCALES.
        axis: of the softmax.
        reshaped: whether k is reshaped to (d, S) in place of being transposed.
        triangle: of TRIANGLES.
        after: whether the triangle is applied to the weights, which are not normalised again.
        mask: of MASKS.
        tiled: whether grouped keys and values are repeated 0,1,0,1.
        window: how many keys a query sees, itself included; 0 for all.
    """

    scale: str = ""
    axis: int = -1
    reshaped: bool = False
    triangle: str = "all"
    after: bool = False
    mask: str = "keep"
    tiled: bool = False
    window: int = 0

    @property
    def faults(self) -> tuple[str, ...]:
        """The faults of its formula, whatever the code claims."""
        found = [self.scale, AXES[self.axis], "scores.key-reshaped" if self.reshaped else ""]
        found += ["heads.kv-tiled" if self.tiled else "", CAUSAL_FAULTS.get(self.triangle, "")]
        found += ["causal.after-softmax" if self.after else "", MASK_FAULTS.get(self.mask, "")]
        return tuple(name for name in found if name)


def bases(window: int = 0) -> Iterator[Variant]:
    """Scales, axes, keys and triangles with each other, the fewest faults first; with a window claimed, that and its neighbours."""
    every = [
        Variant(scale, axis, reshaped, triangle, after)
        for scale, axis, reshaped, triangle, after in itertools.product(
            SCALES, AXES, (False, True), TRIANGLES, (False, True)
        )
        if not (after and triangle == "all") and triangle != "top-left"
    ]
    widths = (window, window + 1, window - 1) if window > 0 else ()
    every = [Variant(scale, triangle="right", window=n) for n in widths if n > 0 for scale in SCALES] + every
    likely = [variant for variant in every if len(variant.faults) <= MOST_FAULTS]
    return iter(sorted(likely, key=lambda variant: len(variant.faults)))


def triangle(name: str, T: int, S: int, window: int = 0) -> Tensor:
    """Which keys a query sees, (T,S)."""
    rows, columns = torch.arange(T)[:, None], torch.arange(S)[None]
    last = rows + (S - T)
    seen = {
        "all": torch.ones(T, S, dtype=torch.bool),
        "right": columns <= last,
        "top-left": columns <= rows,
        "strict": columns < last,
        "wide": columns <= last + 1,
        "reversed": columns >= last,
    }[name]
    return seen & (columns > last - window) if window else seen


def attend(q: Tensor, k: Tensor, v: Tensor, variant: Variant, keep: Tensor | None = None) -> Tensor:
    """softmax(q kᵀ · scale) v, or what a variant makes of it.

    Args:
        q: (B,H,T,d).
        k: (B,K,S,d).
        v: (B,K,S,dv).
        variant: what is computed.
        keep: (B,1 or H,T,S), True where a key is kept.

    Returns:
        (B,H,T,dv); NaN where a query sees nothing.
    """
    H, T, d, S = q.shape[1], q.shape[2], q.shape[3], k.shape[2]
    if k.shape[1] != H:
        times = H // k.shape[1]
        k, v = (t.repeat(1, times, 1, 1) if variant.tiled else t.repeat_interleave(times, 1) for t in (k, v))
    turned = k.reshape(*k.shape[:-2], d, S) if variant.reshaped else k.transpose(-2, -1)
    scores: Tensor = torch.matmul(q, turned) * SCALES[variant.scale](d, H * d, S)
    seen = triangle(variant.triangle, T, S, variant.window)
    hidden = ~seen if not variant.after else torch.zeros_like(seen)
    late = seen if variant.after else torch.ones_like(seen)
    scores = scores.masked_fill(hidden, -torch.inf)
    if keep is not None:
        scores, late = _masked(scores, keep, variant.mask, late)
    weights = torch.softmax(scores, variant.axis) * late
    return weights @ v


def _masked(scores: Tensor, keep: Tensor, how: str, late: Tensor) -> tuple[Tensor, Tensor]:
    """The scores with the mask, and what the weights are multiplied by."""
    B, H = scores.shape[:2]
    full = keep.expand_as(scores)
    if how in ("number", "number-drop"):
        return scores + (full if how == "number" else ~full).to(scores), late
    if how == "multiplied":
        return scores * full.to(scores), late
    if how in ("after", "after-drop"):
        return scores, late & (full if how == "after" else ~full)
    if how == "ignored":
        return scores, late
    if how.startswith("query"):
        full = full.transpose(-2, -1) if full.shape[-1] == full.shape[-2] else full
    if how == "rolled":
        full = full.roll(1, 0)
    if how == "folded":
        # Rows and heads folded as (B H), their masks as (H B).
        full = full[:, 0].repeat(H, 1, 1).reshape(B, H, *full.shape[-2:])
    return scores.masked_fill(full if how in ("drop", "query-drop") else ~full, -torch.inf), late


def matches(found: Tensor, expected: Tensor, tolerance: float) -> bool:
    """Whether two outputs are the same to rounding, wherever the reference is a number; NaN never matches a number."""
    if found.shape != expected.shape:
        return False
    usual = torch.isfinite(expected)
    if not bool(usual.any()) or not bool(torch.isfinite(found[usual]).all()):
        return False
    return bool((found[usual] - expected[usual]).abs().max() <= tolerance * expected[usual].abs().max())
