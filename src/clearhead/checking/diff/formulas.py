"""Why two walks part where neither side can be varied: the known formulas are computed from what both have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import torch

from clearhead.checking.diff.formulas_attention import scores, softmax_id, softmaxes
from clearhead.checking.diff.formulas_heads import arranged, numbered, reordered, turned_round
from clearhead.checking.diff.formulas_norm import grown, norm_id, norms, offset
from clearhead.checking.diff.formulas_order import exchanged, moved, rewired, shifted
from clearhead.checking.diff.formulas_parts import parts
from clearhead.checking.diff.formulas_rotary import turn_id, turns
from clearhead.checking.diff.formulas_small import (
    activation_id,
    activations,
    elementwise,
    elementwise_id,
    product_id,
    products,
)
from clearhead.checking.diff.formulas_sums import biased, summed
from clearhead.checking.diff.reading import Placed, Scene, Weights, compared, scene
from clearhead.checking.diff.report import Pair, Reason
from clearhead.checking.diff.side import Walk

FAMILIES: tuple[Callable[[Scene], Placed | None], ...] = (
    lambda each: compared(each, activations, activation_id),
    grown,
    lambda each: compared(each, norms, norm_id),
    offset,
    lambda each: compared(each, turns, turn_id),
    turned_round,
    numbered,
    scores,
    lambda each: compared(each, softmaxes, softmax_id),
    lambda each: rewired(each, turns, "qkv.layout"),
    parts,
    exchanged,
    arranged,
    reordered,
    summed,
    moved,
    lambda each: compared(each, products, product_id),
    biased,
    shifted,
    lambda each: compared(each, elementwise, elementwise_id),
    lambda each: rewired(each, norms, "block.wiring"),
    lambda each: rewired(each, products, "block.wiring"),
)
"""Families of formulas, the more telling first; each gives the first difference that it sees."""


def found_in(seen: Scene) -> Iterator[Placed]:
    """The first reason of each family."""
    for family in FAMILIES:
        found = family(seen)
        if found is not None:
            yield found


def formula_reasons(a: Walk, b: Walk, first: Pair, weights: Weights = ({}, {})) -> tuple[Reason, ...]:
    """Why two walks part.

    Args:
        a: the one.
        b: the other.
        first: where they part, as `parting` has it.
        weights: the tensors of both by name.

    Returns:
        The first reason that is found, the formulas of both in it; nothing if no known formula gives both stages.
    """
    del first
    with torch.no_grad():
        seen = scene(a, b, weights)
        return () if seen is None else tuple(found.bare for found in islice(found_in(seen), 1))
