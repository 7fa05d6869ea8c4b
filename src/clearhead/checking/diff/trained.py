"""Two of ours with one configuration and other weights: two runs, a fine-tuned model and its base. Nothing needs to be searched."""

from __future__ import annotations

import math
from collections.abc import Sequence

from clearhead.checking.diff.ours import ModelSide
from clearhead.checking.diff.report import Pair, Reason
from clearhead.checking.diff.side import Side
from clearhead.checking.diff.towards import IDLE, differing
from clearhead.checking.diff.weights import Match
from clearhead.messages import say

FURTHEST = 3
"""How many tensors are named."""

EMPTY = ("weights.zero", "weights.constant")
"""Relations that leave nothing of A's numbers: as a fresh bias is beside a trained one."""


def trained_apart(a: Side, b: Side, found: Sequence[Match] | None, first: Pair) -> Reason | None:
    """That the weights alone are others, where the configuration is the same and no tensor is A's rearranged; else None.

    A with all tensors of B is B itself, so that this is known without running it.

    Args:
        a: the one.
        b: the other.
        found: how their tensors are to each other.
        first: where the two part.
    """
    if not (isinstance(a, ModelSide) and isinstance(b, ModelSide)) or found is None or a.changes or b.changes:
        return None
    if type(a.config) is not type(b.config) or any(each.name not in IDLE for each in differing(a.config, b.config)):
        return None
    others = [each for each in found if each.state != "same"]
    if not others or any(each.state != "changed" and each.id not in EMPTY for each in others):
        return None
    sizes = {name: tensor.numel() for name, tensor in a.weights.items()}
    share = sum(sizes.get(each.a, 0) for each in found if each.state == "same") / max(1, sum(sizes.values()))
    text = say(
        "diff_ours.trained",
        count=len(others),
        whole=len(found),
        same=len(found) - len(others),
        share=f"{share:.1%}",
        furthest=", ".join(_furthest(others)),
    )
    return Reason("weights.changed", "reproduced", first.a or first.b, text, first.largest, 0.0)


def _furthest(others: Sequence[Match]) -> list[str]:
    """Those that differ most beside their own size; what is zero in A has none."""
    sized = sorted((each for each in others if each.part and math.isfinite(each.part)), key=lambda each: -each.part)
    if not sized:
        return [each.a for each in others[:FURTHEST]]
    return [say("diff_ours.by_part", name=each.a, part=f"{each.part:.1%}") for each in sized[:FURTHEST]]
